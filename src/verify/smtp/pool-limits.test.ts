import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { settle } from "../../testing/clock.ts";
import { A, B, failureOf, host, poolOf, question, unsaid, yes } from "../../testing/probe-pool.ts";
import { IDLE_MS, PoolClosed, TURN_MS } from "./pool.ts";

describe("ceilings", () => {
  test("hold for an address under however many names", async () => {
    const { pool, held } = poolOf({ connectionsPerHostMax: 2 });
    for (let at = 0; at < 6; at++) void pool.probe(host(A.address, `mx${at}.example`), question("a"));
    await settle();
    expect([held.length, pool.connections(), pool.waiting()]).toEqual([2, 2, 4]);
  });

  test("hold for an egress, whatever the host, and leave other egresses alone", async () => {
    const { pool, held, answer } = poolOf({ connectionsPerEgressMax: 2 });
    const from = (egress: string, at: number) => ({ ...host(`192.0.2.${at}`), egress });
    for (let at = 1; at <= 4; at++) void pool.probe(from("one", at), question("a"));
    await settle();
    expect([held.length, pool.waiting(), [...pool.fullEgresses()]]).toEqual([2, 2, ["one"]]);
    void pool.probe(from("two", 1), question("b"));
    await settle();
    expect([held.length, pool.connections(), [...pool.fullEgresses()]]).toEqual([3, 3, ["one"]]);
    for (let at = 0; at < 3; at++) await answer();
    await settle();
    expect([pool.waiting(), held.length]).toEqual([0, 2]);
  });

  test("of a provider say nothing about the egress", async () => {
    const { pool } = poolOf({ connectionsPerEgressMax: 1, connectionsPerProviderMax: () => 1 });
    void pool.probe(A, question("a"));
    await settle();
    expect([...pool.fullEgresses()]).toEqual(["direct"]);
  });

  test("a connection that is idle gives way to another host of its egress", async () => {
    const { pool, sessions } = poolOf({ connectionsPerEgressMax: 1 }, yes);
    await pool.probe(A, question("a"));
    expect([pool.connections(), [...pool.fullEgresses()]]).toEqual([1, []]);
    await pool.probe(B, question("b"));
    expect(sessions.map(({ closed }) => closed)).toEqual([true, false]);
  });

  test("a resting connection gives way to another host", async () => {
    const { pool, sessions } = poolOf({ connectionsMax: 1 }, yes);
    await pool.probe(A, question("a"));
    await pool.probe(B, question("b"));
    expect(sessions.map(({ target, closed }) => [target.address, closed])).toEqual([
      [A.address, true],
      [B.address, false],
    ]);
    expect(pool.connections()).toBe(1);
  });

  test("a host whose probes have ended meanwhile does not use up another's turn", async () => {
    const { pool, answer, held } = poolOf({ connectionsMax: 1, connectionsPerHostMax: 4 });
    void pool.probe(A, question("a1"));
    void pool.probe(A, question("a2"));
    void pool.probe(B, question("b"));
    await settle();
    await answer();
    await answer();
    expect(held.map(({ question: { recipients } }) => recipients[0])).toEqual(["b"]);
    await answer();
    expect([pool.connections(), pool.waiting()]).toEqual([1, 0]);
  });

  test("a long queue gives its place up after its turn, and gets it back", async () => {
    const { pool, clock, answer, held } = poolOf({ connectionsMax: 1 });
    for (const name of ["a1", "a2", "a3"]) void pool.probe(A, question(name));
    void pool.probe(B, question("b"));
    await settle();
    await answer();
    expect(held[0]?.question.recipients).toEqual(["a2"]);
    await clock.advance(TURN_MS);
    await answer();
    expect(held[0]?.question.recipients).toEqual(["b"]);
    await answer();
    expect(held[0]?.question.recipients).toEqual(["a3"]);
  });

  test("hosts that wait get their turns in the order they came", async () => {
    const { pool, answer, held } = poolOf({ connectionsMax: 1, connectionsPerHostMax: 1, rcptPerConnectionMax: 1 });
    const hosts = Array.from({ length: 4 }, (_, at) => host(`192.0.2.${at}`));
    for (const round of [1, 2]) for (const target of hosts) void pool.probe(target, question(`${round}`));
    const turns: string[] = [];
    await settle();
    while (held.length > 0) {
      turns.push(held[0]?.session.target.address ?? "");
      await answer();
    }
    const once = hosts.map(({ address }) => address);
    expect(turns).toEqual([...once, ...once]);
  });

  test("whatever the probes and however they end: never exceeded, one result per probe, nothing left open", async () => {
    const step = fc.record({
      hostNumber: fc.nat(3),
      end: fc.constantFrom("yes", "closed", "connectFailed", "used_up", "bug"),
      answersBefore: fc.nat(2),
      waitMs: fc.constantFrom(0, IDLE_MS, TURN_MS),
    });
    const limits = fc.record({
      connectionsMax: fc.integer({ min: 1, max: 4 }),
      connectionsPerHostMax: fc.integer({ min: 1, max: 3 }),
      rcptPerConnectionMax: fc.integer({ min: 1, max: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 25 }), async (max, steps) => {
        let connectFailed = 0;
        const { pool, clock, sessions, held, standing } = poolOf(max, undefined, () =>
          connectFailed-- > 0 ? failureOf("refused_or_unreachable", "connect") : null,
        );
        let ended = 0;
        const answerFirst = () => {
          const first = held.shift();
          if (first === undefined) return;
          const end = first.question.recipients[0];
          if (end === "used_up") first.session.usable = false;
          if (end === "closed") first.let(unsaid(first.question, failureOf("closed", "mail")));
          else first.let(yes(first.question));
        };
        const check = () => {
          expect(standing()).toBeLessThanOrEqual(max.connectionsMax);
          expect(pool.connections()).toBeLessThanOrEqual(max.connectionsMax);
          for (const address of new Set(sessions.map(({ target }) => target.address))) {
            const open = sessions.filter(({ target, closed }) => target.address === address && !closed).length;
            expect(open).toBeLessThanOrEqual(max.connectionsPerHostMax);
          }
        };
        for (const { hostNumber, end, answersBefore, waitMs } of steps) {
          if (end === "connectFailed") connectFailed = 1;
          const asked = end === "bug" ? question() : question(end);
          void pool.probe(host(`192.0.2.${hostNumber}`), asked).then(() => ended++);
          await settle();
          check();
          for (let at = 0; at < answersBefore; at++) answerFirst();
          await clock.advance(waitMs);
          check();
        }
        while (held.length > 0) {
          answerFirst();
          await settle();
          check();
        }
        expect([ended, pool.waiting()]).toEqual([steps.length, 0]);
        await clock.advance(IDLE_MS);
        expect([pool.connections(), standing(), clock.pending()]).toEqual([0, 0, 0]);
      }),
      { numRuns: 40 },
    );
  });
});

