import { afterEach, describe, expect, test } from "bun:test";
import { reverseQueryName } from "../../../foundation/net/dns-name.ts";
import { type AddressLookupHarness, startAddressLookups } from "../../../testing/address-lookups.ts";
import type { Zone } from "../../../testing/dns-zone.ts";
import { JOB_LIMITS, REVERSE_LIMITS } from "./address-lookups.ts";
import { ReverseNameQueue } from "./address-store.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

test.each([
  ["192.0.2.10", "10.2.0.192.in-addr.arpa"],
  ["2001:db8::1", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"],
  ["::1", `1.${"0.".repeat(31)}ip6.arpa`],
])("%s is asked for as %s", (ip, name) => {
  expect(reverseQueryName(ip)).toBe(name);
});

describe("a run", () => {
  const open: AddressLookupHarness[] = [];
  afterEach(() => {
    for (const harness of open.splice(0)) harness.close();
  });

  const start = (
    zone: Zone,
    ips: readonly string[],
    known: { name: string | null; asked: number | null } = { name: null, asked: null },
  ) => {
    const harness = startAddressLookups(zone, { ips, hasAsnLookup: false });
    open.push(harness);
    const { db, clock } = harness;
    db.sqlite
      .query("UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = ?")
      .run(known.name, known.name === null ? 0 : 1, known.asked);
    const rows = () =>
      db.sqlite
        .query<{ name: string | null; confirmed: number; dueInMs: number; asked: number | null }, [number, number]>(
          "SELECT name, is_confirmed confirmed, due_at_ms - ? dueInMs, asked_at_ms - ? asked FROM dmarc_reverse_names ORDER BY ip",
        )
        .all(clock.nowMs(), clock.nowMs());
    return { ...harness, names: harness.job, rows };
  };
  const ptr = (ip: string, records: NonNullable<Exclude<Zone[string], string>["PTR"]>): Zone => ({
    [reverseQueryName(ip)]: { PTR: records },
  });

  test("goes on with the other addresses when one of them meets a bug, which is logged", async () => {
    const good = "8.8.8.8";
    const { names, rows, resolver, logged } = start(
      { ...ptr(good, ["mail.example.com"]), "mail.example.com": { A: [good] } },
      ["1.1.1.1", good],
    );
    const { resolve } = resolver;
    const broken: typeof resolve = (name, type, options) => {
      if (name === reverseQueryName("1.1.1.1")) throw new Error("a bug");
      return resolve(name, type, options);
    };
    Object.assign(resolver, { resolve: broken });
    await names.run();
    expect(rows().map(({ name, dueInMs }) => [name, dueInMs > 0])).toEqual([
      [null, true],
      ["mail.example.com", true],
    ]);
    expect(logged.join()).toContain("a bug");
  });

  test("confirms a name that leads back, of both families", async () => {
    const { names, rows } = start(
      {
        ...ptr("8.8.8.8", ["mail.example.com"]),
        ...ptr("2606:4700::1", ["six.example.com"]),
        "mail.example.com": { A: ["9.9.9.9", "8.8.8.8"] },
        "six.example.com": { AAAA: ["2606:4700::1"], A: "servfail" },
      },
      ["8.8.8.8", "2606:4700::1"],
    );
    await names.run();
    expect(rows()).toEqual([
      { name: "six.example.com", confirmed: 1, dueInMs: 30 * DAY_MS, asked: 0 },
      { name: "mail.example.com", confirmed: 1, dueInMs: 30 * DAY_MS, asked: 0 },
    ]);
  });

  test("takes the first of several names that leads back", async () => {
    const { names, rows } = start(
      { ...ptr("8.8.8.8", ["a.example.com", "b.example.com"]), "b.example.com": { A: ["8.8.8.8"] } },
      ["8.8.8.8"],
    );
    await names.run();
    expect(rows()).toMatchObject([{ name: "b.example.com", confirmed: 1 }]);
  });

  test.each<[string, Zone, string | null]>([
    ["no name", {}, null],
    [
      "a name that leads elsewhere",
      { ...ptr("8.8.8.8", ["mail.example.com"]), "mail.example.com": { A: ["9.9.9.9"] } },
      "mail.example.com",
    ],
    ["a name that does not exist", ptr("8.8.8.8", ["mail.example.com"]), "mail.example.com"],
    ["what is no host name", ptr("8.8.8.8", ["localhost", "a\\032b.example"]), null],
  ])("that finds %s says so, and asks again in a week", async (_, zone, name) => {
    const { names, rows } = start(zone, ["8.8.8.8"]);
    await names.run();
    expect(rows()).toEqual([{ name, confirmed: 0, dueInMs: 7 * DAY_MS, asked: 0 }]);
  });

  test.each<[string, Zone]>([
    ["the reverse zone, with an empty answer that nothing confirms,", { [reverseQueryName("8.8.8.8")]: "unconfirmed" }],
    ["the reverse zone", { [reverseQueryName("8.8.8.8")]: "servfail" }],
    ["the forward zone", { ...ptr("8.8.8.8", ["mail.example.com"]), "mail.example.com": "timeout" }],
  ])("in which %s does not answer changes nothing, and tries again, less and less often", async (_, zone) => {
    const { names, rows, clock } = start(zone, ["8.8.8.8"], { name: "old.example.com", asked: 5 });
    const waits: number[] = [];
    for (let run = 0; run < 6; run += 1) {
      await names.run();
      const [row] = rows();
      expect(row).toMatchObject({ name: "old.example.com", confirmed: 1 });
      expect((row?.asked ?? 0) + clock.nowMs()).toBe(5);
      waits.push(row?.dueInMs ?? 0);
      await clock.advance(row?.dueInMs ?? 0);
    }
    expect(waits.map((wait) => wait / HOUR_MS)).toEqual([1, 2, 4, 8, 16, 24]);
  });

  test("never asks about addresses that are not public: they have no name, and nothing waits for one", async () => {
    const { names, rows, resolver } = start({}, ["10.0.0.1", "127.0.0.1", "fe80::1"]);
    await names.run();
    expect(resolver.queries).toEqual([]);
    expect(rows()).toHaveLength(3);
    expect(
      rows().every(({ name, asked, dueInMs }) => name === null && asked !== null && dueInMs === 365 * DAY_MS),
    ).toBe(true);
  });

  test("never asks about what is no address", async () => {
    const { names, rows, resolver } = start({}, ["nonsense"]);
    await names.run();
    expect(resolver.queries).toEqual([]);
    expect(rows().map(({ asked, dueInMs }) => [asked, dueInMs])).toEqual([[null, 365 * DAY_MS]]);
  });

  test("asks nothing before its time, and looks at ten names at most", async () => {
    const many = Array.from({ length: 12 }, (_, n) => `n${n}.example.com`);
    const { names, resolver, clock } = start(ptr("8.8.8.8", many), ["8.8.8.8"]);
    await names.run();
    expect(resolver.queries).toHaveLength(1 + REVERSE_LIMITS.namesMax);
    await names.run();
    await clock.advance(7 * DAY_MS - 1);
    await names.run();
    expect(resolver.queries).toHaveLength(1 + REVERSE_LIMITS.namesMax);
    await clock.advance(1);
    await names.run();
    expect(resolver.queries).toHaveLength(2 * (1 + REVERSE_LIMITS.namesMax));
  });

  test("takes a thousand addresses at most, and forgets the answer of none", async () => {
    const ips = Array.from({ length: 1100 }, (_, n) => `8.8.${n >> 8}.${n & 255}`);
    const { names, rows } = start({}, ips);
    await names.run();
    expect(rows().filter(({ asked }) => asked !== null)).toHaveLength(JOB_LIMITS.addressesMax);
  });

  test("takes what was queued last along with the oldest: nobody waits behind a large import", async () => {
    const { names, db, clock, tell } = start(
      {},
      Array.from({ length: 3_000 }, (_, n) => `8.8.${n >> 8}.${n & 255}`),
    );
    await clock.advance(60_000);
    tell("9.9.9.8", "9.9.9.9");
    const asked = (like: string) =>
      db.sqlite
        .query<{ ip: string }, [string]>(
          "SELECT ip FROM dmarc_reverse_names WHERE asked_at_ms > 0 AND ip LIKE ? ORDER BY rowid",
        )
        .all(like)
        .map(({ ip }) => ip);
    await names.run();
    expect(asked("9.9.9.%")).toEqual(["9.9.9.8", "9.9.9.9"]);
    expect(asked("8.8.%")).toHaveLength(JOB_LIMITS.addressesMax - 2);
    expect(asked("8.8.%").slice(0, 500).at(-1)).toBe("8.8.1.243");
    for (let run = 0; run < 3; run += 1) await names.run();
    expect(asked("8.8.%")).toHaveLength(3_000);
  });

  test("that cannot get through all has asked about the newest and the oldest alike", () => {
    const { db, clock, tell } = start({}, ["8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4"]);
    tell("9.9.9.9");
    const queue = new ReverseNameQueue(db);
    expect(queue.due(clock.nowMs(), 10)).toEqual(["9.9.9.9", "8.8.8.1", "8.8.8.4", "8.8.8.2", "8.8.8.3"]);
    expect(queue.due(clock.nowMs(), 3)).toEqual(["9.9.9.9", "8.8.8.1", "8.8.8.4"]);
  });

  test("goes on however many name servers do not answer: each address has others", async () => {
    const ips = Array.from({ length: 300 }, (_, n) => `8.8.${n >> 8}.${n & 255}`);
    const { names, resolver } = start(Object.fromEntries(ips.map((ip) => [reverseQueryName(ip), "servfail"])), ips);
    await names.run();
    expect(resolver.queries).toHaveLength(300);
  });

  test("that is stopped writes nothing about what it did not hear, and does not begin again", async () => {
    const { names, rows, resolver } = start(ptr("8.8.8.8", ["mail.example.com"]), ["8.8.8.8", "9.9.9.9"]);
    const run = names.run();
    names.stop();
    await run;
    await names.run();
    expect(rows().map(({ asked, dueInMs }) => [asked, dueInMs])).toEqual([
      [null, 0],
      [null, 0],
    ]);
    expect(resolver.queries.length).toBeLessThanOrEqual(2);
  });
});
