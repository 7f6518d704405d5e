import { expect, test } from "bun:test";
import { nextTurn } from "../../foundation/base/clock.ts";
import { createLog } from "../../foundation/base/log.ts";
import { OPERATOR } from "../../foundation/base/on-behalf-of.ts";
import { createTestClock, type TestClock } from "../../testing/clock.ts";
import { createMailNetworks, type MailNetwork, type MailNetworkOptions } from "../../testing/mail-network.ts";
import type { PlannedRetry } from "../evidence.ts";
import { type AttemptOrder, type Attempts, type MadeAttempt, OwnAttempts } from "../attempts.ts";
import type { PausedReason } from "../smtp/outages.ts";
import { PoolClosed } from "../smtp/pool.ts";
import { unpackEvidence } from "../store.ts";
import { EngineServer, type EngineServerDeps } from "./engine-server.ts";
import { EngineThread, type StartThread } from "./engine-thread.ts";
import { type FromThread, IDLE_STATE, type NumberedOrder } from "./messages.ts";
import { NetworkTally } from "./network-tally.ts";

const networkOf = createMailNetworks();

/** Until the outcomes of attempts that are over have been posted. */
const settle = async (): Promise<void> => {
  await nextTurn();
  await nextTurn();
};

const orderOf = (submitted: string, more: Partial<AttemptOrder> = {}): AttemptOrder => ({
  ...{ submitted, isCell: false, before: null, accountId: "a", onBehalfOf: OPERATOR, duringOutage: "conclude" },
  ...more,
});

/** Sessions that the test plays. */
const playedSmtp = (drain: () => Promise<void> = async () => undefined) => {
  const listeners: Array<() => void> = [];
  const played = {
    isStopped: false,
    paused: null as PausedReason | null,
    mayTry: false,
    shortageMs: Number.NEGATIVE_INFINITY,
    open: 0,
  };
  const smtp: EngineServerDeps["smtp"] = {
    outages: {
      current: () => played.paused,
      findings: () => [],
      lastShortageMs: () => played.shortageMs,
      onChange: (listener) => void listeners.push(listener),
      takeTurn: () => played.mayTry,
      stop() {
        played.isStopped = true;
      },
    },
    egresses: { states: () => [], findings: () => [] },
    pacing: { countCooldowns: () => 0 },
    pool: { connections: () => played.open, waiting: () => 0, hosts: () => 0, drain },
  };
  const change = (): void => {
    for (const listener of listeners) listener();
  };
  return { smtp, played, change };
};

const serverOf = (deps: Partial<EngineServerDeps> & { readonly clock: TestClock }) => {
  const posted: FromThread[] = [];
  const server = new EngineServer({
    attempts: { make: async () => ({ kind: "repeat" }), fail: () => ({ kind: "repeat" }) },
    smtp: playedSmtp().smtp,
    // Everything that is posted can be copied to another thread.
    post: (message) => void posted.push(structuredClone(message)),
    tally: new NetworkTally(),
    processorMs: () => 0,
    ...deps,
  });
  const kinds = () => posted.map(({ kind }) => kind);
  return { server, posted, kinds };
};

/** Attempts by an engine on the other side of the seam. */
const throughSeam = (
  { engine, clock, pool }: MailNetwork,
  matchSuppression: (email: string) => string | null,
): Attempts => {
  const { smtp } = playedSmtp(() => pool.drain());
  const start: StartThread = ({ message }) => {
    const server = new EngineServer({
      attempts: new OwnAttempts(engine),
      ...{ smtp, clock, tally: new NetworkTally(), processorMs: () => 0 },
      post: (told) => message(structuredClone(told)),
    });
    return { post: (order) => server.receive(structuredClone(order)), terminate: () => undefined };
  };
  const log = createLog("silent", clock, () => undefined);
  const deps = { start, clock, log, matchSuppression, own: new OwnAttempts(engine), idle: IDLE_STATE };
  return new EngineThread({ ...deps, noteNetwork: () => undefined });
};

const host = (script: NonNullable<NonNullable<MailNetworkOptions["hosts"]>[number]["script"]>): MailNetworkOptions => ({
  hosts: [{ name: "mx.x.example", script }],
});

const readable = (made: MadeAttempt) =>
  made.kind === "repeat" ? made : { ...made, evidence: made.evidence === null ? null : unpackEvidence(made.evidence) };

const SUPPRESSED = "toxic@x.example";
const matchSuppression = (email: string): string | null => (email === SUPPRESSED ? email : null);

const ATTEMPTS: ReadonlyArray<
  readonly [what: string, submitted: string, network: MailNetworkOptions, isCell?: boolean]
