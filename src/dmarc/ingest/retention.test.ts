import { silentLog } from "../../testing/silent-log.ts";
import { DAY_MS } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { newId } from "../../base/secrets.ts";
import { madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import {
  createIngestWorlds,
  INGEST_OWNER,
  type IngestWorld,
  type IngestWorldOptions,
} from "../../testing/ingest-world.ts";
import { possibleKeysOf } from "../sources/possible-keys.ts";
import { findingsIn } from "./ingestion-view.ts";
import { createRetention } from "./retention.ts";
import { createNameRetention } from "./retention-names.ts";
import { createNameRetentionStore } from "./retention-names-store.ts";
import { createRetentionStore } from "./retention-store.ts";

const newIngestWorld = createIngestWorlds();
const newWorld = (options: IngestWorldOptions = {}) => {
  const world = newIngestWorld(options);
  const { db, domains, clock } = world;
  const names = createNameRetention({ db, store: createNameRetentionStore(db), clock, keysOf: possibleKeysOf });
  return {
    ...world,
    retention: createRetention({ db, store: createRetentionStore(db), names, domains, clock, log: silentLog }),
  };
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
  run("INSERT INTO dmarc_failure_reports VALUES (?, ?, '', ?, 1, '{}', 's')", newId(), domain, atMs);
  run("INSERT INTO dmarc_source_words VALUES (?, 'ip:192.0.2.1', 'threat', ?)", domain, atMs);
  run("INSERT INTO dmarc_report_authors (domain, author, first_day, last_day) VALUES (?, 'google.com', 1, 1)", domain);
  run("INSERT OR REPLACE INTO dmarc_health VALUES (?, ?, '{}')", domain, atMs);
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
      world.all(`SELECT key FROM dmarc_sources WHERE domain = ${domain} AND key LIKE '% -/- - -' ORDER BY 1`);
    expect(keys(long.number)).toHaveLength(2);
    expect(keys(short.number)).toEqual([{ key: "192.0.2.1 -/- - -" }]);
  });

  test("take classifications made before them with them that apply to no source, and no others", async () => {
    const world = newWorld();
    const domain = world.enrol("example.com", { retentionDays: 30 });
    await world.upload(report(world, 100, "example.com", "192.0.2.1"));
    addHappenings(world, domain.number, world.clock.nowMs());
    world.db.sqlite.run("INSERT INTO dmarc_source_words VALUES (?, 'spf:other', 'threat', 0)", [domain.number]);
    await world.retention.forgetReports();
    expect(world.all("SELECT key FROM dmarc_source_words")).toEqual([{ key: "ip:192.0.2.1" }]);
    expect(world.count("dmarc_sources")).toBe(0);
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

  test("wanted for longer than the list is kept are kept, with their place on the list", async () => {
    const world = newWorld();
    const { number } = world.enrol("example.com", { retentionDays: 3_000, rawRetentionDays: 1_000 });
    await world.upload(madeReportMail(), { domain: number, via: "smtp" });
    const forget = async (days: number) => {
      await world.clock.advance(days * DAY_MS);
      await world.retention.forgetRaw();
      await world.retention.forgetHistory();
      return ["dmarc_raw", "dmarc_ingestions"].map(world.count);
    };
    expect(await forget(999)).toEqual([1, 1]);
    expect(await forget(2)).toEqual([0, 0]);
  });

  test("are for the domain to say that they are about, whatever way they came", async () => {
    const world = newWorld();
    const eager = world.enrol("eager.example", { rawRetentionDays: 1 });
    world.enrol("patient.example", { rawRetentionDays: 200 });
    await world.upload(madeReportMail({ domain: "eager.example" }));
    const strayed = await world.upload(madeReportMail({ domain: "patient.example" }), {
      domain: eager.number,
      via: "smtp",
    });
    await world.clock.advance(2 * DAY_MS);
    await world.retention.forgetRaw();
    expect(world.all("SELECT ingestion FROM dmarc_raw")).toEqual([{ ingestion: strayed.row.id }]);
    await world.clock.advance(199 * DAY_MS);
    await world.retention.forgetRaw();
    expect(world.count("dmarc_raw")).toBe(0);
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

test("the list of what came in, alerts and history go after 400 days; what is pending or has bytes stays", async () => {
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
  expect(world.count("dmarc_ingestions")).toBe(3);
  await world.retention.forgetRaw();
  await world.retention.forgetHistory();
  expect(["dmarc_ingestions", "dmarc_raw", "dmarc_alerts", "dmarc_history"].map(world.count)).toEqual([2, 2, 0, 0]);
});

/** What is known of addresses, and how far the mailbox was read. */
const OF_NO_DOMAIN = new Set(["dmarc_reverse_names", "dmarc_as_names", "dmarc_mailboxes", "dmarc_mailbox_marks"]);

describe("a deleted domain", () => {
  const dmarcTables = (world: IngestWorld) =>
    world
      .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dmarc_%'")
      .map(({ name }) => name)
      .filter((name) => !OF_NO_DOMAIN.has(name));
  const contents = (world: IngestWorld) =>
    Object.fromEntries(dmarcTables(world).map((table) => [table, world.all(`SELECT * FROM ${table} ORDER BY 1, 2`)]));

  const fill = async (world: IngestWorld, name: string): Promise<{ number: number; waiting: string }> => {
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
    const waiting = await world.intake.take(world.incoming("waiting", { domain: number, via: "smtp" }));
    addHappenings(world, number, world.clock.nowMs());
    return { number, waiting };
  };

  test("leaves nothing, and takes nothing of another one", async () => {
    const world = newWorld();
    await fill(world, "kept.example");
    const before = contents(world);
    expect(Object.entries(before).filter(([, rows]) => rows.length === 0)).toEqual([]);
    const { number, waiting } = await fill(world, "gone.example");
    await world.upload(madeReportXml({ domain: "gone.example", begin: at(world, 4) }));
    world.db.transact((tx) => world.domains.markDeleted(tx, number, 1));
    expect(await world.retention.purgeDeleted()).toBe(0);
    await world.ingestions.readAgain(INGEST_OWNER, [waiting]);
    expect(await world.retention.purgeDeleted()).toBe(1);
    expect(contents(world)).toEqual(before);
    expect(await world.retention.purgeDeleted()).toBe(0);
  });

  test("leaves what is about another one, though it came to its address", async () => {
    const world = newWorld();
    const gone = world.enrol("gone.example");
    world.enrol("kept.example");
    const smtp = { domain: gone.number, via: "smtp" } as const;
    const early = await world.upload(madeReportMail({ domain: "kept.example" }), smtp);
    const late = await world.intake.take(
      world.incoming(madeReportMail({ domain: "kept.example", reportId: "2" }), smtp),
    );
    await world.upload(madeReportMail({ domain: "gone.example" }), smtp);
    await world.upload(madeReportMail({ domain: "gone.example" }));
    world.db.transact((tx) => world.domains.markDeleted(tx, gone.number, 1));
    await world.retention.purgeDeleted();
    await world.ingestions.readAgain(INGEST_OWNER, [late]);
    expect(await world.retention.purgeDeleted()).toBe(1);
    expect(world.all("SELECT id, domain FROM dmarc_ingestions ORDER BY id")).toEqual(
      [early.row.id, late].map((id) => ({ id, domain: null })),
    );
    expect(world.count("dmarc_raw")).toBe(2);
    expect(world.count("dmarc_reports")).toBe(2);
  });

  test("is forgotten in what was found in a file that is about another one too", async () => {
    const world = newWorld();
    const gone = world.enrol("gone.example");
    const kept = world.enrol("kept.example");
    const part = (domain: string) =>
      `--b\r\nContent-Type: text/xml; name="a!${domain}!1.xml"\r\n\r\n${madeReportXml({ domain, reportId: domain })}\r\n`;
    const both = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${part("gone.example")}${part("kept.example")}--b--\r\n`;
    const { row, findings } = await world.upload(both);
    expect(findings.map(({ domain_id }) => domain_id)).toEqual([gone.id, kept.id]);
    world.db.transact((tx) => world.domains.markDeleted(tx, gone.number, 1));
    expect(await world.retention.purgeDeleted()).toBe(1);
    const after = findingsIn(world.find(row.id));
    expect(JSON.stringify(after)).not.toContain("gone.example");
    expect(after).toEqual([
      {
        ...{ outcome: "stored", reason: "domain_deleted", name: null, report_id: null, domain_id: null },
        ...{ domain: null, org_name: null, external_report_id: null },
      },
      ...findings.filter(({ domain_id }) => domain_id === kept.id),
    ]);
    expect(world.find(row.id)).toMatchObject({ outcome: "stored", reason: "domain_deleted", hasRaw: true });
    await world.ingestions.readAgain(INGEST_OWNER, [row.id]);
    expect(findingsIn(world.find(row.id)).map(({ reason }) => reason)).toEqual(["foreign_domain", null]);
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
    const { number, waiting } = await fill(world, "gone.example");
    await world.ingestions.readAgain(INGEST_OWNER, [waiting]);
    world.db.transact((tx) => world.domains.markDeleted(tx, number, 1));
    // Before anything is removed, then ever later, up to before the domain itself is.
    for (const commits of [0, 1, 2, 2]) {
      left = commits;
      expect(await world.retention.purgeDeleted()).toBe(0);
    }
    left = Number.POSITIVE_INFINITY;
    expect(await world.retention.purgeDeleted()).toBe(1);
    expect(Object.values(contents(world)).flat()).toEqual([]);
  });
});

test("a purge that is stopped ends after its step, touches the database no more, and goes on after the next start", async () => {
  let commits = 0;
  let stop = (): Promise<void> | undefined => undefined;
  const around = (db: IngestWorld["db"]): IngestWorld["db"] => ({
    ...db,
    commit: (work) => {
      commits += 1;
      if (commits === 2) void stop();
      return db.commit(work);
    },
  });
  const world = newWorld({ around });
  const domain = world.enrol("example.com", { deletedAtMs: 1 });
  world.db.sqlite.run(
    `WITH RECURSIVE s (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s WHERE v < 3000)
      INSERT INTO dmarc_names (domain, name, first_day, first_seen_at_ms) SELECT ${domain.number}, v, 0, 0 FROM s`,
  );
  stop = () => world.retention.stop();
  expect(await world.retention.purgeDeleted()).toBe(0);
  await world.retention.stop();
  expect(commits).toBe(2);
  await world.retention.forgetReports();
  expect(commits).toBe(2);
  expect(world.count("dmarc_names")).toBe(2_000);
});
