import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { createDomainHarness, LIVE, REPORT_HOST } from "../../../testing/monitored-domains.ts";
import { createDomainCheck, type DomainCheck } from "./domain-check.ts";
import { createDomainPlatforms } from "./domain-platform.ts";

const newHarness = createDomainHarness();

/** A harness in which a look ends when the test says so: it has then seen what stood there at its beginning. */
const startHeld = async () => {
  const waiting: Array<() => void> = [];
  const held: { look: DomainCheck | null; isHeld: boolean } = { look: null, isHeld: false };
  const harness = newHarness({
    async check(row, options) {
      if (held.look === null) throw new Error("too early");
      const { isHeld } = held;
      const finding = await held.look(row, options);
      if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
      return finding;
    },
  });
  const { resolver, clock } = harness;
  held.look = createDomainCheck(clock, createDomainPlatforms({ resolver, reportHost: REPORT_HOST, mailHost: null }));
  const { id, token } = await harness.activate("example.com");
  const good = `v=DMARC1; p=reject; rua=mailto:${token}@${REPORT_HOST}`;
  /** Begins a check whose look is held; `end` lets it go on and waits for the check. */
  const begin = async <T>(check: () => Promise<T>) => {
    held.isHeld = true;
    const checked = check();
    held.isHeld = false;
    while (waiting.length === 0) await Promise.resolve();
    const [release] = waiting.splice(0);
    return {
      end: (): Promise<T> => {
        release?.();
        return checked;
      },
    };
  };
  return { harness, id, good, begin };
};

describe("of two looks at once the one that a user began counts", () => {
  test("a scheduled look from before is not recorded over it", async () => {
    const { harness, id, begin } = await startHeld();
    const slow = await begin(() => harness.domains.checkScheduled(harness.find(id)));
    harness.publish("example.com");
    await harness.domains.verify(LIVE, id);
    const [row, told] = [harness.find(id), harness.alerts.length];
    expect(row.status).toBe("action_required");
    await harness.clock.advance(15_000);
    await slow.end();
    expect(harness.find(id)).toEqual(row);
    expect(harness.alerts).toHaveLength(told);
  });

  test("nor one that found the record missing before it was published", async () => {
    const { harness, id, good, begin } = await startHeld();
    harness.publish("example.com");
    await harness.domains.verify(LIVE, id);
    const slow = await begin(() => harness.domains.checkScheduled(harness.find(id)));
    harness.publish("example.com", good);
    await harness.domains.verify(LIVE, id);
    const row = harness.find(id);
    expect(row).toMatchObject({ status: "active", badSinceMs: null });
    await slow.end();
    expect(harness.find(id)).toEqual(row);
  });

  test("a scheduled check that comes while a user's runs is that one, so that nothing is recorded under it", async () => {
    const { harness, id, begin } = await startHeld();
    const slow = await begin(() => harness.domains.verify(LIVE, id));
    harness.publish("example.com");
    const scheduled = harness.domains.checkScheduled(harness.find(id));
    const { domain } = await slow.end();
    expect((await scheduled)?.domain).toEqual(domain);
    expect(harness.find(id)).toMatchObject({ status: "active", badSinceMs: null });
    // The next look finds what is there now.
    expect((await harness.checkScheduled(id)).badSinceMs).toBe(harness.clock.nowMs());
  });

  test("whoever waits for the one that was given up gets the other", async () => {
    const { harness, id, begin } = await startHeld();
    const slow = await begin(() => harness.domains.checkScheduled(harness.find(id)));
    harness.publish("example.com");
    const { domain } = await harness.domains.verify(LIVE, id);
    expect((await slow.end())?.domain).toEqual(domain);
  });
});

test("verify answers after 20 seconds when the DNS never does, and neither does it hear that it is over", async () => {
  const clock = createTestClock();
  const look = createDomainCheck(
    clock,
    createDomainPlatforms({
      resolver: { resolve: () => Promise.withResolvers<never>().promise },
      reportHost: REPORT_HOST,
      mailHost: null,
    }),
  );
  const harness = newHarness({ check: look });
  const enrolling = harness.enrol("example.com");
  await clock.advance(20_000);
  const { domain, dnsRecords } = await enrolling;
  expect(dnsRecords).toMatchObject([{ action: "conflict", reason: "dns_failure", value: "" }]);
  const verifying = harness.domains.verify(LIVE, domain.id);
  await clock.advance(20_000);
  const verified = await verifying;
  expect(verified).toMatchObject({ previousStatus: "pending", domain: { status: "pending" } });
  expect(verified.result.checks.map(({ ok }) => ok)).toEqual([null, null, null]);
  expect(harness.alerts).toEqual([]);
  expect(clock.pending()).toBe(0);
});
