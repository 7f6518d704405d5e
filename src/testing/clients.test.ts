import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildClients, clientFiles, writeFiles } from "../../scripts/release/clients/packages.ts";
import { TestApp } from "./app.ts";

const VERSION = "1.2.3";
const folder = mkdtempSync(join(tmpdir(), "postwarden-clients-"));
const app = new TestApp();
let server: Bun.Server<undefined>;

/** Time passes with each request, so that lists are finished while their client polls. */
const answer = async (request: Request): Promise<Response> => {
  const waiting = app.handle(request);
  await app.advance(1_000);
  return waiting;
};

beforeAll(async () => {
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  const { npm, python } = await clientFiles(VERSION);
  writeFiles(join(folder, "node_modules/postwarden-client"), npm);
  writeFiles(folder, python);
});
afterAll(async () => {
  await server.stop(true);
  app.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a program beside the clients. */
const run = async (...argv: readonly string[]) => {
  const env = { PATH: process.env.PATH ?? "", POSTWARDEN_URL: server.url.href, POSTWARDEN_API_KEY: app.newKey().key };
  const ran = Bun.spawn([...argv], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const [out, err, status] = await Promise.all([
    new Response(ran.stdout).text(),
    new Response(ran.stderr).text(),
    ran.exited,
  ]);
  return { out: out.trim().split("\n"), err, status };
};

/** What both programs print: they make the same calls. */
const EXPECTED = [
  "completed mailbox_exists",
  "two",
  "2 rows",
  "email,",
  "advice for example.com",
  "3 checks on 2 pages",
  "404 not_found",
  "400 Invalid request body",
  "401 unauthorized",
  "The URL must begin with https:// or http://",
  "deleted",
];

const TYPESCRIPT = `
import { Postwarden, PostwardenError } from "postwarden-client";
const { POSTWARDEN_URL: url = "", POSTWARDEN_API_KEY: key = "" } = process.env;
const client = new Postwarden({ url, key });
const check = await client.createVerification({ body: { email: "deliverable@example.com" } });
console.log(check.status, check.status === "completed" ? check.result.sub_status : "");
const content = "email\\ndeliverable@example.com\\nundeliverable@example.com\\n";
const job = await client.createBulkVerification({ body: { content, contentType: "text/csv" }, name: "two" });
if (!("id" in job)) throw new Error("a preview");
console.log(job.name);
let got = await client.getBulkVerification({ jobId: job.id });
while (got.status !== "completed") got = await client.getBulkVerification({ jobId: job.id });
console.log((await client.listBulkItems({ jobId: job.id })).emails.length, "rows");
console.log((await client.getBulkResults({ jobId: job.id })).slice(0, 6));
const { domain } = await client.enrolDmarcDomain({ body: { domain: "example.com" } });
console.log("advice for", (await client.getDmarcAdvice({ id: domain.id })) && domain.domain);
await client.createVerification({ body: { email: "undeliverable@example.com" }, idempotencyKey: "one" });
await client.createVerification({ body: { email: "undeliverable@example.com" }, idempotencyKey: "one" });
await client.createVerification({ body: { email: "a@example.com" } });
let [checks, pages] = [0, 0];
for await (const page of client.pages("listVerifications", { limit: 2 })) {
  pages++;
  checks += page.verifications.length;
}
console.log(checks, "checks on", pages, "pages");
const refused = async (call: () => Promise<unknown>) => {
  try {
    await call();
  } catch (error) {
    if (error instanceof PostwardenError) console.log(error.status, error.code);
  }
};
await refused(() => client.getVerification({ id: "../account" }));
await refused(() => client.createVerification({ body: { email: "" } }));
await refused(() => new Postwarden({ url, key: "wrong" }).getAccount());
try {
  new Postwarden({ url: "example.com", key });
} catch (error) {
  console.log(String(error).split(": ")[1]);
}
await client.deleteVerification({ id: check.id });
console.log("deleted");
`;

const PYTHON = `
import os
from postwarden_client import Postwarden, PostwardenError, Upload
url, key = os.environ["POSTWARDEN_URL"], os.environ["POSTWARDEN_API_KEY"]
client = Postwarden(url, key)
check = client.create_verification(body={"email": "deliverable@example.com"})
print(check["status"], check["result"]["sub_status"])
job = client.create_bulk_verification(body=Upload(b"email\\ndeliverable@example.com\\nundeliverable@example.com\\n", "text/csv"), name="two")
print(job["name"])
while client.get_bulk_verification(job_id=job["id"])["status"] != "completed":
    pass
print(len(client.list_bulk_items(job_id=job["id"])["emails"]), "rows")
print(client.get_bulk_results(job_id=job["id"])[:6])
domain = client.enrol_dmarc_domain(body={"domain": "example.com"})["domain"]
print("advice for", client.get_dmarc_advice(id=domain["id"]) and domain["domain"])
client.create_verification(body={"email": "undeliverable@example.com"}, idempotency_key="one")
client.create_verification(body={"email": "undeliverable@example.com"}, idempotency_key="one")
client.create_verification(body={"email": "a@example.com"})
pages = list(client.pages("list_verifications", limit=2))
print(sum(len(page["verifications"]) for page in pages), "checks on", len(pages), "pages")
def refused(call):
    try:
        call()
    except PostwardenError as error:
        print(error.status, error.code)
refused(lambda: client.get_verification(id="../account"))
refused(lambda: client.create_verification(body={"email": ""}))
refused(lambda: Postwarden(url, "wrong").get_account())
try:
    Postwarden("example.com", key)
except ValueError as error:
    print(error)
client.delete_verification(id=check["id"])
print("deleted")
`;

/** Resolves every annotation, and compiles for the oldest version that is supported. */
const PYTHON_TYPES = `
import ast, inspect, typing, postwarden_client as client
ast.parse(open(client.__file__).read(), feature_version=(3, 9))
ast.parse(open("readme.py").read())
for value in list(vars(client).values()) + list(vars(client.Postwarden).values()):
    if inspect.isfunction(value) or hasattr(value, "__required_keys__"):
        typing.get_type_hints(value, vars(client))
print("resolved")
`;

/** The program in the README of a client. */
const exampleOf = async (language: string, client: string): Promise<string> => {
  const readme = new URL(`../../scripts/release/clients/README-${client}.md`, import.meta.url).pathname;
  const text = await Bun.file(readme).text();
  return text.split(`\`\`\`${language}\n`)[1]?.split("```")[0] ?? "no example";
};

const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, target: "ESNext", module: "NodeNext", moduleResolution: "NodeNext" },
    ...{ lib: ["ESNext", "DOM"], types: [], skipLibCheck: false },
  },
  include: ["*.ts"],
};

