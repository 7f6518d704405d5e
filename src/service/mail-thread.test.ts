import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../foundation/base/clock.ts";
import { errorText } from "../foundation/base/errors.ts";
import { waitFor } from "../foundation/base/wait.ts";
import { OPERATOR } from "../foundation/base/on-behalf-of.ts";
import { formatServer } from "../foundation/net/dns.ts";
import { startDnsServer } from "../testing/dns-server.ts";
import { serveZone } from "../testing/dns-wrong.ts";
import { createStubs } from "../testing/smtp-dial.ts";
import type { AttemptOrder } from "../verify/attempts.ts";
import type { Thread } from "../verify/thread/engine-thread.ts";
import type { FromThread } from "../verify/thread/messages.ts";
import { type Config, readConfig } from "./config.ts";
import { createMailThreads } from "./mail-thread.ts";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
const WAIT_MS = 60_000;
const ZONE = { "x.example": { MX: [[10, "mx.x.example"]] }, "mx.x.example": { A: ["127.0.0.1"] } } as const;
const startStub = createStubs();
const closings: Array<() => void> = [];
afterEach(() => {
  for (const close of closings.splice(0)) close();
});

const configOf = (settings: Readonly<Record<string, string>>): Config => {
  const config = readConfig(
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [`POSTWARDEN_${name}`, value])),
  );
  if (!config.ok) throw new Error(config.error.join("\n"));
  return config.value;
};

/** A thread from `main.ts`, between a name server and a mail server of the test. */
const startThread = async () => {
  const dns = await startDnsServer(serveZone(ZONE));
  const stub = startStub({ rcpt: (to) => (to.startsWith("ada@") ? "250 2.1.5 Ok" : "550 5.1.1 No such user") });
  const config = configOf({
    DNS_SERVERS: formatServer(dns.server),
    SMTP_PORT: String(stub.port),
    PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
    DNSBL_SIGNAL: "off",
    // Values of every kind that settings have: they are copied to the thread.
    SOCKS_PROXIES: "",
    BLOCKLIST_KEYS: "",
  });
  const told: FromThread[] = [];
  const waiting = new Set<() => void>();
  const ended = Promise.withResolvers<unknown>();
  const thread: Thread = createMailThreads(
    config,
    MAIN,
  )({
    message(message) {
      told.push(message);
      for (const look of waiting) look();
    },
    ended: ended.resolve,
  });
  closings.push(
    () => thread.terminate(),
    () => dns.stop(),
  );
  /** The first message of a kind. */
  const hear = async <Kind extends FromThread["kind"]>(kind: Kind) => {
    type Message = Extract<FromThread, { readonly kind: Kind }>;
    const isIt = (message: FromThread): message is Message => message.kind === kind;
    const heard = Promise.withResolvers<Message>();
    const look = () => {
      const found = told.find(isIt);
      if (found !== undefined) heard.resolve(found);
    };
    waiting.add(look);
    look();
    const waited = await waitFor(systemClock, heard.promise, { timeoutMs: WAIT_MS });
    if (!waited.ok) throw new Error(`the thread did not say ${kind}: ${JSON.stringify(told)}`);
    return waited.value;
  };
  return { thread, hear, told, ended: ended.promise };
};

const orderOf = (submitted: string, number: number): AttemptOrder & { readonly number: number } => ({
  ...{ number, submitted, isCell: false, before: null, accountId: "a", onBehalfOf: OPERATOR, duringOutage: "conclude" },
  toxic: { entry: null },
});

test("a thread from main.ts verifies addresses, counts what it does, and ends its sessions", async () => {
  const { thread, hear, told, ended } = await startThread();
  thread.post({ kind: "orders", orders: [orderOf("ada@x.example", 1)] });
  const { outcomes } = await hear("outcomes");
  expect(outcomes).toMatchObject([
    { number: 1, kind: "made", made: { kind: "concluded", result: { sub_status: "mailbox_exists" } } },
  ]);
  expect((await hear("state")).state).toMatchObject({ paused: null, egresses: [{ name: "direct" }] });
  thread.post({ kind: "drain" });
  await hear("drained");
  const opened = told.flatMap((message) => (message.kind === "state" ? message.tally.openSeconds.opened : []));
  expect(opened).toEqual([expect.any(Number)]);
  thread.terminate();
  expect(await ended).toBeInstanceOf(Error);
});

test.each([
  ["process.exit(3);", "exit status 3"],
  ["throw new Error('a bug');", "a bug"],
])("a thread that ends by itself says why: %s", async (text, why) => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-thread-"));
  closings.push(() => rmSync(folder, { recursive: true }));
  const program = join(folder, "program.ts");
  writeFileSync(program, text);
  const ended = Promise.withResolvers<unknown>();
  createMailThreads(configOf({}), program)({ message: () => undefined, ended: ended.resolve });
  expect(errorText(await ended.promise)).toContain(why);
});
