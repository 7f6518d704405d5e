import { silentLog } from "../../testing/silent-log.ts";
import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../base/days.ts";
import { type MadeRow, madeReportXml } from "../../testing/dmarc-reports.ts";
import { createIngestWorlds } from "../../testing/ingest-world.ts";
import { possibleKeysOf } from "../sources/possible-keys.ts";
import { NAMES_MAX } from "./ingest-count.ts";
import { createRetention } from "./retention.ts";
import { createNameRetention } from "./retention-names.ts";
import { createNameRetentionStore } from "./retention-names-store.ts";
import { createRetentionStore } from "./retention-store.ts";

const newIngestWorld = createIngestWorlds();
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;

const newWorld = (mode: "live" | "test" = "live") => {
  const world = newIngestWorld();
  const { db, domains, clock } = world;
  const names = createNameRetention({ db, store: createNameRetentionStore(db), clock, keysOf: possibleKeysOf });
  const retention = createRetention({ db, store: createRetentionStore(db), names, domains, clock, log: silentLog });
  const { number } = world.enrol("example.com", { retentionDays: 30, mode });
  let serial = 0;
  return {
    ...world,
    number,
    /** A report of yesterday. */
    tell: (rows: readonly MadeRow[]) => {
      serial += 1;
      const begin = Math.floor(clock.nowMs() / 1000) - 86_400;
      return world.upload(madeReportXml({ reportId: String(serial), begin, rows }), { mode });
    },
    async pass(days: number): Promise<void> {
      await clock.advance(days * DAY_MS);
      await retention.forgetReports();
    },
    say: (key: string) =>
      db.sqlite.run("INSERT INTO dmarc_source_words VALUES (?, ?, 'authorized', ?)", [number, key, clock.nowMs()]),
    words: () => world.all<{ key: string }>("SELECT key FROM dmarc_source_words ORDER BY key").map(({ key }) => key),
    /** As the DNS said of an address; null for no name. */
    answer: (ip: string, name: string | null) =>
      db.sqlite.run(
        "UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = ?, due_at_ms = ? WHERE ip = ?",
        [name, name === null ? 0 : 1, clock.nowMs(), clock.nowMs() + 30 * DAY_MS, ip],
      ),
    reverseNames: () => world.all<{ ip: string }>("SELECT ip FROM dmarc_reverse_names ORDER BY ip").map(({ ip }) => ip),
  };
};

describe("names", () => {
  test("go with what was counted of them, so that forged ones do not hide true ones for ever", async () => {
    const world = newWorld();
    await world.tell(
      Array.from({ length: NAMES_MAX + 100 }, (_, n) => ({ ...UNPROVEN, headerFrom: `r${n}.example.com` })),
    );
    expect(world.count("dmarc_names")).toBe(NAMES_MAX + 1);
    await world.pass(60);
    expect(world.count("dmarc_names")).toBe(0);
    await world.tell([{ headerFrom: "shop.example.com", count: 500 }]);
    expect(world.all("SELECT name, messages FROM dmarc_daily_names")).toEqual([
      { name: "shop.example.com", messages: 500 },
    ]);
  });

  test("stay, with their first day, while anything is counted under them", async () => {
    const world = newWorld();
    for (let day = 0; day < 60; day += 20) {
      await world.tell([{ headerFrom: "shop.example.com" }]);
      if (day === 0) await world.tell([{ headerFrom: "once.example.com" }]);
      await world.pass(20);
    }
    const [first] = world.all<{ day: number }>("SELECT min(first_day) AS day FROM dmarc_names");
    expect(world.all("SELECT name, first_day FROM dmarc_names")).toEqual([
      { name: "shop.example.com", first_day: first?.day },
    ]);
    expect(first?.day).toBeLessThan(world.clock.nowMs() / DAY_MS - 40);
  });
});

describe("the user's word", () => {
  test("about a network goes when none of its addresses was a source for the retention time", async () => {
    const world = newWorld();
    await world.tell([
      { ...UNPROVEN, ip: "9.9.9.9" },
      { ...UNPROVEN, ip: "8.8.8.8" },
    ]);
    for (const key of ["net:9.9.9.0/24", "net:8.8.8.0/24", "ptr:google.example"]) world.say(key);
    await world.pass(29);
    await world.tell([{ ...UNPROVEN, ip: "8.8.8.7" }]);
    expect(world.words()).toHaveLength(3);
    await world.pass(3);
    world.answer("8.8.8.7", "mail.other.example");
    expect(world.words()).toEqual(["net:8.8.8.0/24", "ptr:google.example"]);
    await world.pass(0);
    expect(world.words()).toEqual(["net:8.8.8.0/24"]);
    await world.pass(60);
    expect(world.words()).toEqual([]);
  });

  test("about a reverse name outlives that the DNS does not say it for a while", async () => {
    const world = newWorld();
    await world.tell([{ ...UNPROVEN, ip: "8.8.8.8" }]);
    world.say("ptr:google.example");
    await world.pass(29);
    await world.tell([{ ...UNPROVEN, ip: "8.8.8.8" }]);
    world.answer("8.8.8.8", null);
    await world.pass(3);
    expect(world.words()).toEqual(["ptr:google.example"]);
    world.answer("8.8.8.8", "dns.google.example");
    await world.pass(0);
    expect(world.words()).toEqual(["ptr:google.example"]);
  });

  test("that was just said stays", async () => {
    const world = newWorld();
    world.say("net:9.9.9.0/24");
    await world.pass(1);
    expect(world.words()).toEqual(["net:9.9.9.0/24"]);
  });
});

test("reverse names go before they would be asked for again, unless an address of a source has them", async () => {
  const world = newWorld();
  await world.tell([{ ip: "1.1.1.1" }, { ...UNPROVEN, ip: "9.9.9.9" }, { ...UNPROVEN, ip: "8.8.8.8" }]);
  for (const ip of world.reverseNames()) world.answer(ip, "mail.example");
  await world.pass(29);
  await world.tell([{ ip: "1.1.1.1" }, { ...UNPROVEN, ip: "8.8.8.8" }]);
  await world.pass(3);
  expect(world.reverseNames()).toEqual(["1.1.1.1", "8.8.8.8"]);
  await world.pass(60);
  expect(world.reverseNames()).toEqual([]);
});
