import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestApp } from "../testing/app.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();
const app = new TestApp();
const key = app.newKey({ scopes: ["verifications:write"] });
const keyFile = join(dataDir, "..", "key");
let server: Bun.Server<undefined>;

beforeAll(() => {
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => app.handle(request) });
  writeFileSync(keyFile, `${key.key}\n`);
});
afterAll(async () => {
  await server.stop(true);
  app.close();
});

const never = () => Promise.withResolvers<string>().promise;

interface Message {
  readonly id?: number;
  readonly method: string;
  readonly params?: object;
}

/** Runs the command with these messages; standard input stays open until each request has its answer. */
const talk = async (messages: readonly Message[], url = server.url.href) => {
  const lines: string[] = [];
  const answered = Promise.withResolvers<void>();
  const expected = messages.filter(({ id }) => id !== undefined).length;
  async function* stdin() {
    // As from a pipe: bytes that are no `Buffer`, with all messages in one piece.
    const text = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");
    yield new TextEncoder().encode(text);
    await answered.promise;
  }
  const write = async (bytes: Uint8Array) => {
    lines.push(...Buffer.from(bytes).toString().trim().split("\n"));
    if (lines.length >= expected) answered.resolve();
  };
  const { status, err } = await run(["mcp", "--url", url, "--key-file", keyFile], {
    untilSignal: never,
    stdoutKind: "pipe",
    streams: { stdin, write },
  });
  return { status, err, answers: lines.map((line): unknown => JSON.parse(line)) };
};

const HELLO: Message = {
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

test("an agent verifies an address of the running service, with the tools of its key", async () => {
  const { status, answers, err } = await talk([
    HELLO,
    { method: "notifications/initialized" },
    { id: 2, method: "tools/list" },
    {
      id: 3,
      method: "tools/call",
      params: { name: "createVerification", arguments: { body: { email: "deliverable@example.com" } } },
    },
    { id: 4, method: "tools/call", params: { name: "listDmarcDomains", arguments: {} } },
  ]);
  expect([status, err]).toEqual([0, ""]);
  const of = (id: number) =>
    answers.find(
      (answer) => JSON.stringify(answer).includes(`"id":${id}}`) || JSON.stringify(answer).includes(`"id":${id},`),
    );
  expect(of(1)).toMatchObject({ result: { serverInfo: { name: "postwarden" } } });
  expect(JSON.stringify(of(2))).toContain('"name":"createVerification"');
  expect(JSON.stringify(of(2))).not.toContain("Dmarc");
  expect(JSON.stringify(of(3))).toContain("mailbox_exists");
  expect(of(4)).toMatchObject({ error: { message: "There is no tool listDmarcDomains for this key." } });
});

test.each<[string, readonly string[], Readonly<Record<string, string>>, string, number]>([
  ["no URL", [], { POSTWARDEN_API_KEY: "x" }, "Set POSTWARDEN_URL or --url", 2],
  ["no key", ["--url", "http://127.0.0.1:1"], {}, "Set POSTWARDEN_API_KEY", 2],
  [
    "a URL that is none",
    ["--url", "file:///etc/passwd"],
    { POSTWARDEN_API_KEY: "x" },
    "is not the URL of a service",
    2,
  ],
  [
    "a password in the URL",
    ["--url", "http://a:b@localhost"],
    { POSTWARDEN_API_KEY: "x" },
    "is not the URL of a service",
    2,
  ],
  [
    "a file that is missing",
    ["--url", "http://127.0.0.1:1", "--key-file", "/nonexistent"],
    {},
    "The key cannot be read: /nonexistent: no such file",
    1,
  ],
  [
    "a service that is down",
    ["--url", "http://127.0.0.1:1"],
    { POSTWARDEN_API_KEY: "x" },
    "The service cannot be reached",
    1,
  ],
])("%s", async (_, args, environment, problem, status) => {
  const ran = await run(["mcp", ...args], { environment });
  expect(ran.problem).toContain(problem);
  expect(ran.status).toBe(status);
});

test("a wrong key is said at once", async () => {
  const { status, problem } = await run(["mcp"], {
    environment: { POSTWARDEN_URL: server.url.href, POSTWARDEN_API_KEY: "pw_live_wrong" },
  });
  expect([status, problem]).toEqual([
    1,
    expect.stringContaining("The service answered 401. Missing or invalid API key."),
  ]);
});
