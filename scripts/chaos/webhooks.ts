/**
 * `npm run chaos -- --only webhooks [--kills N]`: kills the binary with SIGKILL at random moments while it sends events to receivers of
 * every kind: one that fails now and then, one that limits its rate, one that refuses some events for good, and 300 that hang. Then
 * proves that nothing was lost, that the events about each subject first came in their order, that the limit was kept, and that
 * nobody waited for those that hang.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { newId } from "../../src/foundation/base/secrets.ts";
import { openDb } from "../../src/foundation/db/open.ts";
import { command, createKey, kill, startServer } from "../harness/binary.ts";

const { values } = parseArgs({ options: { kills: { type: "string", default: "10" } } });
const kills = Number(values.kills);
const SUBJECTS = 20;
const EVENTS_PER_SUBJECT = 30;
const HANGING = 300;
/** Events that come one by one to the receiver that limits its rate. */
const LATE = 40;
const UP_MS_MAX = 1_500;
const END_MS_MAX = 120_000;
const LIMIT_S = 3;
/** What was on its way already, and what comes a little early, is no fault, also on a machine that does other things. */
const LIMIT_MARGIN_MS = 500;
/** Within this time the receiver reads what a killed process had sent. */
const READ_MS = 250;
/** How long events for receivers that answer may take beside those that hang. */
const PROMPT_MS_MAX = 8_000;

const folder = mkdtempSync(join(tmpdir(), "postwarden-chaos-webhooks-"));
const env = {
  POSTWARDEN_DATA_DIR: join(folder, "data"),
  POSTWARDEN_PORT: "0",
  POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
  POSTWARDEN_DNSBL_SIGNAL: "off",
  POSTWARDEN_LOG_LEVEL: "info",
};

/** First arrivals at each subject, in their order. */
const arrivals = new Map<string, string[]>();
const seen = new Map<string, number>();
/** Events that failed once: a second failure would wait for five minutes. */
const once = new Set<string>();
let limitedUntilMs = 0;
let tooEarly = 0;
const hung = new Set<string>();

const arrive = (id: string, subject: string): void => {
  if (seen.has(id)) return;
  seen.set(id, Date.now());
  arrivals.set(subject, [...(arrivals.get(subject) ?? []), id]);
};

const receiver = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 60,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const id = request.headers.get("webhook-id") ?? "";
    const { data } = (await request.json()) as { data: { subject: string; n: number } };
    if (pathname.startsWith("/hang")) {
      hung.add(id);
      return Promise.withResolvers<Response>().promise;
    }
    if (pathname === "/limited") {
      const isAfter = Date.now() > limitedUntilMs - LIMIT_S * 1_000 + LIMIT_MARGIN_MS;
      if (isAfter && Date.now() < limitedUntilMs - LIMIT_MARGIN_MS) tooEarly++;
      if (Date.now() >= limitedUntilMs && Math.random() < 0.03 && !once.has(id)) {
        once.add(id);
        limitedUntilMs = Date.now() + LIMIT_S * 1_000;
        return new Response(null, { status: 429, headers: { "retry-after": String(LIMIT_S) } });
      }
    }
    if (pathname === "/rejects" && data.n === 0) return new Response("not this one", { status: 422 });
    if (pathname === "/flaky" && Math.random() < 0.01 && !once.has(id)) {
      once.add(id);
      return new Response(null, { status: 500 });
    }
    arrive(`${id}${pathname}`, `${data.subject}${pathname}`);
    return new Response(null, { status: 204 });
  },
});
const base = `http://127.0.0.1:${receiver.port}`;

command(["migrate"], env);
const account = command<{ id: string }>(["accounts", "create", "chaos"], env).id;
const key = createKey("chaos", env);

