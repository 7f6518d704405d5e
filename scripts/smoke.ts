/**
 * `npm run smoke`: drives the compiled binary from an empty directory with an empty environment, as a stranger would.
 * Prints a line a claim and `N passed, M failed`.
 */
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { connect } from "node:tls";
import { selfSignedCertificate } from "../src/foundation/net/self-signed-file.ts";
import { sampleReportMail } from "../src/testing/dmarc-reports.ts";
import { SmtpTestClient } from "../src/testing/smtp-test-client.ts";
import { BINARY, eventually, type Server, startServer } from "./harness/binary.ts";
import { claimGuides } from "./smoke/guides.ts";
import { claimNoSecrets } from "./smoke/secrets.ts";

const binary = resolve(new URL("..", import.meta.url).pathname, process.argv[2] ?? BINARY);
const RECEIVING_MS_MAX = 10_000;
const RENEWED_MS_MAX = 5_000;

let passed = 0;
let failed = 0;
const claim = (what: string, isTrue: boolean, seen: unknown = ""): void => {
  if (isTrue) passed++;
  else failed++;
  console.log(
    `${isTrue ? "ok  " : "FAIL"} ${what}${isTrue ? "" : `: ${typeof seen === "string" ? seen : JSON.stringify(seen)}`}`,
  );
};

const folder = mkdtempSync(join(tmpdir(), "postwarden-smoke-"));
const run = (args: readonly string[], env: Record<string, string> = {}) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([binary, ...args], { cwd: folder, env, stdin: "ignore" });
  return { exitCode, out: stdout.toString(), err: stderr.toString() };
};

/** Starts the server, and waits for the receiver of reports when it has one; what went wrong, as a text. */
const start = async (env: Record<string, string>): Promise<Server | string> => {
  const server = await startServer(env, { cwd: folder, binary }).catch(String);
  if (typeof server !== "string" && "POSTWARDEN_REPORT_LISTEN" in env)
    await eventually(() => server.log().includes("receiving report mail"), RECEIVING_MS_MAX);
  return server;
};

/** Twice, as a terminal's Ctrl-C reaches a process whose parent forwards it: the second must not cut the first short. */
const stopServer = ({ process: child, ended }: Server): Promise<number> => {
  child.kill("SIGINT");
  child.kill("SIGINT");
  return ended;
};

