import { describe, expect, test } from "bun:test";
import { createBlocklistWorlds } from "../testing/blocklist-world.ts";
import { settle } from "../testing/clock.ts";
import { checkView } from "./check-body.ts";
import { BLOCKLIST_EVENTS } from "./event-docs.ts";

const newWorld = createBlocklistWorlds();
const IP = "8.8.4.4";
const LISTED = { A: ["127.0.0.2"], TXT: ["Blocked - see https://example.org"] };
const HOUR_MS = 3_600_000;

describe("the first check", () => {
  test("of an address that no list has makes it clean, without an event", async () => {
    const world = newWorld();
    const id = world.add(IP);
    expect(await world.check(id)).toMatchObject({
      status: "clean",
      listedOn: [],
      lastCheckedAtMs: world.clock.nowMs(),
    });
    expect(world.events()).toEqual([]);
  });

  test("of a listed address makes it listed and says so, with all that one needs to act", async () => {
    const world = newWorld();
    const id = world.add(IP, { label: "outbound 1" });
    world.spamcop(IP, LISTED);
    expect(await world.check(id)).toMatchObject({ status: "listed", listedOn: ["spamcop"] });
    expect(world.events()).toEqual([
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

  test("with several listings in one answer is one event for each of them", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.zen(IP, { A: ["127.0.0.2", "127.0.0.10"] });
    expect((await world.check(id))?.listedOn).toEqual(["spamhaus-pbl", "spamhaus-sbl"]);
    expect(world.events().map(({ data }) => data.listing)).toEqual(["spamhaus-sbl", "spamhaus-pbl"]);
  });

  test("that every list refuses or fails makes it unknown, without an event", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.spamcop(IP, "servfail");
    world.zen(IP, { A: ["127.255.255.254"] });
    expect(await world.check(id)).toMatchObject({ status: "unknown", listedOn: [] });
    expect(world.events()).toEqual([]);
  });

  test("without a webhook writes an event for the feed, and mails the recipients of the account as well", async () => {
    const world = newWorld();
    world.defaults.push("all@example.com", "a@example.com");
    const id = world.add(IP, { webhookUrl: null, recipients: ["a@example.com"] });
    world.spamcop(IP, LISTED);
    await world.check(id);
    expect(world.events()).toMatchObject([{ type: "blacklist.listed", url: null }]);
    expect(world.store.alertRecipients(9, []).toSorted()).toEqual(["a@example.com", "all@example.com"]);
    expect(world.store.listChecks(id, { before: null, limit: 9 })).toHaveLength(1);
  });
});

describe("a later check", () => {
  test("sends nothing while nothing changes, and one delisting when the list lets go", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.spamcop(IP, LISTED);
    await world.check(id);
    await world.check(id);
    expect(world.events()).toHaveLength(1);
    world.spamcop(IP, null);
    expect(await world.check(id)).toMatchObject({ status: "clean", listedOn: [] });
    expect(world.events().at(-1)).toMatchObject({
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
    const world = newWorld();
    const id = world.add(IP);
    world.spamcop(IP, LISTED);
    await world.check(id);
    world.spamcop(IP, answer as never);
    expect(await world.check(id)).toMatchObject({ status: "listed", listedOn: ["spamcop"] });
    world.zen(IP, "servfail");
    expect(await world.check(id)).toMatchObject({ status: "unknown", listedOn: ["spamcop"] });
    expect(world.events()).toHaveLength(1);
  });

  test("is next in about an hour when listed, else in about six", async () => {
    const world = newWorld();
    const id = world.add(IP);
    const clean = await world.check(id);
    expect(((clean?.nextCheckAtMs ?? 0) - world.clock.nowMs()) / HOUR_MS).toBeCloseTo(6, 0);
    world.spamcop(IP, LISTED);
    const listed = await world.check(id);
    expect(((listed?.nextCheckAtMs ?? 0) - world.clock.nowMs()) / HOUR_MS).toBeCloseTo(1, 0);
  });

  test("marks a listing that comes and goes four times within a day as flapping, and still tells", async () => {
    const world = newWorld();
    const id = world.add(IP);
    for (const answer of [LISTED, null, LISTED, null, LISTED]) {
      world.spamcop(IP, answer);
      await world.check(id);
      await world.clock.advance(HOUR_MS);
    }
    expect(world.events().map(({ data }) => data.flapping)).toEqual([false, false, false, true, true]);
    await world.clock.advance(24 * HOUR_MS);
    world.spamcop(IP, null);
    await world.check(id);
    expect(world.events().at(-1)?.data.flapping).toBe(false);
  });

  test("of a muted list does not happen", async () => {
    const world = newWorld();
    const id = world.add(IP, { mutedLists: ["spamcop"] });
    world.spamcop(IP, LISTED);
    expect(await world.check(id)).toMatchObject({ status: "clean" });
    expect(world.resolver.queries.filter((question) => question.includes("4.4.8.8.bl.spamcop.net"))).toEqual([]);
  });
});

describe("one target", () => {
  test("is checked once at a time: whoever asks meanwhile gets the same check", async () => {
    const world = newWorld();
    const id = world.add(IP);
    const [first, second] = [
      world.monitor.check(world.find(id), "manual"),
      world.monitor.check(world.find(id), "scheduled"),
    ];
    expect(second.id).toBe(first.id);
    await first.done;
    expect(world.store.listChecks(id, { before: null, limit: 9 })).toHaveLength(1);
    const third = world.monitor.check(world.find(id), "manual");
    expect(third.id).not.toBe(first.id);
    await third.done;
  });

  test("that is removed during its check leaves nothing behind", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.spamcop(IP, LISTED);
    const running = world.monitor.check(world.find(id), "manual");
    world.db.transact((tx) => world.store.removeTarget(tx, id));
    expect(await running.done).toBeNull();
    expect(world.store.listChecks(id, { before: null, limit: 9 })).toEqual([]);
    expect(world.events()).toEqual([]);
  });

  test("keeps what it was when the service stops during its check", async () => {
    const world = newWorld();
    const id = world.add(IP);
    const running = world.monitor.check(world.find(id), "scheduled");
    await world.monitor.stop();
    expect(await running.done).toBeNull();
    expect(world.find(id).status).toBe("pending");
  });
});

test("state, history and event are one transaction: without the event there is no change", async () => {
  const world = newWorld();
  const id = world.add(IP);
  world.spamcop(IP, LISTED);
  world.db.sqlite.run("CREATE TRIGGER no_events BEFORE INSERT ON outbox BEGIN SELECT RAISE(ABORT, 'no'); END");
  await expect(world.check(id)).rejects.toThrow();
  expect(world.find(id).status).toBe("pending");
  expect(world.store.listChecks(id, { before: null, limit: 9 })).toEqual([]);
  world.db.sqlite.run("DROP TRIGGER no_events");
  await world.check(id);
  expect(world.find(id).status).toBe("listed");
  expect(world.events()).toHaveLength(1);
});

test("checks on demand are limited: the fourth within half a minute is the third", async () => {
  const world = newWorld();
  const id = world.add(IP);
  const checks: Array<string | undefined> = [];
  const demand = async () => (await world.monitor.checkOnDemand(world.find(id)).done)?.check.id;
  for (let n = 0; n < 5; n += 1) checks.push(await demand());
  expect(new Set(checks).size).toBe(3);
  expect(checks[4]).toBe(checks[2]);
  expect(world.resolver.countQueries("4.4.8.8.bl.spamcop.net", "A")).toBe(3);
  await world.clock.advance(30_000);
  expect(checks).not.toContain(await demand());
});

describe("an unknown target", () => {
  test("is checked again in minutes, less often each time, and known again at once", async () => {
    const world = newWorld();
    const id = world.add(IP);
    world.spamcop(IP, "servfail");
    world.zen(IP, "servfail");
    const waits: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      await world.check(id);
      waits.push(Math.round((world.find(id).nextCheckAtMs - world.clock.nowMs()) / 60_000));
    }
    expect(waits).toEqual([2, 5, 10, 20, 40, 60, 60, 60].map((minutes) => expect.closeTo(minutes, -1)));
    expect(world.find(id)).toMatchObject({ status: "unknown", unknownChecks: 8 });
    world.spamcop(IP, null);
    // After so many queries in vain the list is left alone for a minute.
    await world.clock.advance(60_000);
    expect(await world.check(id)).toMatchObject({ status: "clean", unknownChecks: 0 });
  });

  test("with listings keeps them, and is checked every hour at least", async () => {
    const world = newWorld();
    const id = world.add(IP, { status: "listed", listedOn: ["spamcop"], unknownChecks: 50 });
    world.spamcop(IP, "servfail");
    world.zen(IP, "servfail");
    expect(await world.check(id)).toMatchObject({ status: "unknown", listedOn: ["spamcop"] });
    expect(world.find(id).nextCheckAtMs - world.clock.nowMs()).toBeLessThanOrEqual(1.05 * HOUR_MS);
  });
});

test("the events that are sent have what the document says, and nothing beside it", async () => {
  const world = newWorld();
  const id = world.add(IP);
  world.spamcop(IP, LISTED);
  await world.check(id);
  world.spamcop(IP, null);
  await world.check(id);
  const events = world.events();
  expect(events.map(({ type }) => type)).toEqual(["blacklist.listed", "blacklist.delisted"]);
  for (const { type, data } of events) {
    const schema = BLOCKLIST_EVENTS.find((event) => event.type === type)?.data;
    expect(schema?.parse(data)).toEqual(data);
  }
});

test("the history shows what was not clean, with the raw answers and no key", async () => {
  const world = newWorld();
  const id = world.add(IP);
  world.spamcop(IP, LISTED);
  world.zen(IP, "servfail");
  await world.check(id);
  const [check] = world.store.listChecks(id, { before: null, limit: 9 }).map(checkView);
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

describe("a list that moves many targets at once", () => {
  const addresses = Array.from({ length: 20 }, (_, n) => `8.8.4.${n + 1}`);

  const moved = async (spoil?: (world: ReturnType<typeof newWorld>) => void) => {
    const world = newWorld();
    const ids = addresses.map((address) => world.add(address));
    for (const id of ids) await world.check(id);
    for (const address of addresses) world.spamcop(address, LISTED);
    for (const id of ids.slice(0, 6)) await world.check(id);
    spoil?.(world);
    for (const id of ids.slice(6)) await world.check(id);
    return { world, ids };
  };

  /** Its own positive test point is gone. The negative one is asked for every new listing anyway. */
  const loseTestPoint = ({ zone }: ReturnType<typeof newWorld>): void => {
    delete zone["2.0.0.127.bl.spamcop.net"];
  };

  test("is tested at once, and believed for all of them when it stands that", async () => {
    const { world, ids } = await moved();
    expect(ids.every((id) => world.find(id).status === "listed")).toBe(true);
    expect(world.events()).toHaveLength(addresses.length);
    expect(world.resolver.countQueries("1.0.0.127.bl.spamcop.net", "A")).toBeGreaterThan(1);
  });

  test("is held back when it does not stand its test: what was known stands, and nobody is alarmed further", async () => {
    const { world, ids } = await moved(loseTestPoint);
    expect(ids.filter((id) => world.find(id).status === "listed")).toHaveLength(6);
    expect(world.events()).toHaveLength(6);
    expect(world.logged.filter((line) => line.includes("too many targets"))).toHaveLength(1);
    const held = world.find(ids[6] ?? "");
    // The other list says no, but that this one says yes is neither believed nor forgotten.
    expect(held).toMatchObject({ status: "unknown", listedOn: [] });
    expect(held.nextCheckAtMs - world.clock.nowMs()).toBeLessThanOrEqual(30 * 60_000);
    const [check] = world.store.listChecks(held.id, { before: null, limit: 1 }).map(checkView);
    expect(check?.results).toMatchObject([{ list: "spamcop", outcome: "failed", listings: [] }]);
    expect(check?.results[0]?.reason).toContain(`not believed before ${new Date(held.nextCheckAtMs).toISOString()}`);
  });

  test("is held on while it does not stand it", async () => {
    const { world, ids } = await moved(loseTestPoint);
    await world.clock.advance(30 * 60_000);
    for (const id of ids) await world.check(id);
    await settle();
    expect(world.events()).toHaveLength(6);
  });

  test("is no such list when all targets are new", async () => {
    const world = newWorld();
    for (const address of addresses) world.spamcop(address, LISTED);
    const ids = addresses.map((address) => world.add(address));
    for (const id of ids) await world.check(id);
    expect(world.events()).toHaveLength(addresses.length);
  });
});
