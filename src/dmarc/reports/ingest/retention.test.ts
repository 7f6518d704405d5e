import { silentLog } from "../../../testing/silent-log.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { describe, expect, test } from "bun:test";
import { newId } from "../../../foundation/base/secrets.ts";
import { sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import {
  createIngestHarness,
  INGEST_OWNER,
  type IngestHarness,
  type IngestHarnessOptions,
} from "../../../testing/ingest-harness.ts";
import { possibleKeysOf } from "../../insight/sources/source-keys.ts";
import { parseFindings } from "./ingestion-finding.ts";
import { Retention, NameRetention } from "./retention.ts";
import { NameRetentionStore, RetentionStore } from "./retention-store.ts";

const newIngestHarness = createIngestHarness();
const newHarness = (options: IngestHarnessOptions = {}) => {
  const harness = newIngestHarness(options);
  const { db, domains, clock } = harness;
  const names = new NameRetention({ db, clock }, { store: new NameRetentionStore(db), keysOf: possibleKeysOf });
  return {
    ...harness,
    retention: new Retention({ db, clock, log: silentLog }, { store: new RetentionStore(db), names, domains }),
  };
};

const at = (harness: IngestHarness, daysAgo: number) => Math.floor(harness.clock.nowMs() / 1000) - daysAgo * 86_400;
const report = (harness: IngestHarness, daysAgo: number, domain = "example.com", ip = "192.0.2.1") =>
  sampleReportXml({
    domain,
    begin: at(harness, daysAgo),
    rows: [{ ip }, { ip, dkim: "fail", spf: "fail", headerFrom: `x.${domain}` }],
  });
const TABLES = ["dmarc_reports", "dmarc_records", "dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names"] as const;

const addHappenings = (harness: IngestHarness, domain: number, atMs: number): void => {
  const alert = newId();
  const run = (sql: string, ...values: (string | number)[]) => harness.db.sqlite.run(sql, values);
  run("INSERT INTO dmarc_alerts VALUES (?, ?, 'new_source', 's', ?, '{}', NULL)", alert, domain, atMs);
  run("INSERT INTO dmarc_alert_mails VALUES (?, 'a@b.example', ?, ?)", newId(), alert, atMs);
  run("INSERT INTO dmarc_history VALUES (?, ?, 'manual', ?, '{}')", newId(), domain, atMs);
  run("INSERT INTO dmarc_failure_reports VALUES (?, ?, '', ?, 1, '{}', 's')", newId(), domain, atMs);
  run("INSERT INTO dmarc_source_words VALUES (?, 'ip:192.0.2.1', 'threat', ?, NULL)", domain, atMs);
  run("INSERT INTO dmarc_report_authors (domain, author, first_day, last_day) VALUES (?, 'google.com', 1, 1)", domain);
  run(
    "INSERT INTO dmarc_reporters (domain, author, is_known, first_day, last_day) VALUES (?, 'x.net', 0, 1, 1)",
    domain,
  );
  run("INSERT INTO dmarc_shares VALUES (?, ?, ?, NULL, ?, ?, NULL, NULL)", newId(), newId(), domain, atMs, atMs);
  run(
    "INSERT OR REPLACE INTO dmarc_mta_sts VALUES (?, 'testing', 0, '[]', 0, '[]', 0, NULL, NULL, 0, 0, NULL)",
    domain,
  );
  run("INSERT OR REPLACE INTO dmarc_health VALUES (?, ?, '{}')", domain, atMs);
  for (const text of ["a", "b"]) {
    const values = [newId(), domain, atMs, JSON.stringify([text])] as const;
    run("INSERT INTO dmarc_record_history VALUES (?, ?, 'spf', 'example.com', ?, NULL, ?)", ...values);
  }
  const sums = "messages_7, aligned_7, messages_30, aligned_30, actionable_30";
  run(
    `INSERT OR REPLACE INTO dmarc_overviews (domain, computed_at_ms, ${sums}, body) VALUES (?, ?, 0, 0, 0, 0, 0, '{}')`,
    domain,
    atMs,
  );
};

describe("old reports", () => {
  test("expire with their counts, day by day, by the retention of each domain", async () => {
    const harness = newHarness();
    const long = harness.enrol("example.com", { retentionDays: 400 });
    const short = harness.enrol("short.example", { retentionDays: 30 });
    for (const domain of ["example.com", "short.example"]) {
      for (const daysAgo of [500, 100, 10]) {
        await harness.upload(
          report(harness, daysAgo, domain, daysAgo === 10 ? "192.0.2.1" : `192.0.2.${domain.length}`),
        );
      }
    }
    await harness.retention.expireReports();
    const left = (domain: number) =>
      TABLES.map((table) => harness.all(`SELECT DISTINCT day FROM ${table} WHERE domain = ${domain}`).length);
    expect(left(long.number)).toEqual([2, 2, 2, 2, 2]);
    expect(left(short.number)).toEqual([1, 1, 1, 1, 1]);
    expect(harness.rollups()).toEqual(harness.recount());
    const keys = (domain: number) =>
      harness.all(`SELECT key FROM dmarc_sources WHERE domain = ${domain} AND key LIKE '% -/- - -' ORDER BY 1`);
    expect(keys(long.number)).toHaveLength(2);
    expect(keys(short.number)).toEqual([{ key: "192.0.2.1 -/- - -" }]);
  });

  test("expire with older classifications that apply to no source, and no others", async () => {
    const harness = newHarness();
    const domain = harness.enrol("example.com", { retentionDays: 30 });
    await harness.upload(report(harness, 100, "example.com", "192.0.2.1"));
    addHappenings(harness, domain.number, harness.clock.nowMs());
    harness.db.sqlite.run("INSERT INTO dmarc_source_words VALUES (?, 'spf:other', 'threat', 0, NULL)", [domain.number]);
    await harness.retention.expireReports();
    expect(harness.all("SELECT key FROM dmarc_source_words")).toEqual([{ key: "ip:192.0.2.1" }]);
    expect(harness.count("dmarc_sources")).toBe(0);
  });
});

describe("bytes", () => {
  test("are kept for the raw retention of the domain, 90 days without one, and while they are pending", async () => {
    const harness = newHarness();
    const eager = harness.enrol("example.com", { rawRetentionDays: 10 });
    const patient = harness.enrol("patient.example", { rawRetentionDays: 200 });
    const take = async (domain: number | null) => (await harness.upload("x", { domain, via: "smtp" })).row.id;
    const old = { eager: await take(eager.number), patient: await take(patient.number), none: await take(null) };
    const pending = await harness.queue.add(harness.incoming("x", { domain: eager.number }));
    const holding = () =>
      harness.all<{ ingestion: string }>("SELECT ingestion FROM dmarc_raw").map(({ ingestion }) => ingestion);
    await harness.retention.expireRaw();
    expect(holding()).toHaveLength(4);
    await harness.clock.advance(11 * DAY_MS);
    await harness.retention.expireRaw();
    expect(holding().toSorted()).toEqual([old.patient, old.none, pending].toSorted());
    expect(harness.find(old.eager)).toMatchObject({ hasRaw: false, outcome: "rejected" });
    await harness.clock.advance(80 * DAY_MS);
    await harness.retention.expireRaw();
    expect(holding().toSorted()).toEqual([old.patient, pending].toSorted());
  });

  test("kept for longer than the list keep their ingestion on the list", async () => {
    const harness = newHarness();
    const { number } = harness.enrol("example.com", { retentionDays: 3_000, rawRetentionDays: 1_000 });
    await harness.upload(sampleReportMail(), { domain: number, via: "smtp" });
    const forget = async (days: number) => {
      await harness.clock.advance(days * DAY_MS);
      await harness.retention.expireRaw();
      await harness.retention.expireHistory();
      return ["dmarc_raw", "dmarc_ingestions"].map(harness.count);
    };
    expect(await forget(999)).toEqual([1, 1]);
    expect(await forget(2)).toEqual([0, 0]);
  });

  test("are kept by the retention of the domain that they are about, however they arrived", async () => {
    const harness = newHarness();
    const eager = harness.enrol("eager.example", { rawRetentionDays: 1 });
    harness.enrol("patient.example", { rawRetentionDays: 200 });
    await harness.upload(sampleReportMail({ domain: "eager.example" }));
    const strayed = await harness.upload(sampleReportMail({ domain: "patient.example" }), {
      domain: eager.number,
      via: "smtp",
    });
    await harness.clock.advance(2 * DAY_MS);
    await harness.retention.expireRaw();
    expect(harness.all("SELECT ingestion FROM dmarc_raw")).toEqual([{ ingestion: strayed.row.id }]);
    await harness.clock.advance(199 * DAY_MS);
    await harness.retention.expireRaw();
    expect(harness.count("dmarc_raw")).toBe(0);
  });

  test("of many that arrived at the same time all expire", async () => {
    const harness = newHarness();
    await harness.ingestions.ingestFiles(Array.from({ length: 1_200 }, () => harness.incoming("x")));
    await harness.clock.advance(91 * DAY_MS);
    await harness.retention.expireRaw();
    expect(harness.count("dmarc_raw")).toBe(0);
    expect(harness.count("dmarc_ingestions")).toBe(1_200);
  });
});

test("ingestions, alerts and history expire after 400 days; what is pending or has bytes is kept", async () => {
  const harness = newHarness();
  const domain = harness.enrol("example.com");
  await harness.upload("x");
  await harness.queue.add(harness.incoming("y"));
  addHappenings(harness, domain.number, harness.clock.nowMs());
  await harness.clock.advance(399 * DAY_MS);
  await harness.retention.expireHistory();
  expect(["dmarc_ingestions", "dmarc_alerts", "dmarc_history"].map(harness.count)).toEqual([2, 1, 1]);
  await harness.clock.advance(2 * DAY_MS);
  await harness.upload("z");
  await harness.retention.expireHistory();
  expect(harness.count("dmarc_ingestions")).toBe(3);
  await harness.retention.expireRaw();
  await harness.retention.expireHistory();
  expect(["dmarc_ingestions", "dmarc_raw", "dmarc_alerts", "dmarc_history"].map(harness.count)).toEqual([2, 2, 0, 0]);
});

/** What is known of addresses, how far the mailbox was read, and whom the account accepted; digests of tags. */
const OF_NO_DOMAIN = new Set([
  "dmarc_accepted_reporters",
  "dmarc_reverse_names",
  "dmarc_as_names",
  "dmarc_mailboxes",
  "dmarc_mailbox_marks",
  "dmarc_tag_digests",
]);

describe("a deleted domain", () => {
  const dmarcTables = (harness: IngestHarness) =>
    harness
      .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dmarc_%'")
      .map(({ name }) => name)
      .filter((name) => !OF_NO_DOMAIN.has(name));
  const contents = (harness: IngestHarness) =>
    Object.fromEntries(
      dmarcTables(harness).map((table) => [table, harness.all(`SELECT * FROM ${table} ORDER BY 1, 2`)]),
    );

  const fill = async (harness: IngestHarness, name: string): Promise<{ number: number; waiting: string }> => {
    const { number } = harness.enrol(name);
    for (const daysAgo of [1, 2, 3]) {
      const mail = sampleReportMail({
        domain: name,
        begin: at(harness, daysAgo),
        rows: [{}, { ip: "192.0.2.9", dkim: "fail", spf: "fail" }],
      });
      await harness.upload(mail, { domain: number, via: "smtp" });
    }
    await harness.upload(JSON.stringify({ policies: [{ policy: { "policy-domain": name } }] }), {
      domain: number,
      via: "smtp",
    });
    const waiting = await harness.queue.add(
      harness.incoming("waiting".padEnd(20_000), { domain: number, via: "smtp" }),
    );
    addHappenings(harness, number, harness.clock.nowMs());
    return { number, waiting };
  };

  test("leaves nothing behind, and does not affect another one", async () => {
    const harness = newHarness();
    await fill(harness, "kept.example");
    const before = contents(harness);
    expect(Object.entries(before).filter(([, rows]) => rows.length === 0)).toEqual([]);
    const { number, waiting } = await fill(harness, "gone.example");
    await harness.upload(sampleReportXml({ domain: "gone.example", begin: at(harness, 4) }));
    harness.db.transact((tx) => harness.domains.markDeleted(tx, number, 1));
    expect(await harness.retention.purgeDeleted()).toBe(0);
    await harness.ingestions.readAgain(INGEST_OWNER, [waiting]);
    expect(await harness.retention.purgeDeleted()).toBe(1);
    expect(contents(harness)).toEqual(before);
    expect(await harness.retention.purgeDeleted()).toBe(0);
  });

  test("keeps what is about another one, though it was sent to its address", async () => {
    const harness = newHarness();
    const gone = harness.enrol("gone.example");
    harness.enrol("kept.example");
    const smtp = { domain: gone.number, via: "smtp" } as const;
    const early = await harness.upload(sampleReportMail({ domain: "kept.example" }), smtp);
    const late = await harness.queue.add(
      harness.incoming(sampleReportMail({ domain: "kept.example", reportId: "2" }), smtp),
    );
    await harness.upload(sampleReportMail({ domain: "gone.example" }), smtp);
    await harness.upload(sampleReportMail({ domain: "gone.example" }));
    harness.db.transact((tx) => harness.domains.markDeleted(tx, gone.number, 1));
    await harness.retention.purgeDeleted();
    await harness.ingestions.readAgain(INGEST_OWNER, [late]);
    expect(await harness.retention.purgeDeleted()).toBe(1);
    expect(harness.all("SELECT id, domain FROM dmarc_ingestions ORDER BY id")).toEqual(
      [early.row.id, late].map((id) => ({ id, domain: null })),
    );
    expect(harness.count("dmarc_raw")).toBe(2);
    expect(harness.count("dmarc_reports")).toBe(2);
  });

  test("is removed from the findings of a file that is also about another one", async () => {
    const harness = newHarness();
    const gone = harness.enrol("gone.example");
    const kept = harness.enrol("kept.example");
    const part = (domain: string) =>
      `--b\r\nContent-Type: text/xml; name="a!${domain}!1.xml"\r\n\r\n${sampleReportXml({ domain, reportId: domain })}\r\n`;
    const both = `Content-Type: multipart/mixed; boundary=b\r\n\r\n${part("gone.example")}${part("kept.example")}--b--\r\n`;
    const { row, findings } = await harness.upload(both);
    expect(findings.map(({ domain_id }) => domain_id)).toEqual([gone.id, kept.id]);
    harness.db.transact((tx) => harness.domains.markDeleted(tx, gone.number, 1));
    expect(await harness.retention.purgeDeleted()).toBe(1);
    const after = parseFindings(harness.find(row.id));
    expect(JSON.stringify(after)).not.toContain("gone.example");
    expect(after).toEqual([
      {
        ...{ outcome: "stored", reason: "domain_deleted", name: null, report_id: null, domain_id: null },
        ...{ domain: null, org_name: null, external_report_id: null },
      },
      ...findings.filter(({ domain_id }) => domain_id === kept.id),
    ]);
    expect(harness.find(row.id)).toMatchObject({ outcome: "stored", reason: "domain_deleted", hasRaw: true });
    await harness.ingestions.readAgain(INGEST_OWNER, [row.id]);
    expect(parseFindings(harness.find(row.id)).map(({ reason }) => reason)).toEqual(["foreign_domain", null]);
  });

  test("is purged completely after any crash", async () => {
    let left = Number.POSITIVE_INFINITY;
    const harness = newHarness({
      around: (db) => ({
        ...db,
        commit: (work) => {
          left -= 1;
          return left < 0 ? Promise.reject(new Error("crash")) : db.commit(work);
        },
      }),
    });
    const { number, waiting } = await fill(harness, "gone.example");
    await harness.ingestions.readAgain(INGEST_OWNER, [waiting]);
    harness.db.transact((tx) => harness.domains.markDeleted(tx, number, 1));
    // Before anything is removed, then ever later, up to before the domain itself is.
    for (const commits of [0, 1, 2, 2]) {
      left = commits;
      expect(await harness.retention.purgeDeleted()).toBe(0);
    }
    left = Number.POSITIVE_INFINITY;
    expect(await harness.retention.purgeDeleted()).toBe(1);
    expect(Object.values(contents(harness)).flat()).toEqual([]);
  });
});

test("a purge that is stopped ends after its step, and resumes after the next start", async () => {
  let commits = 0;
  let stop = (): Promise<void> | undefined => undefined;
  const around = (db: IngestHarness["db"]): IngestHarness["db"] => ({
    ...db,
    commit: (work) => {
      commits += 1;
      if (commits === 2) void stop();
      return db.commit(work);
    },
  });
  const harness = newHarness({ around });
  const domain = harness.enrol("example.com", { deletedAtMs: 1 });
  harness.db.sqlite.run(
    `WITH RECURSIVE s (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s WHERE v < 3000)
      INSERT INTO dmarc_names (domain, name, first_day, first_seen_at_ms) SELECT ${domain.number}, v, 0, 0 FROM s`,
  );
  stop = () => harness.retention.stop();
  expect(await harness.retention.purgeDeleted()).toBe(0);
  await harness.retention.stop();
  expect(commits).toBe(2);
  await harness.retention.expireReports();
  expect(commits).toBe(2);
  expect(harness.count("dmarc_names")).toBe(2_000);
});