> = [
  ["accepted", "ada@x.example", host({ rcpt: (to) => (to.startsWith("ada@") ? "250 Ok" : "550 5.1.1 Unknown") })],
  ["catch-all", "ada@x.example", {}],
  ["refused", "ada@x.example", host({ rcpt: () => "550 5.1.1 No such user" })],
  ["greylisted", "ada@x.example", host({ rcpt: () => "450 4.2.0 Greylisted, please come back later" })],
  ["blocked", "ada@x.example", host({ banner: () => "554 5.7.1 You are on our blocklist" })],
  ["unreachable", "ada@x.example", { hosts: [{ name: "mx.x.example", unconnectable: "refused_or_unreachable" }] }],
  ["broken here", "ada@x.example", { hosts: [{ name: "mx.x.example", unconnectable: "local_failure" }] }],
  ["without a domain", "ada@nowhere.example", {}],
  ["without DNS", "ada@x.example", { zone: { "x.example": "servfail" } }],
  ["suppressed", SUPPRESSED, {}],
  ["a cell", "Ada <ada@x.example>", {}, true],
  ["no cell", "nothing", {}, true],
  ["no address", "Ada <ada@x.example>", {}],
];

test.each(ATTEMPTS)(
  "an attempt comes to the same here and in another thread: %s",
  async (_, submitted, options, isCell = false) => {
    const order = orderOf(submitted, { isCell });
    const here = new OwnAttempts(networkOf({ ...options, matchSuppression }).engine);
    const there = throughSeam(networkOf(options), matchSuppression);
    const first = await here.make(order);
    expect(readable(await there.make(order))).toEqual(readable(first));
    if (first.kind !== "retry") return;
    const again = { ...order, before: first.evidence };
    expect(readable(await there.make(again))).toEqual(readable(await here.make(again)));
  },
);

test("outcomes of one turn travel together, also those of bugs and of a closed pool", async () => {
  const clock = createTestClock();
  const make = async ({ submitted }: AttemptOrder): Promise<MadeAttempt> => {
    if (submitted === "bug") throw new Error("a bug");
    if (submitted === "closed") throw new PoolClosed();
    return { kind: "repeat" };
  };
  const { server, posted } = serverOf({ clock, attempts: { make, fail: () => ({ kind: "repeat" }) } });
  const orders = ["made", "bug", "closed"].map((text, number) => ({ ...orderOf(text), number }));
  server.receive({ kind: "orders", orders });
  await settle();
  expect(posted).toEqual([
    {
      kind: "outcomes",
      delay: null,
      outcomes: [
        { number: 0, kind: "made", made: { kind: "repeat" } },
        { number: 1, kind: "bug", error: new Error("a bug") },
        { number: 2, kind: "closed" },
      ],
    },
  ]);
});

test("the state is posted while attempts are under way and connections are open, and not after that", async () => {
  const clock = createTestClock();
  const { promise, resolve } = Promise.withResolvers<MadeAttempt>();
  const { smtp, played } = playedSmtp();
  const { server, kinds, posted } = serverOf({
    ...{ clock, smtp },
    attempts: { make: () => promise, fail: () => ({ kind: "repeat" }) },
  });
  server.receive({ kind: "orders", orders: [{ ...orderOf("ada@x.example"), number: 1 }] });
  played.open = 1;
  await clock.advance(1_000);
  expect(kinds()).toEqual(["state", "state"]);
  expect(posted[0]).toMatchObject({ state: { connections: 1 } });
  resolve({ kind: "repeat" });
  await settle();
  await clock.advance(500);
  played.open = 0;
  await clock.advance(5_000);
  expect(kinds()).toEqual(["state", "state", "outcomes", "state", "state"]);
});

test("an outage and a shortage of sockets are posted at once", async () => {
  const clock = createTestClock();
  const { smtp, played, change } = playedSmtp();
  const { server, posted } = serverOf({ clock, smtp });
  Object.assign(played, { paused: "dns_unavailable", mayTry: true });
  change();
  expect(posted).toMatchObject([{ kind: "state", mayTry: true, state: { paused: "dns_unavailable" } }]);
  await clock.advance(100);
  played.shortageMs = 90;
  server.receive({ kind: "orders", orders: [{ ...orderOf("ada@x.example"), number: 1 }] });
  await settle();
  expect(posted.at(-1)).toMatchObject({ kind: "state", state: { shortageAgoMs: clock.monotonicMs() - 90 } });
});

