import { describe, expect, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";
import { settle } from "../testing/clock.ts";
import { checkView } from "./check-result.ts";
import { BLOCKLIST_EVENTS } from "./event-docs.ts";
import { TargetRemovalStore } from "./store.ts";

const newFixture = createBlocklistFixtures();
const IP = "8.8.4.4";
const LISTED = { A: ["127.0.0.2"], TXT: ["Blocked - see https://example.org"] };
const HOUR_MS = 3_600_000;

describe("the first check", () => {
  test("of an unlisted address makes it clean, without an event", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    expect(await fixture.check(id)).toMatchObject({
      status: "clean",
      listedOn: [],
      lastCheckedAtMs: fixture.clock.nowMs(),
    });
    expect(fixture.events()).toEqual([]);
  });

  test("of a listed address makes it listed, with an event that has everything needed to act", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP, { label: "outbound 1" });
    fixture.spamcop(IP, LISTED);
    expect(await fixture.check(id)).toMatchObject({ status: "listed", listedOn: ["spamcop"] });
    expect(fixture.events()).toEqual([
      {
        type: "blacklist.listed",
        url: "https://example.com/hook",
        data: expect.objectContaining({
          target_id: id,
          target: IP,
          label: "outbound 1",
          listing: "spamcop",
          list: "spamcop",
          severity: "high",
          codes: ["127.0.0.2"],
          text: "Blocked - see https://example.org",
          delist_url: expect.stringContaining("https://"),
          previous_status: "pending",
          status: "listed",
          listed_on: ["spamcop"],
          flapping: false,
        }),
      },
    ]);
  });

  test("with several listings in one response is one event for each", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.zen(IP, { A: ["127.0.0.2", "127.0.0.10"] });
    expect((await fixture.check(id))?.listedOn).toEqual(["spamhaus-pbl", "spamhaus-sbl"]);
    expect(fixture.events().map(({ data }) => data.listing)).toEqual(["spamhaus-sbl", "spamhaus-pbl"]);
  });

  test("with no response of any list makes it unknown, without an event", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.spamcop(IP, "servfail");
    fixture.zen(IP, { A: ["127.255.255.254"] });
    expect(await fixture.check(id)).toMatchObject({ status: "unknown", listedOn: [] });
    expect(fixture.events()).toEqual([]);
  });

  test("without a webhook writes an event for the feed, and mails the recipients of the account as well", async () => {
    const fixture = newFixture();
    fixture.defaults.push("all@example.com", "a@example.com");
    const id = fixture.add(IP, { webhookUrl: null, recipients: ["a@example.com"] });
    fixture.spamcop(IP, LISTED);
    await fixture.check(id);
    expect(fixture.events()).toMatchObject([{ type: "blacklist.listed", url: null }]);
    expect(fixture.mailQueue.recipients("", 9)).toEqual(["a@example.com", "all@example.com"]);
    expect(fixture.store.listChecks(id, { before: null, limit: 9 })).toHaveLength(1);
  });
});

describe("a later check", () => {
  test("sends nothing while nothing changes, and one event for the delisting", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.spamcop(IP, LISTED);
    await fixture.check(id);
    await fixture.check(id);
    expect(fixture.events()).toHaveLength(1);
    fixture.spamcop(IP, null);
    expect(await fixture.check(id)).toMatchObject({ status: "clean", listedOn: [] });
    expect(fixture.events().at(-1)).toMatchObject({
      type: "blacklist.delisted",
      data: { listing: "spamcop", reason: "observed", previous_status: "listed", status: "clean", listed_on: [] },
    });
  });

  test.each([
    ["fails", "timeout"],
    ["refuses", { A: ["127.255.255.254"] }],
    ["answers something it does not document", { A: ["127.0.0.77"] }],
    ["is parked", { A: ["203.0.113.7"] }],
  ] as const)("clears nothing when the list that lists it %s", async (_, answer) => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.spamcop(IP, LISTED);
    await fixture.check(id);
    fixture.spamcop(IP, answer as never);
    expect(await fixture.check(id)).toMatchObject({ status: "listed", listedOn: ["spamcop"] });
    fixture.zen(IP, "servfail");
    expect(await fixture.check(id)).toMatchObject({ status: "unknown", listedOn: ["spamcop"] });
    expect(fixture.events()).toHaveLength(1);
  });

  test("is next in about an hour when listed, else in about six", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    const clean = await fixture.check(id);
    expect(((clean?.nextCheckAtMs ?? 0) - fixture.clock.nowMs()) / HOUR_MS).toBeCloseTo(6, 0);
    fixture.spamcop(IP, LISTED);
    const listed = await fixture.check(id);
    expect(((listed?.nextCheckAtMs ?? 0) - fixture.clock.nowMs()) / HOUR_MS).toBeCloseTo(1, 0);
  });

  test("marks a listing with four changes within a day as flapping, and still sends the event", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    for (const answer of [LISTED, null, LISTED, null, LISTED]) {
      fixture.spamcop(IP, answer);
      await fixture.check(id);
      await fixture.clock.advance(HOUR_MS);
    }
    expect(fixture.events().map(({ data }) => data.flapping)).toEqual([false, false, false, true, true]);
    await fixture.clock.advance(24 * HOUR_MS);
    fixture.spamcop(IP, null);
    await fixture.check(id);
    expect(fixture.events().at(-1)?.data.flapping).toBe(false);
  });

  test("of a muted list does not happen", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP, { mutedLists: ["spamcop"] });
    fixture.spamcop(IP, LISTED);
    expect(await fixture.check(id)).toMatchObject({ status: "clean" });
    expect(fixture.resolver.queries.filter((question) => question.includes("4.4.8.8.bl.spamcop.net"))).toEqual([]);
  });
});

