import { expect, test } from "bun:test";
import fc from "fast-check";
import type { SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import { settle } from "../../testing/clock.ts";
import { failureOf, host, poolOf, question, replyOf, unsaid, yes } from "../../testing/probe-pool.ts";
import type { ProbeTarget } from "./host-queue.ts";
import { IDLE_MS, TURN_MS } from "./pool.ts";
import type { OnBehalfOf, Priority } from "../../foundation/base/on-behalf-of.ts";

/** The longest that a host is left alone after a rate limit. */
const PAUSE_MS_MAX = 30_000;
const REFUSALS: Readonly<Record<string, SmtpFailure>> = {
  connectFailed: failureOf("refused_or_unreachable", "connect"),
  silent: failureOf("connect_timeout", "connect"),
  crowded: { ...failureOf("reply", "banner"), reply: replyOf("421 4.7.0 Too many connections") },
};

test("whatever the probes: no limit is exceeded, one result per probe, nothing is left open", async () => {
  const step = fc.record({
    hostNumber: fc.nat(5),
    pace: fc.constantFrom(null, null, "rate_limited" as const, "answered" as const),
    priority: fc.constantFrom<Priority>("realtime", "bulk"),
    account: fc.constantFrom(null, "one", "two"),
    end: fc.constantFrom("yes", "closed", "connectFailed", "crowded", "silent", "used_up"),
    answersBefore: fc.nat(2),
    waitMs: fc.constantFrom(0, IDLE_MS, TURN_MS),
  });
  const limits = fc.record({
    connectionsMax: fc.integer({ min: 1, max: 12 }),
    connectionsPerHostMax: fc.integer({ min: 1, max: 3 }),
    rcptPerConnectionMax: fc.integer({ min: 1, max: 4 }),
    perProvider: fc.integer({ min: 1, max: 3 }),
    connectionsPerEgressMax: fc.constantFrom(1, 2, 3, Number.POSITIVE_INFINITY),
  });
  await fc.assert(
    fc.asyncProperty(limits, fc.array(step, { maxLength: 40 }), async ({ perProvider, ...max }, steps) => {
      const refusals: SmtpFailure[] = [];
      const connectionsPerProviderMax = (provider: string) =>
        provider === "p2" ? Number.POSITIVE_INFINITY : perProvider;
      const { pool, clock, sessions, held, standing } = poolOf(
        { ...max, connectionsPerProviderMax },
        undefined,
        () => refusals.shift() ?? null,
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
      const openAt = (of: (target: ProbeTarget) => string, key: string) =>
        sessions.filter(({ target, closed }) => of(target) === key && !closed).length;
      const check = () => {
        expect(pool.connections()).toBeLessThanOrEqual(max.connectionsMax);
        expect(standing()).toBeLessThanOrEqual(pool.connections());
        for (const { target } of sessions) {
          expect(openAt(({ address }) => address, target.address)).toBeLessThanOrEqual(max.connectionsPerHostMax);
          const open = openAt(({ provider }) => provider, target.provider);
          expect(open).toBeLessThanOrEqual(connectionsPerProviderMax(target.provider));
          expect(openAt(({ egress }) => egress, target.egress)).toBeLessThanOrEqual(max.connectionsPerEgressMax);
        }
      };
      for (const { hostNumber, pace, priority, account, end, answersBefore, waitMs } of steps) {
        const refusal = REFUSALS[end];
        if (refusal !== undefined) refusals.push(refusal);
        const onBehalfOf: OnBehalfOf = { account, priority };
        const target = {
          ...host(`192.0.2.${hostNumber}`, `mx${hostNumber}`, `p${hostNumber % 3}`),
          egress: `e${hostNumber % 2}`,
        };
        if (pace !== null) pool.notePace(target, { kind: pace });
        void pool.probe(target, question(end), onBehalfOf).then(() => ended++);
        await settle();
        check();
        for (let at = 0; at < answersBefore; at++) answerFirst();
        await clock.advance(waitMs);
        check();
      }
      for (let round = 0; ended < steps.length && round < 4 * steps.length; round++) {
        answerFirst();
        await clock.advance(held.length > 0 ? 0 : PAUSE_MS_MAX);
        check();
      }
      expect([ended, pool.waiting()]).toEqual([steps.length, 0]);
      await clock.advance(PAUSE_MS_MAX);
      expect([pool.connections(), standing(), pool.hosts(), clock.pending()]).toEqual([0, 0, 0, 0]);
    }),
    { numRuns: 60 },
  );
});
