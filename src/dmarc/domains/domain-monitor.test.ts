import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createDomainHarness, LIVE, REPORT_HOST } from "../../testing/monitored-domains.ts";
import { createDomainCheck, type DomainCheck } from "./domain-check.ts";
import { createDomainPlatforms } from "./domain-platform.ts";

const newWorld = createDomainHarness();

/** A world in which a look ends when the test says so: it has then seen what stood there at its beginning. */
const startHeld = async () => {
  const waiting: Array<() => void> = [];
  const held: { look: DomainCheck | null; isHeld: boolean } = { look: null, isHeld: false };
  const world = newWorld({
    async check(row, options) {
      if (held.look === null) throw new Error("too early");
      const { isHeld } = held;
      const finding = await held.look(row, options);
      if (isHeld) await new Promise<void>((resolve) => waiting.push(resolve));
      return finding;
    },
  });
  const { resolver, clock } = world;
  held.look = createDomainCheck(clock, createDomainPlatforms({ resolver, reportHost: REPORT_HOST, mailHost: null }));
  const { id, token } = await world.activate("example.com");
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
  return { world, id, good, begin };
};

describe("of two looks at once the one that a user began counts", () => {
  test("a scheduled look from before is not recorded over it", async () => {
    const { world, id, begin } = await startHeld();
    const slow = await begin(() => world.domains.checkScheduled(world.find(id)));
    world.publish("example.com");
    await world.domains.verify(LIVE, id);
    const [row, told] = [world.find(id), world.alerts.length];
    expect(row.status).toBe("action_required");
    await world.clock.advance(15_000);
    await slow.end();
    expect(world.find(id)).toEqual(row);
    expect(world.alerts).toHaveLength(told);
  });

  test("nor one that found the record missing before it was published", async () => {
    const { world, id, good, begin } = await startHeld();
    world.publish("example.com");
    await world.domains.verify(LIVE, id);
    const slow = await begin(() => world.domains.checkScheduled(world.find(id)));
    world.publish("example.com", good);
    await world.domains.verify(LIVE, id);
    const row = world.find(id);
    expect(row).toMatchObject({ status: "active", badSinceMs: null });
    await slow.end();
    expect(world.find(id)).toEqual(row);
  });

  test("a scheduled check that comes while a user's runs is that one, so that nothing is recorded under it", async () => {
    const { world, id, begin } = await startHeld();
    const slow = await begin(() => world.domains.verify(LIVE, id));
    world.publish("example.com");
    const scheduled = world.domains.checkScheduled(world.find(id));
    const { domain } = await slow.end();
    expect((await scheduled)?.domain).toEqual(domain);
    expect(world.find(id)).toMatchObject({ status: "active", badSinceMs: null });
    // The next look finds what is there now.
    expect((await world.checkScheduled(id)).badSinceMs).toBe(world.clock.nowMs());
  });

  test("whoever waits for the one that was given up gets the other", async () => {
    const { world, id, begin } = await startHeld();
    const slow = await begin(() => world.domains.checkScheduled(world.find(id)));
    world.publish("example.com");
    const { domain } = await world.domains.verify(LIVE, id);
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
  const world = newWorld({ check: look });
  const enrolling = world.enrol("example.com");
  await clock.advance(20_000);
  const { domain, dnsRecords } = await enrolling;
  expect(dnsRecords).toMatchObject([{ action: "conflict", reason: "dns_failure", value: "" }]);
  const verifying = world.domains.verify(LIVE, domain.id);
  await clock.advance(20_000);
  const verified = await verifying;
  expect(verified).toMatchObject({ previousStatus: "pending", domain: { status: "pending" } });
  expect(verified.result.checks.map(({ ok }) => ok)).toEqual([null, null, null]);
  expect(world.alerts).toEqual([]);
  expect(clock.pending()).toBe(0);
});