describe("one target", () => {
  test("is checked once at a time: a concurrent request gets the same check", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    const [first, second] = [
      fixture.monitor.check(fixture.find(id), "manual"),
      fixture.monitor.check(fixture.find(id), "scheduled"),
    ];
    expect(second.id).toBe(first.id);
    await first.done;
    expect(fixture.store.listChecks(id, { before: null, limit: 9 })).toHaveLength(1);
    const third = fixture.monitor.check(fixture.find(id), "manual");
    expect(third.id).not.toBe(first.id);
    await third.done;
  });

  test("that is removed during its check leaves no rows", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.spamcop(IP, LISTED);
    const running = fixture.monitor.check(fixture.find(id), "manual");
    fixture.db.transact((tx) => new TargetRemovalStore(fixture.db).removeTarget(tx, id));
    expect(await running.done).toBeNull();
    expect(fixture.store.listChecks(id, { before: null, limit: 9 })).toEqual([]);
    expect(fixture.events()).toEqual([]);
  });

  test("keeps its state when the service stops during its check", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    const running = fixture.monitor.check(fixture.find(id), "scheduled");
    await fixture.monitor.stop();
    expect(await running.done).toBeNull();
    expect(fixture.find(id).status).toBe("pending");
  });
});

test("state, history and event are one transaction: without the event there is no change", async () => {
  const fixture = newFixture();
  const id = fixture.add(IP);
  fixture.spamcop(IP, LISTED);
  fixture.db.sqlite.run("CREATE TRIGGER no_events BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no'); END");
  await expect(fixture.check(id)).rejects.toThrow();
  expect(fixture.find(id).status).toBe("pending");
  expect(fixture.store.listChecks(id, { before: null, limit: 9 })).toEqual([]);
  fixture.db.sqlite.run("DROP TRIGGER no_events");
  await fixture.check(id);
  expect(fixture.find(id).status).toBe("listed");
  expect(fixture.events()).toHaveLength(1);
});

test("checks on demand are limited: the fourth within half a minute is the third", async () => {
  const fixture = newFixture();
  const id = fixture.add(IP);
  const checks: Array<string | undefined> = [];
  const demand = async () => (await fixture.monitor.checkOnDemand(fixture.find(id)).done)?.check.id;
  for (let n = 0; n < 5; n += 1) checks.push(await demand());
  expect(new Set(checks).size).toBe(3);
  expect(checks[4]).toBe(checks[2]);
  expect(fixture.resolver.countQueries("4.4.8.8.bl.spamcop.net", "A")).toBe(3);
  await fixture.clock.advance(30_000);
  expect(checks).not.toContain(await demand());
});

describe("an unknown target", () => {
  test("is checked again in minutes, less often each time, and known again at once", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP);
    fixture.spamcop(IP, "servfail");
    fixture.zen(IP, "servfail");
    const waits: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      await fixture.check(id);
      waits.push(Math.round((fixture.find(id).nextCheckAtMs - fixture.clock.nowMs()) / 60_000));
    }
    expect(waits).toEqual([2, 5, 10, 20, 40, 60, 60, 60].map((minutes) => expect.closeTo(minutes, -1)));
    expect(fixture.find(id)).toMatchObject({ status: "unknown", unknownChecks: 8 });
    fixture.spamcop(IP, null);
    // After repeated timeouts the list is skipped for a minute.
    await fixture.clock.advance(60_000);
    expect(await fixture.check(id)).toMatchObject({ status: "clean", unknownChecks: 0 });
  });

  test("with listings keeps them, and is checked every hour at least", async () => {
    const fixture = newFixture();
    const id = fixture.add(IP, { status: "listed", listedOn: ["spamcop"], unknownChecks: 50 });
    fixture.spamcop(IP, "servfail");
    fixture.zen(IP, "servfail");
    expect(await fixture.check(id)).toMatchObject({ status: "unknown", listedOn: ["spamcop"] });
    expect(fixture.find(id).nextCheckAtMs - fixture.clock.nowMs()).toBeLessThanOrEqual(1.05 * HOUR_MS);
  });
});