test("what was counted is posted with the state", async () => {
  const clock = createTestClock();
  const tally = new NetworkTally();
  const { server, posted } = serverOf({ clock, tally });
  tally.dnsSeconds.observe(0.1);
  server.receive({ kind: "orders", orders: [{ ...orderOf("ada@x.example"), number: 1 }] });
  await clock.advance(500);
  expect(posted).toContainEqual(expect.objectContaining({ tally: expect.objectContaining({ dnsSeconds: [0.1] }) }));
});

test("the delay of the loop is measured while addresses of lists are under way", async () => {
  const clock = createTestClock();
  const { promise, resolve } = Promise.withResolvers<MadeAttempt>();
  const { server, posted } = serverOf({ clock, attempts: { make: () => promise, fail: () => ({ kind: "repeat" }) } });
  const order: NumberedOrder = { ...orderOf("a", { onBehalfOf: { account: null, priority: "bulk" } }), number: 1 };
  server.receive({ kind: "orders", orders: [order] });
  await clock.advance(20);
  resolve({ kind: "repeat" });
  await settle();
  expect(posted).toMatchObject([{ kind: "outcomes", delay: { lateMs: 0, ownMs: 0 } }]);
  // Nothing is measured and posted any more.
  await clock.advance(2_000);
  expect(clock.pending()).toBe(0);
});

test("the delay of the loop is not measured for single checks", async () => {
  const clock = createTestClock();
  const { promise, resolve } = Promise.withResolvers<MadeAttempt>();
  const { server, posted } = serverOf({ clock, attempts: { make: () => promise, fail: () => ({ kind: "repeat" }) } });
  const order = { ...orderOf("a", { onBehalfOf: { account: null, priority: "realtime" } }), number: 1 };
  server.receive({ kind: "orders", orders: [order] });
  await clock.advance(20);
  resolve({ kind: "repeat" });
  await settle();
  expect(posted).toMatchObject([{ kind: "outcomes", delay: null }]);
});

test("evidence is posted without what else is in its buffer", async () => {
  const clock = createTestClock();
  const evidence = new Uint8Array(1_000).subarray(10, 13);
  const traces = { attempts: 1, provider: null, finding: null };
  const retry = { reason: "greylisted", wait_ms: 60_000, at: "" } as unknown as PlannedRetry;
  const make = async (): Promise<MadeAttempt> => ({ kind: "retry", evidence, retry, ...traces });
  const { server, posted } = serverOf({ clock, attempts: { make, fail: () => ({ kind: "repeat" }) } });
  server.receive({ kind: "orders", orders: [{ ...orderOf("a"), number: 1 }] });
  await settle();
  const [message] = posted;
  const outcome = message?.kind === "outcomes" ? message.outcomes[0] : undefined;
  const made = outcome?.kind === "made" && outcome.made.kind === "retry" ? outcome.made.evidence : null;
  expect([made?.byteLength, made?.buffer.byteLength]).toEqual([3, 3]);
});

test("draining ends every session, then says so", async () => {
  const clock = createTestClock();
  const pool = Promise.withResolvers<void>();
  const { smtp, played } = playedSmtp(() => pool.promise);
  const { server, kinds } = serverOf({ clock, smtp });
  server.receive({ kind: "drain" });
  expect(played.isStopped).toBe(true);
  await settle();
  expect(kinds()).toEqual([]);
  pool.resolve();
  await settle();
  expect(kinds()).toEqual(["state", "drained"]);
});

test("orders that come at once begin a few in each turn, the accounts in turn; those of lists begin at once", async () => {
  // A clock that moves at each look: no turn has time for many of them.
  let nowMs = 0;
  const clock = Object.assign(createTestClock(), { monotonicMs: () => (nowMs += 1) });
  const begun: string[] = [];
  const make = async ({ submitted }: AttemptOrder): Promise<MadeAttempt> => {
    begun.push(submitted);
    return { kind: "repeat" };
  };
  const { server } = serverOf({ clock, attempts: { make, fail: () => ({ kind: "repeat" }) } });
  const by = (account: string, priority: "realtime" | "bulk") => ({ onBehalfOf: { account, priority } });
  const many = Array.from({ length: 200 }, () => orderOf("many", by("many", "realtime")));
  const orders = [...many, orderOf("one", by("one", "realtime")), orderOf("list", by("many", "bulk"))];
  server.receive({ kind: "orders", orders: orders.map((order, number) => ({ ...order, number })) });
  expect(begun.length).toBeLessThan(20);
  expect(begun).toContain("list");
  await settle();
  await settle();
  expect(begun).toContain("one");
  while (begun.length < orders.length) await nextTurn();
});
