import { describe, expect, test } from "bun:test";
import { settle } from "../../testing/clock.ts";
import { A, B, failureOf, poolOf, question, replyOf, unsaid, yes } from "../../testing/probe-pool.ts";
import { IDLE_MS, PoolClosed } from "./pool.ts";

const DEAD = failureOf("connect_timeout", "connect");
const CROWDED = { ...failureOf("reply", "banner"), reply: replyOf("421 4.7.0 Too many connections") };
const SOON_MS = 500;

describe("a host that keeps timing out", () => {
  test("is left alone, and its whole queue is answered from memory, with the time since when", async () => {
    let dials = 0;
    const { pool, clock } = poolOf({ connectionsPerHostMax: 1 }, yes, ({ address }) => {
      if (address === A.address) dials++;
      return address === A.address ? DEAD : null;
    });
    const startedAtMs = clock.nowMs();
    const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => pool.probe(A, question(`a${at}`, "r"))));
    expect(dials).toBe(3);
    expect(answers.slice(0, 3).map(({ cooldownSinceMs }) => cooldownSinceMs)).toEqual(Array(3).fill(undefined));
    for (const answer of answers.slice(3)) {
      expect(answer).toMatchObject({ connection: "none", cooldownSinceMs: startedAtMs, tookMs: 0, mail: null });
      expect([answer.rcpts, answer.failure?.kind]).toEqual([[null, null], "connect_timeout"]);
    }
    expect((await pool.probe(B, question("b"))).rcpts[0]?.code).toBe(250);
    await clock.advance(IDLE_MS);
    expect([pool.waiting(), pool.connections(), pool.hosts(), clock.pending()]).toEqual([0, 0, 0, 0]);
  });

  test("is probed again after its cooldown, and without restriction once it has responded", async () => {
    let isDead: boolean = true;
    const { pool, clock } = poolOf({ connectionsPerHostMax: 1 }, yes, () => (isDead ? DEAD : null));
    await Promise.all(["a", "b", "c", "d"].map((name) => pool.probe(A, question(name))));
    isDead = false;
    await clock.advance(59_000);
    expect((await pool.probe(A, question("e"))).cooldownSinceMs).toBe(clock.nowMs() - 59_000);
    await clock.advance(1_000);
    expect((await pool.probe(A, question("f"))).connection).toBe("new");
  });
});

describe("a host that has shut us out", () => {
  const PAUSE_MS = 60_000;
  const shutOut = { kind: "shut_out", pauseMs: PAUSE_MS } as const;

  test("gets nothing until the pause is over, not even on an open connection, while other hosts are probed", async () => {
    const { pool, clock, asking, answer } = poolOf({ connectionsPerHostMax: 2 });
    void pool.probe(A, question("a"));
    void pool.probe(A, question("b"));
    void pool.probe(A, question("c"));
    void pool.probe(B, question("other"));
    await settle();
    pool.notePace(A, shutOut);
    await answer();
    await answer();
    pool.notePace(A, { kind: "answered" });
    void pool.probe(A, question("d"));
    await clock.advance(PAUSE_MS - 1);
    expect(asking()).toEqual(["other"]);
    await clock.advance(1);
    expect(asking()).toEqual(["other", "c", "d"]);
  });

  test("a shorter pause does not end a longer one", async () => {
    const { pool, clock, asking } = poolOf();
    pool.notePace(A, shutOut);
    pool.notePace(A, { kind: "shut_out", pauseMs: 1 });
    void pool.probe(A, question("a"));
    await clock.advance(PAUSE_MS - 1);
    expect(asking()).toEqual([]);
    await clock.advance(1);
    expect(asking()).toEqual(["a"]);
  });

  test("a drain in the middle of its pause refuses what waits and leaves no timer", async () => {
    const { pool, clock, answer } = poolOf({ connectionsPerHostMax: 1 });
    const running = pool.probe(A, question("a"));
    const waiting = pool.probe(A, question("b"));
    await settle();
    pool.notePace(A, shutOut);
    const drained = pool.drain();
    await expect(waiting).rejects.toBeInstanceOf(PoolClosed);
    await answer();
    await running;
    await drained;
    expect([clock.pending(), pool.waiting(), pool.connections()]).toEqual([0, 0, 0]);
  });
});