test("events match the documented schema exactly", async () => {
  const fixture = newFixture();
  const id = fixture.add(IP);
  fixture.spamcop(IP, LISTED);
  await fixture.check(id);
  fixture.spamcop(IP, null);
  await fixture.check(id);
  const events = fixture.events();
  expect(events.map(({ type }) => type)).toEqual(["blacklist.listed", "blacklist.delisted"]);
  for (const { type, data } of events) {
    const schema = BLOCKLIST_EVENTS.find((event) => event.type === type)?.data;
    expect(schema?.parse(data)).toEqual(data);
  }
});

test("the history shows results other than not listed, with the return codes and without keys", async () => {
  const fixture = newFixture();
  const id = fixture.add(IP);
  fixture.spamcop(IP, LISTED);
  fixture.zen(IP, "servfail");
  await fixture.check(id);
  const [check] = fixture.store.listChecks(id, { before: null, limit: 9 }).map(checkView);
  expect(check).toMatchObject({
    trigger: "manual",
    status: "listed",
    listed_on: ["spamcop"],
    added: ["spamcop"],
    removed: [],
    counts: { listed: 1, not_listed: 0, refused: 0, failed: 1, skipped: 0 },
    results: [
      { list: "spamhaus-zen", outcome: "failed", codes: [], zone: "zen.spamhaus.org" },
      { list: "spamcop", outcome: "listed", codes: ["127.0.0.2"], listings: ["spamcop"] },
    ],
  });
});

describe("a list that changes many targets at once", () => {
  const addresses = Array.from({ length: 20 }, (_, n) => `8.8.4.${n + 1}`);

  const moved = async (spoil?: (fixture: ReturnType<typeof newFixture>) => void) => {
    const fixture = newFixture();
    const ids = addresses.map((address) => fixture.add(address));
    for (const id of ids) await fixture.check(id);
    for (const address of addresses) fixture.spamcop(address, LISTED);
    for (const id of ids.slice(0, 6)) await fixture.check(id);
    spoil?.(fixture);
    for (const id of ids.slice(6)) await fixture.check(id);
    return { fixture, ids };
  };

  /** Removes the positive test point of the list. The negative one is queried for every new listing anyway. */
  const loseTestPoint = ({ zone }: ReturnType<typeof newFixture>): void => {
    delete zone["2.0.0.127.bl.spamcop.net"];
  };

  test("is tested at once, and its changes are accepted when it passes", async () => {
    const { fixture, ids } = await moved();
    expect(ids.every((id) => fixture.find(id).status === "listed")).toBe(true);
    expect(fixture.events()).toHaveLength(addresses.length);
    expect(fixture.resolver.countQueries("1.0.0.127.bl.spamcop.net", "A")).toBeGreaterThan(1);
  });

  test("is held back when it fails the test: the previous results stand, and no further alerts are sent", async () => {
    const { fixture, ids } = await moved(loseTestPoint);
    expect(ids.filter((id) => fixture.find(id).status === "listed")).toHaveLength(6);
    expect(fixture.events()).toHaveLength(6);
    expect(fixture.logged.filter((line) => line.includes("too many targets"))).toHaveLength(1);
    const held = fixture.find(ids[6] ?? "");
    // The other list says no, and the held-back listing makes the target unknown.
    expect(held).toMatchObject({ status: "unknown", listedOn: [] });
    expect(held.nextCheckAtMs - fixture.clock.nowMs()).toBeLessThanOrEqual(30 * 60_000);
    const [check] = fixture.store.listChecks(held.id, { before: null, limit: 1 }).map(checkView);
    expect(check?.results).toMatchObject([{ list: "spamcop", outcome: "failed", listings: [] }]);
    expect(check?.results[0]?.reason).toContain(`held back until ${new Date(held.nextCheckAtMs).toISOString()}`);
  });

  test("is held back until it passes", async () => {
    const { fixture, ids } = await moved(loseTestPoint);
    await fixture.clock.advance(30 * 60_000);
    for (const id of ids) await fixture.check(id);
    await settle();
    expect(fixture.events()).toHaveLength(6);
  });

  test("is accepted when all targets are new", async () => {
    const fixture = newFixture();
    for (const address of addresses) fixture.spamcop(address, LISTED);
    const ids = addresses.map((address) => fixture.add(address));
    for (const id of ids) await fixture.check(id);
    expect(fixture.events()).toHaveLength(addresses.length);
  });
});