/** DMARC: enrol, upload, read; and a dialogue with the receiver. */
const claimDmarc = async (url: string, { headers, log }: { headers: Record<string, string>; log: string }) => {
  const call = async (
    path: string,
    body?: string | Uint8Array<ArrayBuffer>,
    method = body === undefined ? "GET" : "POST",
  ) => {
    const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) });
    return JSON.parse(await response.text());
  };
  const enrolled = await call("/domains", JSON.stringify({ domain: "merge.example" }));
  const { id } = enrolled.domain ?? {};
  claim("a domain is enrolled and its record merged", enrolled.dns_records?.[0]?.action === "update", enrolled);
  const verified = await call(`/domains/${id}/verify`, "");
  claim("the domain is verified", verified.domain?.status === "active", verified);
  const day = Math.floor(Date.now() / 86_400_000) * 86_400;
  const mail = sampleReportMail({
    domain: "merge.example",
    begin: day,
    rows: [{ count: 7 }, { dkim: "fail", spf: "fail" }],
  });
  const upload = () => call("/reports", new Uint8Array(mail));
  const [first, second] = [await upload(), await upload()];
  claim("a report mail is stored", first.ingestions?.[0]?.outcome === "stored", first);
  claim("a second copy is a duplicate", second.ingestions?.[0]?.outcome === "duplicate", second);
  const summary = await call(`/domains/${id}/summary`);
  claim("its messages are counted", summary.messages === 8 && summary.aligned === 7, summary);
  const port = Number(/"receiving report mail".*?"port":(\d+)/.exec(log)?.[1] ?? 0);
  claim("the receiver listens", port > 0, log);
  if (port === 0) return;
  const client = new SmtpTestClient(port);
  const banner = await client.readReply();
  const codes = await client.codes("EHLO smoke.example");
  const tls = await client.startTls();
  const afterTls = await client.codes(
    "EHLO smoke.example",
    "MAIL FROM:<>",
    "RCPT TO:<nobody@reports.example.net>",
    "QUIT",
  );
  client.destroy();
  claim(
    "the receiver offers TLS with a self-signed certificate",
    banner.startsWith("220") && tls.startsWith("220"),
    `${banner} ${codes} ${tls}`,
  );
  claim(
    "the receiver accepts mail for known tokens only",
    afterTls.trim().split(/\s+/).join(" ").includes("550"),
    afterTls,
  );
};

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** HTTPS: every operation of the document is found, over connections that stay open; a renewed certificate is taken over. */
const claimHttps = async (key: string) => {
  const files = { POSTWARDEN_TLS_CERT: join(folder, "tls.pem"), POSTWARDEN_TLS_KEY: join(folder, "tls.key") };
  const install = (hostName: string) => {
    const { cert, key: privateKey } = selfSignedCertificate(hostName, Date.now());
    writeFileSync(files.POSTWARDEN_TLS_CERT, cert);
    writeFileSync(files.POSTWARDEN_TLS_KEY, privateKey);
  };
  install("first.example");
  const server = await start({ POSTWARDEN_PORT: "0", ...files });
  const url = typeof server === "string" ? "" : server.url;
  claim("it serves HTTPS", url.startsWith("https://"), server);
  if (typeof server === "string") return;
  const tls = { rejectUnauthorized: false };
  const { paths }: Described = JSON.parse(await (await fetch(`${url}/openapi.json`, { tls })).text());
  const lost: string[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const name of Object.keys(methods)) {
      const target = url + path.replace(/\{\w+\}/g, "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52");
      const headers = { authorization: `Bearer ${key}` };
      const response = await fetch(target, { method: name.toUpperCase(), headers, tls });
      const text = await response.text();
      if (response.status === 405 || text.includes("No such path")) lost.push(`${name} ${path}: ${text}`);
    }
  }
  claim("every operation of the OpenAPI document exists", lost.length === 0, lost);
  const curl = Bun.spawnSync(["curl", "-skv", `${url}/healthz`, `${url}/readyz`]);
  const isReused = /Re-?using existing/i.test(curl.stderr.toString());
  claim("several requests use one connection", curl.exitCode === 0 && isReused, curl.stderr.toString());
  const nameNow = async () => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), ...tls });
    await once(socket, "secureConnect");
    const name = socket.getPeerCertificate().subjectaltname;
    socket.destroy();
    return name;
  };
  install("second.example");
  server.process.kill("SIGHUP");
  let name: string | undefined;
  const isRenewed = await eventually(async () => {
    name = await nameNow().catch(() => undefined);
    return name === "DNS:second.example";
  }, RENEWED_MS_MAX);
  claim("SIGHUP loads a renewed certificate", isRenewed, name);
  claim("SIGINT stops the server after a SIGHUP", (await stopServer(server)) === 0);
};