describe("generated clients", () => {
  test("the TypeScript client is typed and calls the running service", async () => {
    const globals = "declare const process: { env: Record<string, string | undefined> };\n";
    const wrong = `import type { Postwarden } from "postwarden-client";
export const wrong = (client: Postwarden) => [
  // @ts-expect-error
  client.createVerification({ body: { emial: "a@example.com" } }),
  // @ts-expect-error
  client.getVerification({}),
  // @ts-expect-error
  client.pages("createVerification", {}),
];
`;
    const config = { "tsconfig.json": JSON.stringify(TSCONFIG), "package.json": '{"type":"module"}' };
    writeFiles(folder, {
      ...config,
      "use.ts": TYPESCRIPT,
      "globals.d.ts": globals,
      "wrong.ts": wrong,
      "readme.ts": await exampleOf("ts", "typescript"),
    });
    const checked = await run(
      process.execPath,
      "check",
      "--no-script",
      "--no-pretty",
      "-p",
      join(folder, "tsconfig.json"),
      `--cwd=${folder}`,
    );
    expect([checked.out.filter((line) => line.includes("error")), checked.status]).toEqual([[], 0]);
    const { out, err } = await run(process.execPath, "use.ts");
    expect([out, err]).toEqual([EXPECTED, ""]);
  });

  test("the Python client is typed and calls the running service", async () => {
    writeFiles(folder, {
      "use.py": PYTHON,
      "types.check.py": PYTHON_TYPES,
      "readme.py": await exampleOf("python", "python"),
    });
    expect((await run("python3", "types.check.py")).err).toBe("");
    const { out, err } = await run("python3", "use.py");
    expect([out, err]).toEqual([EXPECTED, ""]);
  });

  test("the packages are the same each time, and have version and licence", async () => {
    const [first, second] = ["a", "b"].map((name) => mkdtempSync(join(folder, name)));
    if (first === undefined || second === undefined) throw new Error("no folder");
    const names = await buildClients(first, VERSION);
    await buildClients(second, VERSION);
    expect(readdirSync(first).toSorted()).toEqual([...names].toSorted());
    const sums = (path: string) =>
      Promise.all(names.map(async (name) => Bun.hash(await Bun.file(join(path, name)).arrayBuffer())));
    expect(await sums(first)).toEqual(await sums(second));
    const program = `import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
assert wheel.testzip() is None
print("Version: ${VERSION}" in wheel.read("postwarden_client-${VERSION}.dist-info/METADATA").decode(), "License: MIT" in wheel.read("postwarden_client-${VERSION}.dist-info/METADATA").decode())`;
    expect((await run("python3", "-c", program, join(first, names[1] ?? ""))).out).toEqual(["True True"]);
  });
});
