import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  SAMPLE_DAY_S,
  type SampleReport,
  type SampleRow,
  sampleReportMail,
  sampleReportXml,
} from "../../../testing/dmarc-reports.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { makeSourcesLegacy } from "../../../testing/legacy-sources.ts";
import { silentLog } from "../../../testing/silent-log.ts";
import { SourceRebuild, SourceRebuildStore } from "./source-rebuild.ts";
import { createIngestHarness, INGEST_OWNER, type IngestHarness } from "../../../testing/ingest-harness.ts";

const newHarness = createIngestHarness();
/** When all the days that are told of are over. */
const AFTERWARDS_MS = (SAMPLE_DAY_S + 5 * 86_400) * 1000;
const folder = mkdtempSync(join(tmpdir(), "postwarden-ingest-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Numbers that look random and are the same in every run (Park and Miller). */
const createRandom = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
};
type Chance = ReturnType<typeof createRandom>;

const pick = <T>(chance: Chance, items: readonly [T, ...T[]]): T => items[chance(items.length)] ?? items[0];

const randomRow = (chance: Chance): SampleRow => {
  const result = () => pick(chance, ["pass", "fail"] as const);
  return {
    ip: `192.0.2.${chance(12)}`,
    count: 1 + chance(50),
    disposition: pick(chance, ["none", "quarantine", "reject", "pass"]),
    dkim: result(),
    spf: result(),
    headerFrom: pick(chance, ["example.com", "a.example.com", "b.example.com", "sub.example.net", "other.org", ""]),
    dkimResults: [`${pick(chance, ["example.com", "esp.net", "mail.example.com"])} ${result()} s`],
    spfResults: [`${pick(chance, ["example.com", "bounce.esp.net"])} ${result()}`],
    reasons: chance(4) === 0 ? ["forwarded"] : [],
  };
};

const randomReport = (chance: Chance): SampleReport => ({
  domain: pick(chance, ["example.com", "a.example.com", "sub.example.net", "stranger.example"]),
  org: pick(chance, ["one.example", "Two.example", "three.example"]),
  reportId: `r${chance(30)}`,
  begin: SAMPLE_DAY_S + 86_400 * chance(3),
  rows: Array.from({ length: chance(6) }, () => randomRow(chance)),
});

/** Of the same report with other rows one gives way to another. */
const judgeBySender: AuthenticateMail = async ({ mailFrom }) => ({
  ...{ from: mailFrom?.split("@")[1] ?? null, spf: null, dkim: [], dmarc: null, message: "made up" },
  authenticity: mailFrom?.startsWith("pass") ? "pass" : mailFrom?.startsWith("fail") ? "fail" : "unknown",
});

let replaced = 0;

/** Rebuilds some sources, or all. */
const rebuildSome = async ({ db, clock, stores }: IngestHarness, isAll: boolean): Promise<void> => {
  const rebuild: SourceRebuild = new SourceRebuild(
    { db, clock, log: silentLog },
    {
      ...{ stores, store: new SourceRebuildStore(db), recordsPerStep: 9 },
      pause: async () => {
        if (!isAll) void rebuild.stop();
      },
    },
  );
  await rebuild.run();
};

describe("the daily counts are the sums of the records", () => {
  test.each([1, 2, 3, 4, 5, 6])("for any reports in any order and batches, over restarts (%i)", async (seed) => {
    const chance = createRandom(seed * 7_919);
    const path = join(folder, `${seed}.db`);
    const open = () => newHarness({ path, clock: createTestClock(AFTERWARDS_MS), authenticate: judgeBySender });
    let harness = open();
    harness.enrol("example.com");
    /** Reports that came by mail: they come again with other rows. */
    const mailed: SampleReport[] = [];
    for (let step = 0; step < 40; step += 1) {
      const reports = Array.from({ length: 1 + chance(5) }, () => randomReport(chance));
      const files = reports.map((report) => (chance(2) === 0 ? sampleReportXml(report) : sampleReportMail(report)));
      const incoming = files.map((file) => harness.incoming(file));
      switch (chance(8)) {
        case 0:
          harness = open();
          break;
        case 1:
          await harness.ingestions.retryAll(INGEST_OWNER);
          break;
        case 2: {
          const [any] = harness.all<{ id: string }>(`SELECT id FROM dmarc_ingestions LIMIT 1 OFFSET ${chance(20)}`);
          if (any !== undefined) await harness.ingestions.retry(INGEST_OWNER, any.id);
          break;
        }
        case 3:
        case 4:
        case 5:
          for (const report of reports) {
            const known = mailed[chance(mailed.length * 2 + 1)];
            const sent = known === undefined ? report : { ...known, rows: report.rows ?? [] };
            mailed.push(sent);
            const mailFrom = `${pick(chance, ["pass", "pass", "fail", "unknown", "unknown"])}@${pick(chance, ["one.example", "two.example", "three.example", "attacker.example"])}`;
            await harness.queue.add(harness.incoming(sampleReportMail(sent), { via: "smtp", mailFrom }));
          }
          harness.ingester.start();
          await harness.ingester.stop();
          break;
        default:
          await harness.ingestions.ingestFiles(incoming);
      }
      if (step === 20) harness.enrol("example.net");
      if (step % 13 === 7) makeSourcesLegacy(harness.db);
      else await rebuildSome(harness, step % 13 === 0);
      expect(harness.rollups()).toEqual(harness.recount());
      replaced += harness.count("dmarc_ingestions WHERE reason = 'replaced'");
    }
    harness = open();
    harness.ingester.start();
    await harness.ingester.idle();
    await rebuildSome(harness, true);
    expect(harness.rollups()).toEqual(harness.recount());
    expect(harness.all("SELECT key FROM dmarc_sources WHERE key NOT LIKE '% %'")).toEqual([]);
    expect(harness.all("SELECT id FROM dmarc_ingestions WHERE status = 'pending'")).toEqual([]);
    expect(harness.count("dmarc_raw")).toBe(harness.count("dmarc_ingestions"));
    expect(harness.count("dmarc_reports")).toBeGreaterThan(20);
    const told =
      "SELECT DISTINCT domain, key FROM dmarc_sources WHERE number NOT IN (SELECT source FROM dmarc_records)";
    expect(harness.all(told)).toEqual([]);
    // One of each author, and none beside one that is trusted.
    const doubles = harness.all(
      `SELECT domain, org, report_id, begin_ms, policy_domain, count(*) FROM dmarc_reports GROUP BY 1, lower(org), 3, 4, 5
        HAVING count(DISTINCT sameness) < count(*) OR (count(*) > 1 AND min(instr(sameness, ' ')) = 0)`,
    );
    expect(doubles).toEqual([]);
    const wrong =
      harness.all(`SELECT * FROM (SELECT r.*, (SELECT count(*) FROM dmarc_records WHERE report = r.number) AS there,
      (SELECT sum(count) FROM dmarc_records WHERE report = r.number) AS sent FROM dmarc_reports r) WHERE there <> rows OR sent <> messages`);
    expect(wrong).toEqual([]);
  });
});

test("in those runs some reports were replaced", () => {
  expect(replaced).toBeGreaterThan(10);
});

test("no damage to a mail is an internal error, or loses it", async () => {
  const chance = createRandom(99);
  const harness = newHarness();
  harness.enrol("example.com");
  const mail = sampleReportMail({ rows: [randomRow(chance), randomRow(chance)] });
  const files = Array.from({ length: 300 }, () => {
    const bytes = Buffer.from(mail);
    for (let times = chance(4); times >= 0; times -= 1) bytes[chance(bytes.length)] = chance(256);
    return chance(3) === 0 ? bytes.subarray(0, chance(bytes.length)) : bytes;
  });
  const rows = await harness.ingestions.ingestFiles(files.map((bytes) => harness.incoming(bytes)));
  expect(rows).toHaveLength(files.length);
  for (const [at, { id, status }] of rows.entries()) {
    expect(status).toBe("done");
    expect(Buffer.compare((await harness.store.raw.find(id)) ?? Buffer.alloc(0), files[at] ?? Buffer.alloc(0))).toBe(0);
  }
  expect(rows.filter(({ reason }) => reason === "internal_error")).toEqual([]);
  expect(harness.rollups()).toEqual(harness.recount());
});
