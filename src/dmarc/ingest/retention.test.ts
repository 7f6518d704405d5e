import { DAY_MS } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { newId } from "../../base/secrets.ts";
import { madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import { createIngestWorlds, type IngestWorld, type IngestWorldOptions } from "../../testing/ingest-world.ts";
import { createRetention } from "./retention.ts";
import { createRetentionStore } from "./retention-store.ts";

const newIngestWorld = createIngestWorlds();
const newWorld = (options: IngestWorldOptions = {}) => {
  const world = newIngestWorld(options);
  const { db, domains, clock } = world;
  return { ...world, retention: createRetention({ db, store: createRetentionStore(db), domains, clock }) };
};

const at = (world: IngestWorld, daysAgo: number) => Math.floor(world.clock.nowMs() / 1000) - daysAgo * 86_400;
const report = (world: IngestWorld, daysAgo: number, domain = "example.com", ip = "192.0.2.1") =>
  madeReportXml({
    domain,
    begin: at(world, daysAgo),
    rows: [{ ip }, { ip, dkim: "fail", spf: "fail", headerFrom: `x.${domain}` }],
  });
const TABLES = ["dmarc_reports", "dmarc_records", "dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names"] as const;

const addHappenings = (world: IngestWorld, domain: number, atMs: number): void => {
  const alert = newId();
  const run = (sql: string, ...values: (string | number)[]) => world.db.sqlite.run(sql, values);
  run("INSERT INTO dmarc_alerts VALUES (?, ?, 'new_source', 's', ?, '{}')", alert, domain, atMs);
  run("INSERT INTO dmarc_alert_mails VALUES (?, 'a@b.example', ?, ?)", newId(), alert, atMs);
  run("INSERT INTO dmarc_history VALUES (?, ?, 'manual', ?, '{}')", newId(), domain, atMs);
  run("INSERT INTO dmarc_source_words VALUES (?, 'ip:192.0.2.1', 'threat', ?)", domain, atMs);
};

describe("old reports", () => {
  test("go with all that was counted of them, day by day, for each domain as it wants", async () => {
    const world = newWorld();
    const long = world.enrol("example.com", { retentionDays: 400 });
    const short = world.enrol("short.example", { retentionDays: 30 });
    for (const domain of ["example.com", "short.example"]) {
      for (const daysAgo of [500, 100, 10]) {
        await world.upload(report(world, daysAgo, domain, daysAgo === 10 ? "192.0.2.1" : `192.0.2.${domain.length}`));
      }
    }
    await world.retention.forgetReports();
    const left = (domain: number) =>
      TABLES.map((table) => world.all(`SELECT DISTINCT day FROM ${table} WHERE domain = ${domain}`).length);
    expect(left(long.number)).toEqual([2, 2, 2, 2, 2]);
    expect(left(short.number)).toEqual([1, 1, 1, 1, 1]);
    expect(world.rollups()).toEqual(world.recount());
    const keys = (domain: number) =>
      world.all(`SELECT key FROM dmarc_sources WHERE domain = ${domain} AND key LIKE 'ip:%' ORDER BY 1`);
    expect(keys(long.number)).toHaveLength(2);
    expect(keys(short.number)).toEqual([{ key: "ip:192.0.2.1" }]);
  });

  test("take the word about a source that is not seen any more with them, and no other", async () => {
    const world = newWorld();
    const domain = world.enrol("example.com", { retentionDays: 30 });
    await world.upload(report(world, 100, "example.com", "192.0.2.1"));
    addHappenings(world, domain.number, world.clock.nowMs());
    world.db.sqlite.run("INSERT INTO dmarc_source_words VALUES (?, 'spf:other', 'threat', 0)", [domain.number]);
    await world.retention.forgetReports();
    expect(world.all("SELECT key FROM dmarc_source_words")).toEqual([{ key: "spf:other" }]);
    expect(world.count("dmarc_sources")).toBe(0);
    expect(world.count("dmarc_source_addresses")).toBe(0);
  });
});

describe("bytes", () => {
  test("are kept as long as the domain wants, 90 days without one, and while they are to be read", async () => {
    const world = newWorld();
    const eager = world.enrol("example.com", { rawRetentionDays: 10 });
    const patient = world.enrol("patient.example", { rawRetentionDays: 200 });
    const take = async (domain: number | null) => (await world.upload("x", { domain, via: "smtp" })).row.id;
    const old = { eager: await take(eager.number), patient: await take(patient.number), none: await take(null) };
    const pending = await world.intake.take(world.incoming("x", { domain: eager.number }));
    const holding = () =>
      world.all<{ ingestion: string }>("SELECT ingestion FROM dmarc_raw").map(({ ingestion }) => ingestion);
    await world.retention.forgetRaw();
    expect(holding()).toHaveLength(4);
    await world.clock.advance(11 * DAY_MS);
    await world.retention.forgetRaw();
    expect(holding().toSorted()).toEqual([old.patient, old.none, pending].toSorted());
    expect(world.find(old.eager)).toMatchObject({ hasRaw: false, outcome: "rejected" });
    await world.clock.advance(80 * DAY_MS);
    await world.retention.forgetRaw();
    expect(holding().toSorted()).toEqual([old.patient, pending].toSorted());
  });

  test("of many received in the same moment all go", async () => {
    const world = newWorld();
    await world.ingestions.ingestFiles(Array.from({ length: 1_200 }, () => world.incoming("x")));
    await world.clock.advance(91 * DAY_MS);
    await world.retention.forgetRaw();
    expect(world.count("dmarc_raw")).toBe(0);
    expect(world.count("dmarc_ingestions")).toBe(1_200);
  });
});

test("the list of what came in, alerts and history go after 400 days, what is pending never", async () => {
  const world = newWorld();
  const domain = world.enrol("example.com");
  await world.upload("x");
  await world.intake.take(world.incoming("y"));
  addHappenings(world, domain.number, world.clock.nowMs());
  await world.clock.advance(399 * DAY_MS);
  await world.retention.forgetHistory();
  expect(["dmarc_ingestions", "dmarc_alerts", "dmarc_history"].map(world.count)).toEqual([2, 1, 1]);
  await world.clock.advance(2 * DAY_MS);
  await world.upload("z");
  await world.retention.forgetHistory();
  expect(["dmarc_ingestions", "dmarc_raw", "dmarc_alerts", "dmarc_history"].map(world.count)).toEqual([2, 2, 0, 0]);
});

describe("a deleted domain", () => {
  const dmarcTables = (world: IngestWorld) =>
    world
      .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dmarc_%'")
      .map(({ name }) => name)
      .filter((name) => name !== "dmarc_reverse_names");
  const contents = (world: IngestWorld) =>
    Object.fromEntries(dmarcTables(world).map((table) => [table, world.all(`SELECT * FROM ${table} ORDER BY 1, 2`)]));

  const fill = async (world: IngestWorld, name: string): Promise<number> => {
    const { number } = world.enrol(name);
    for (const daysAgo of [1, 2, 3]) {
      const mail = madeReportMail({
        domain: name,
        begin: at(world, daysAgo),
        rows: [{}, { ip: "192.0.2.9", dkim: "fail", spf: "fail" }],
      });
      await world.upload(mail, { domain: number, via: "smtp" });
    }
    await world.upload(JSON.stringify({ policies: [{ policy: { "policy-domain": name } }] }), {
      domain: number,
      via: "smtp",
    });
    await world.intake.take(world.incoming("waiting", { domain: number, via: "smtp" }));
    addHappenings(world, number, world.clock.nowMs());
    return number;
  };

  test("leaves nothing, and takes nothing of another one", async () => {
    const world = newWorld();
    await fill(world, "kept.example");
    const before = contents(world);
    expect(Object.entries(before).filter(([, rows]) => rows.length === 0)).toEqual([]);
    const number = await fill(world, "gone.example");
    world.db.transact((tx) => world.domains.markDeleted(tx, number, 1));
    expect(await world.retention.purgeDeleted()).toBe(1);
    expect(contents(world)).toEqual(before);
    expect(await world.retention.purgeDeleted()).toBe(0);
  });

  test("is purged to the end after any crash", async () => {
    let left = Number.POSITIVE_INFINITY;
    const world = newWorld({
      around: (db) => ({
        ...db,
        commit: (work) => {
          left -= 1;
          return left < 0 ? Promise.reject(new Error("crash")) : db.commit(work);
        },
      }),
    });
    const number = await fill(world, "gone.example");
    world.db.transact((tx) => world.domains.markDeleted(tx, number, 1));
    // Before anything is removed, when all is, and before the domain itself is.
    for (const commits of [0, 1, 1]) {
      left = commits;
      await expect(world.retention.purgeDeleted()).rejects.toThrow("crash");
    }
    left = Number.POSITIVE_INFINITY;
    expect(await world.retention.purgeDeleted()).toBe(1);
    expect(Object.values(contents(world)).flat()).toEqual([]);
  });
});
