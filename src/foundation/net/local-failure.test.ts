import { errorCode } from "../base/errors.ts";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { isLocalError, isOutOfDescriptors, isShortage } from "./connector.ts";

/** Uses up every descriptor of its process, asks, and gives some back once it waits to ask again. */
const SCRIPT = `
import { closeSync, openSync } from "node:fs";
const { systemClock: clock } = await import(process.argv[1] + "/base/clock.ts");
const { createDirectConnector } = await import(process.argv[1] + "/net/connector.ts");
const { createDnsResolver } = await import(process.argv[1] + "/net/dns-resolver.ts");
const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
const server = await Bun.udpSocket({ hostname: "127.0.0.1", port: 0, socket: { data(socket, bytes, port, address) {
  const reply = Buffer.from(bytes); reply.writeUInt16BE(0x8183, 2); socket.send(reply, port, address); } } });
const timeouts = { firstAttemptMs: 200, retransmitMs: 200, totalMs: 400 };
const resolverOf = (more) => createDnsResolver({ servers: [{ address: "127.0.0.1", port: server.port }], clock, timeouts, ...more });
const connect = createDirectConnector({ clock, mayConnect: () => true });
const target = { address: "127.0.0.1", port: listener.port, timeoutMs: 2000 };
const said = [];
const held = [];
const fill = () => { try { for (;;) held.push(openSync("/dev/null", "r")); } catch (error) { if (error.code !== "EMFILE") throw error; } };
const free = () => held.splice(0, 8).forEach((one) => closeSync(one));
const longMs = 5000;
const freeing = { ...clock, after: (ms, task) => { if (ms < longMs / 2) free(); return clock.after(ms, task); } };
const tell = async (work) => said.push(await work());
const outcome = (resolver) => async () => (await resolver.resolve("x.example", "MX")).outcome;
await tell(outcome(resolverOf({})));
fill();
await tell(async () => (await connect(target)).error);
fill();
await tell(outcome(resolverOf({})));
fill();
await tell(outcome(resolverOf({ clock: freeing, timeouts: { firstAttemptMs: longMs, retransmitMs: longMs, totalMs: longMs } })));
held.splice(0).forEach((one) => closeSync(one));
await tell(async () => (await connect(target)).ok);
console.log(JSON.stringify(said));
process.exit(0);
`;

test("without descriptors neither a connect nor a query is taken for an answer, and a query waits for one", async () => {
  const source = join(import.meta.dir, "..");
  const argv = ["sh", "-c", 'ulimit -n 100 && exec "$0" -e "$1" "$2"', process.execPath, SCRIPT, source];
  const child = Bun.spawn(argv, { stdout: "pipe", stderr: "pipe" });
  const [text, complaint] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect(complaint).toBe("");
  expect(JSON.parse(text)).toEqual(["nxdomain", "local_failure", "local_failure", "nxdomain", true]);
});

test("a shortage passes, other local errors need not", () => {
  for (const code of ["EMFILE", "ENFILE", "ENOBUFS"])
    expect([isLocalError(code), isShortage(code)]).toEqual([true, true]);
  for (const code of ["EADDRNOTAVAIL", "EPERM"]) expect([isLocalError(code), isShortage(code)]).toEqual([true, false]);
  for (const code of ["ECONNREFUSED", ""]) expect(isLocalError(code)).toBe(false);
  expect(errorCode(Object.assign(new Error("no"), { code: "EMFILE" }))).toBe("EMFILE");
  expect([errorCode(new Error("no")), errorCode("EMFILE")]).toEqual(["", ""]);
  expect(isOutOfDescriptors()).toBe(false);
});