describe("drain", () => {
  test("closes idle connections, rejects waiting and new probes, and ends with the last session", async () => {
    const { pool, answer, sessions, held } = poolOf({ connectionsPerHostMax: 1 });
    const resting = pool.probe(B, question("b"));
    await settle();
    await answer();
    await resting;
    const underWay = pool.probe(A, question("a1"));
    const waiting = pool.probe(A, question("a2"));
    await settle();
    let drained = 0;
    const ends = [pool.drain(), pool.drain()].map((end) => end.then(() => drained++));
    await expect(waiting).rejects.toBeInstanceOf(PoolClosed);
    await expect(pool.probe(B, question("b2"))).rejects.toBeInstanceOf(PoolClosed);
    await settle();
    expect([drained, pool.connections(), pool.waiting(), held.length]).toEqual([0, 1, 0, 1]);
    await answer();
    expect((await underWay).rcpts[0]?.code).toBe(250);
    await Promise.all(ends);
    expect(sessions.every(({ closed }) => closed)).toBe(true);
    expect(pool.connections()).toBe(0);
  });

  test("of an unused pool ends at once", async () => {
    const { pool } = poolOf();
    expect(await pool.drain()).toBeUndefined();
  });
});

test("waiting in a queue does not count as time of the session", async () => {
  const { pool, clock, answer } = poolOf({ connectionsMax: 1 });
  const first = pool.probe(A, question("a"));
  const second = pool.probe(B, question("b"));
  await clock.advance(7_000);
  await answer();
  await clock.advance(300);
  await answer();
  expect((await first).tookMs).toBe(7_000);
  expect((await second).tookMs).toBe(300);
  expect((await second).startedAtMs - (await first).startedAtMs).toBe(7_000);
});