const write = (events: ReadonlyArray<{ subject: string; n: number; url: string }>): void => {
  const opened = openDb(join(env.POSTWARDEN_DATA_DIR, "postwarden.db"));
  if (!opened.ok) throw new Error(opened.error.kind);
  const { value: db } = opened;
  db.transact(() => {
    for (const { subject, n, url } of events) {
      db.sqlite.run(
        "INSERT INTO outbox (id, account_id, mode, type, subject, data, url, created_at_ms) VALUES (?, ?, 'live', 'blacklist.listed', ?, ?, ?, ?)",
        [newId(), account, subject, JSON.stringify({ subject, n }), url, Date.now()],
      );
    }
  });
  db.close();
};

const paths = ["/flaky", "/limited", "/rejects"];
const events = Array.from({ length: EVENTS_PER_SUBJECT }, (_, n) =>
  Array.from({ length: SUBJECTS }, (__, at) => paths.map((path) => ({ subject: `target:${at}`, n, url: base + path }))),
).flat(2);
const hanging = Array.from({ length: HANGING }, (_, n) => ({
  subject: `target:h${n}`,
  n: 1,
  url: `${base}/hang/${n}`,
}));
write([...hanging, ...events]);
// Events behind a rejected one are sent after its third attempt, in five minutes: the test cancels them instead.
const expected = SUBJECTS * EVENTS_PER_SUBJECT * 2 + SUBJECTS * (EVENTS_PER_SUBJECT - 1);

for (let n = 0; n < kills; n++) {
  const server = await startServer(env);
  await Bun.sleep(Math.random() * UP_MS_MAX);
  await kill(server, "SIGKILL");
  // A killed process may not have stored the limit, or not have seen the response to what it sent last.
  await Bun.sleep(READ_MS);
  limitedUntilMs = 0;
}

const server = await startServer(env);
const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
  const init = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(server.url + path, { method, headers: { authorization: `Bearer ${key}` }, ...init });
  return (await response.json()) as Record<string, unknown>;
};
const startedMs = Date.now();
// Events that nobody has seen, at a URL of its own: they come while all the others hang.
write(Array.from({ length: 20 }, (_, n) => ({ subject: `target:prompt${n}`, n: 1, url: `${base}/prompt/${n}` })));
const promptOnes = () => [...seen.keys()].filter((id) => id.includes("/prompt/")).length;
while (promptOnes() < 20 && Date.now() < startedMs + END_MS_MAX) await Bun.sleep(50);
const promptMs = Date.now() - startedMs;
let cancelled = 0;
let late = 0;
while (seen.size < expected + 20 + LATE && Date.now() < startedMs + END_MS_MAX) {
  await Bun.sleep(250);
  // Something is always due at the receiver that limits its rate, also while it has just asked for a pause.
  if (late < LATE) write([{ subject: `target:late${late++}`, n: 1, url: `${base}/limited` }]);
  const { deliveries } = await ask("GET", `/v1/webhooks/deliveries?status=pending&url=${base}/rejects&limit=1000`);
  for (const delivery of deliveries as Array<{ id: string; event: { data: { n: number } }; attempts: number }>) {
    if (delivery.event.data.n !== 0 || delivery.attempts === 0) continue;
    await ask("POST", `/v1/webhooks/deliveries/${delivery.id}/cancel`);
    cancelled++;
  }
}
await kill(server, "SIGTERM");
void receiver.stop(true);
rmSync(folder, { recursive: true });

const outOfOrder = [...arrivals.values()].filter((ids) => ids.join() !== ids.toSorted().join()).length;
const result = {
  kills,
  lost: expected + 20 + LATE - seen.size,
  subjects_out_of_order: outOfOrder,
  requests_within_a_limit: tooEarly,
  cancelled,
  hanging_receivers_called: hung.size,
  prompt_ms: promptMs,
};
console.log(JSON.stringify(result));
const isRight = result.lost === 0 && outOfOrder === 0 && tooEarly === 0 && promptMs < PROMPT_MS_MAX;
process.exit(isRight ? 0 : 1);