describe("a host that says we come too often", () => {
  test("gets a pause and half the connections, while other hosts are probed", async () => {
    const { pool, clock, asking, answer } = poolOf({ connectionsPerHostMax: 4 });
    pool.notePace(A, { kind: "rate_limited" });
    for (const name of ["a", "b", "c", "d"]) void pool.probe(A, question(name));
    void pool.probe(B, question("other"));
    await clock.advance(SOON_MS - 1);
    expect(asking()).toEqual(["other"]);
    await answer();
    await clock.advance(1);
    expect(asking()).toEqual(["a", "b"]);
    await answer();
    await answer();
    expect(asking()).toEqual(["c", "d"]);
  });

  test("may still be probed on an open connection", async () => {
    const { pool } = poolOf({}, yes);
    await pool.probe(A, question("a"));
    pool.notePace(A, { kind: "rate_limited" });
    expect((await pool.probe(A, question("b"))).connection).toBe("reused");
  });

  test("a drain in the middle of its pause refuses what waits and leaves no timer", async () => {
    const { pool, clock } = poolOf();
    pool.notePace(A, { kind: "rate_limited" });
    const waiting = pool.probe(A, question("a"));
    await settle();
    expect(clock.pending()).toBe(1);
    const drained = pool.drain();
    await expect(waiting).rejects.toBeInstanceOf(PoolClosed);
    await drained;
    expect([clock.pending(), pool.waiting(), pool.connections()]).toEqual([0, 0, 0]);
  });
});

describe("421 instead of the banner", () => {
  test("while other connections of ours are open is retried later", async () => {
    let refusals = 1;
    const { pool, clock, sessions, asking, answer } = poolOf({ connectionsPerHostMax: 2 }, undefined, () =>
      sessions.length > 0 && refusals-- > 0 ? CROWDED : null,
    );
    const first = pool.probe(A, question("first"));
    const second = pool.probe(A, question("second"));
    await settle();
    expect([asking(), pool.waiting()]).toEqual([["first"], 1]);
    await clock.advance(SOON_MS);
    await answer();
    await answer();
    expect((await first).rcpts[0]?.code).toBe(250);
    expect(await second).toMatchObject({ connection: "reused", failure: null });
  });

  test("is the answer of a host at which we are alone", async () => {
    const { pool } = poolOf({}, yes, () => CROWDED);
    const answer = await pool.probe(A, question("a"));
    expect(answer.failure?.reply?.code).toBe(421);
  });

  test("is the answer after the third time", async () => {
    let dials = 0;
    const { pool, clock, sessions } = poolOf({ connectionsPerHostMax: 2 }, undefined, () => {
      if (sessions.length === 0) return null;
      dials++;
      return CROWDED;
    });
    pool.notePace(A, { kind: "answered" });
    void pool.probe(A, question("first"));
    const second = pool.probe(A, question("second"));
    await settle();
    for (let pause = 0; pause < 3; pause++) {
      expect(pool.waiting()).toBe(1);
      for (let at = 0; at < 3; at++) pool.notePace(A, { kind: "answered" });
      await clock.advance(30_000);
    }
    expect((await second).failure?.reply?.code).toBe(421);
    expect([dials, pool.waiting(), pool.connections()]).toEqual([4, 0, 1]);
  });

  test("during a drain is refused like all else that waits", async () => {
    const gate = Promise.withResolvers<void>();
    const { pool, sessions } = poolOf({ connectionsPerHostMax: 2 }, async (asked, session) => {
      if (session === sessions[0]) await gate.promise;
      return session === sessions[0] ? yes(asked) : unsaid(asked, CROWDED);
    });
    const first = pool.probe(A, question("first"));
    await settle();
    const drained = pool.drain();
    gate.resolve();
    expect((await first).rcpts[0]?.code).toBe(250);
    await drained;
    expect(pool.connections()).toBe(0);
  });
});
