import { createLog } from "../foundation/base/log.ts";
import type { Db } from "../foundation/db/open.ts";
import { RECORDS_PER_STEP, SourceRebuild, SourceRebuildStore } from "../dmarc/reports/ingest/source-rebuild.ts";
import { createTestClock } from "./clock.ts";
import { SAMPLE_DAY_S, type SampleRow, sampleReportMail, sampleReportXml } from "./dmarc-reports.ts";
import { createIngestHarness, type IngestHarness } from "./ingest-harness.ts";

export const BY_SMTP = { via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" } as const;

/** An ingest harness whose sources are rebuilt, for the tests of one file. */
export const createRebuildHarness = () => {
  const newIngestHarness = createIngestHarness();
  return () => rebuildable(newIngestHarness);
};

const rebuildable = (newIngestHarness: ReturnType<typeof createIngestHarness>) => {
  const harness = newIngestHarness({
    clock: createTestClock((SAMPLE_DAY_S + 5 * 86_400) * 1000),
    authenticate: async () => ({
      ...{ authenticity: "unknown", from: null, spf: null, dkim: [], dmarc: null, message: "made up" },
    }),
  });
  const { db, clock, stores } = harness;
  const logged: string[] = [];
  const log = createLog("info", clock, (line) => logged.push(line));
  /** A rebuild that calls `between` after each step, and ends when that returns false, as by a crash. */
  const rebuild = async (between: () => Promise<unknown> = async () => undefined, on: Db = db) => {
    const made: SourceRebuild = new SourceRebuild(
      { db: on, clock, log },
      {
        ...{ stores, store: new SourceRebuildStore(on) },
        pause: async () => {
          if ((await between()) === false) void made.stop();
        },
      },
    );
    await made.run();
  };
  return { ...harness, rebuild, logged };
};
export type RebuildHarness = ReturnType<typeof rebuildable>;

/** More than two steps of rows, of which some have the same source. */
export const REBUILT_ROWS: readonly SampleRow[] = Array.from(
  { length: 2 * RECORDS_PER_STEP + 50 },
  (_, at): SampleRow => {
    const ip = `10.0.${at % 3}.${at % 40}`;
    const count = 1 + (at % 7);
    if (at % 5 === 0) return { ip, count, dkim: "fail", spf: "fail", reasons: at % 2 === 0 ? ["forwarded"] : [] };
    if (at % 5 === 1) return { ip, count, spf: "fail", dkimResults: ["mail.example.com pass s1", "esp.net pass e"] };
    if (at % 5 === 2) return { ip, count, dkim: "fail", dkimResults: [], spfResults: ["b.example.com pass"] };
    return { ip, count, dkimResults: [`example.com pass s${at % 2}`], disposition: at % 3 === 0 ? "reject" : "none" };
  },
);

/** Trusted and other reports of two days, and a domain more. */
export const fillRebuilt = async (harness: RebuildHarness): Promise<void> => {
  harness.enrol("example.com");
  harness.enrol("other.example");
  const xml = (reportId: string, rows: readonly SampleRow[], begin = SAMPLE_DAY_S, domain = "example.com") =>
    sampleReportXml({ reportId, rows, begin, domain });
  await harness.upload(xml("1", REBUILT_ROWS));
  await harness.upload(xml("2", REBUILT_ROWS.slice(100, 200), SAMPLE_DAY_S + 86_400));
  await harness.upload(xml("3", [{}, { ip: "10.0.0.1", dkim: "fail", spf: "fail" }], SAMPLE_DAY_S, "other.example"));
  await harness.upload(
    sampleReportMail({ reportId: "4", org: "liar.example", rows: REBUILT_ROWS.slice(0, 99) }),
    BY_SMTP,
  );
};

/** What is counted, by the keys of sources. */
export const COUNTED = `SELECT s.domain, s.key, d.day, d.is_trusted, d.messages, d.aligned, d.aligned_dkim, d.aligned_spf, d.forwarded, d.authenticated,
  d.quarantined, d.rejected FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source ORDER BY 1, 2, 3, 4`;
/** What is counted of all sources together. */
export const SUMS = `SELECT domain, day, is_trusted, sum(messages), sum(aligned), sum(aligned_dkim), sum(aligned_spf), sum(forwarded), sum(authenticated),
  sum(quarantined), sum(rejected) FROM dmarc_daily GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`;
export const isLegacyThere = (harness: Pick<IngestHarness, "count">) =>
  harness.count("dmarc_sources WHERE key NOT LIKE '% %'") > 0;
