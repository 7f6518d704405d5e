import { expect, test } from "bun:test";
import { createLog } from "../../../foundation/base/log.ts";
import { createDomainHarness, REPORT_HOST } from "../../../testing/monitored-domains.ts";
import { ScheduledChecks } from "./domain-monitor.ts";

const newHarness = createDomainHarness();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** An active domain under the cron table: time goes on by five minutes between two passes. */
const startWatched = async (tags: string) => {
  const harness = newHarness();
  const { id, token } = await harness.activate("example.com", tags);
  const passes = new ScheduledChecks(
    { ...harness, log: createLog("info", harness.clock, () => undefined) },
    harness.store,
    harness.domains,
  );
  return {
    harness,
    id,
    publish: (text: string) => harness.publish("example.com", `v=DMARC1; ${text}; rua=mailto:${token}@${REPORT_HOST}`),
    async pass(ms: number): Promise<void> {
      for (const untilMs = harness.clock.nowMs() + ms; harness.clock.nowMs() < untilMs;) {
        await harness.clock.advance(5 * MINUTE_MS);
        await passes.run();
      }
    },
    rules: () => harness.alerts.map(({ rule }) => rule),
  };
};

test("a policy that is enforced and lapses for two hours is reported", async () => {
  const { harness, publish, pass, rules } = await startWatched("p=reject");
  await pass(50 * HOUR_MS);
  publish("p=none");
  await pass(2 * HOUR_MS);
  expect(rules()).toEqual(["record_changed", "policy_weakened"]);
  expect(harness.alerts[1]?.summary).toBe("the policy was weakened from p=reject to p=none");
});

test("a lapse that only one look finds is not told of", async () => {
  const { harness, publish, pass, rules } = await startWatched("p=quarantine");
  await pass(2 * HOUR_MS);
  const asked = () => harness.resolver.countQueries("_dmarc.example.com", "TXT");
  const before = asked();
  publish("p=none");
  while (asked() === before) await pass(5 * MINUTE_MS);
  publish("p=quarantine");
  await pass(26 * HOUR_MS);
  expect(rules()).toEqual([]);
});

test("a silent DNS is no lapse, however often it is asked", async () => {
  const { harness, pass, rules } = await startWatched("p=reject");
  harness.zone["_dmarc.example.com"] = "servfail";
  await pass(12 * HOUR_MS);
  expect(rules()).toEqual([]);
});

test("a domain is asked for hourly while its policy is enforced, and daily while it is not", async () => {
  const asked = async (tags: string) => {
    const { harness, pass } = await startWatched(tags);
    await pass(26 * HOUR_MS);
    const before = harness.resolver.countQueries("_dmarc.example.com", "TXT");
    await pass(48 * HOUR_MS);
    return harness.resolver.countQueries("_dmarc.example.com", "TXT") - before;
  };
  const hourly = await asked("p=reject");
  expect([hourly >= 44, hourly <= 50]).toEqual([true, true]);
  expect(await asked("p=none")).toBeLessThanOrEqual(3);
  expect(await asked("p=quarantine; t=y; sp=none")).toBeLessThanOrEqual(3);
});