try {
  claim("the binary exists", existsSync(binary), `${binary} is missing: npm run build`);
  const version = run(["version", "--json"]);
  claim("version prints JSON", version.exitCode === 0 && /"version":"\d/.test(version.out), version);
  claim("version creates no files", readdirSync(folder).length === 0, readdirSync(folder));
  claim("no arguments print help and exit with 2", run([]).exitCode === 2, run([]));
  claim("an unknown command exits with 2", run(["nonsense"]).exitCode === 2);
  const typo = run(["config"], { POSTWARDEN_PROT: "1" });
  claim(
    "an unknown setting suggests the nearest and exits with 1",
    typo.exitCode === 1 && typo.err.includes("POSTWARDEN_PORT"),
    typo,
  );
  const address = run(["inspect", "address", "Jürgen@BÜCHER.example"]);
  claim("inspect address", JSON.parse(address.out).normalized_email === "jürgen@xn--bcher-kva.example", address);
  const reply = run(["inspect", "reply", "550 5.1.1 User unknown"]);
  claim("inspect reply", JSON.parse(reply.out).sub_status === "mailbox_not_found", reply);

  const first = await start({ POSTWARDEN_PORT: "0" });
  claim("serve listens with only the port set", typeof first !== "string", first);
  if (typeof first !== "string") {
    const { url } = first;
    claim("healthz", (await fetch(`${url}/healthz`)).status === 200);
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as { openapi?: string };
    claim("openapi.json is 3.1", document.openapi === "3.1.0", document.openapi);
    // The document waits until the service is loaded; the readiness does not.
    claim("readyz", (await fetch(`${url}/readyz`)).status === 200);
    const second = run(["serve"], { POSTWARDEN_PORT: "0" });
    claim(
      "a second server on the same data directory is refused",
      second.exitCode === 1 && second.err.includes("Another server"),
      second,
    );
    claim("a request without a key is 401", (await fetch(`${url}/v1/account`)).status === 401);
    await Bun.sleep(50);
    const status = await stopServer(first);
    claim("SIGINT, even twice, stops the server with status 0", status === 0, String(status));
    const greeting = first.printed();
    const key = /pw_test_[0-9A-Za-z]+/.exec(greeting)?.[0] ?? "";
    claim(
      "the first start prints a live key, a test key and a curl line",
      /pw_live_/.test(greeting) && key !== "" && /curl/.test(greeting),
      greeting,
    );
    claim("no file with the keys remains", !existsSync(join(folder, "data", "first-keys.json")));

    await claimHttps(key);
    const again = await start({
      POSTWARDEN_PORT: "0",
      POSTWARDEN_REPORT_HOST: "reports.example.net",
      POSTWARDEN_REPORT_LISTEN: "127.0.0.1:0",
    });
    if (typeof again === "string") throw new Error(again);
    const headers = { authorization: `Bearer ${key}` };
    const ask = (email: string) =>
      fetch(`${again.url}/v1/email-verifications`, { method: "POST", headers, body: JSON.stringify({ email }) });
    const answer = await ask("mailbox_exists@any.example");
    const body = (await answer.json()) as { id: string; result?: { verdict?: string } };
    claim(
      "the key works after a restart, and a test verification completes",
      body.result?.verdict === "deliverable",
      body,
    );
    claim("the response has rate-limit headers", answer.headers.get("ratelimit-limit") === "1", [...answer.headers]);
    const evidence = await fetch(`${again.url}/v1/email-verifications/${body.id}/evidence`, { headers });
    claim("evidence", evidence.status === 200, await evidence.text());
    await ask("greylisted@any.example");
    const limited = await ask("mailbox_exists@any.example");
    claim(
      "the third request of a free key is rate-limited",
      limited.status === 429 && limited.headers.get("retry-after") === "1",
      limited.status,
    );
    await claimDmarc(`${again.url}/v1/dmarc`, { headers, log: again.log() });
    claim("the server stops again", (await stopServer(again)) === 0);
    const secondGreeting = again.printed();
    claim("the keys are not printed again", secondGreeting === "", secondGreeting);
  }
  const credits = run(["credits", "show", "default", "--json"]);
  claim("credits: 100, none spent by test keys", JSON.parse(credits.out).available === 100, credits);
  await claimNoSecrets({ binary, folder: mkdtempSync(join(folder, "secrets-")), claim });
  await claimGuides({ binary, folder: mkdtempSync(join(folder, "guides-")), claim });
} finally {
  rmSync(folder, { recursive: true, force: true });
}

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
