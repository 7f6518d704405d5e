import { describe, expect, test } from "bun:test";
import type { Db } from "../../../foundation/db/open.ts";
import { sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, type IngestHarness } from "../../../testing/ingest-harness.ts";
import { ReportStore } from "./report-store.ts";
import { REREAD_AFTER_MS } from "./ingestion-worker.ts";
import { LARGE_ROWS_MIN, ROWS_PER_COMMIT } from "./ingest-write.ts";

const newHarness = createIngestHarness();

const ROWS = LARGE_ROWS_MIN + ROWS_PER_COMMIT + 7;
const rows = Array.from({ length: ROWS }, (_, at) => ({
  ...{ ip: `192.0.${at % 200}.${at % 50}`, count: 1 + (at % 9), headerFrom: at % 7 === 0 ? "" : "example.com" },
  ...(at % 3 === 0 ? ({ dkim: "fail", spf: "fail" } as const) : {}),
}));
const LARGE = { reportId: "large", rows };
/** Packed it is small, so that only its rows take several transactions. */
const PACKED = Bun.gzipSync(sampleReportXml(LARGE));

const expectWhole = (harness: IngestHarness, records = ROWS): void => {
  expect(harness.count("dmarc_records")).toBe(records);
  expect(harness.rollups()).toEqual(harness.recount());
  expect(harness.all("SELECT * FROM dmarc_reports WHERE is_complete = 0 OR sameness LIKE 'staged%'")).toEqual([]);
};

/** Calls `at` before each commit, with its number. */
const counting = (at: (commit: number, db: Db) => void) => {
  let commits = 0;
  return (db: Db): Db => ({
    ...db,
    commit: (work) => {
      commits += 1;
      at(commits, db);
      return db.commit(work);
    },
  });
};

describe("a large report", () => {
  test("is written in several transactions, counts at once, and is a duplicate the next time", async () => {
    let commits = 0;
    const seen: number[] = [];
    const around = counting((commit, db) => {
      commits = commit;
      seen.push(db.sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM dmarc_daily").get()?.n ?? 0);
    });
    const harness = newHarness({ around });
    harness.enrol("example.com");
    const { row } = await harness.upload(PACKED);
    expect(row.outcome).toBe("stored");
    expect(commits).toBeGreaterThanOrEqual(ROWS / ROWS_PER_COMMIT);
    expect(new Set(seen)).toEqual(new Set([0]));
    expect(harness.all("SELECT rows, messages, aligned FROM dmarc_reports")).toEqual(
      harness.all(
        "SELECT count(*) AS rows, sum(count) AS messages, sum(count * is_aligned) AS aligned FROM dmarc_records",
      ),
    );
    expectWhole(harness);
    expect((await harness.upload(sampleReportMail(LARGE))).row.outcome).toBe("duplicate");
    expectWhole(harness);
  });

  test("is written beside small ones; about a foreign domain and twice in one upload it is not", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const stranger = sampleReportXml({ ...LARGE, domain: "stranger.example" });
    const files = [
      sampleReportXml(),
      sampleReportXml(LARGE),
      stranger,
      sampleReportXml(LARGE),
      sampleReportXml({ reportId: "2" }),
    ];
    const done = await harness.ingestions.ingestFiles(files.map((text) => harness.incoming(text)));
    expect(done.map(({ outcome }) => outcome)).toEqual(["stored", "stored", "quarantined", "duplicate", "stored"]);
    expectWhole(harness, ROWS + 2);
  });

  test("is removed when the same report was completed meanwhile", async () => {
    let overtake = (): void => undefined;
    const harness = newHarness({ around: counting((commit) => (commit === 3 ? overtake() : undefined)) });
    const domain = harness.enrol("example.com");
    overtake = () => {
      const [staged] = harness.all<{ sameness: string; content: string }>("SELECT * FROM dmarc_reports");
      expect(staged?.sameness).toStartWith("staged ");
    };
    const twice = await Promise.all([harness.upload(PACKED), harness.upload(PACKED)]);
    expect(twice.map(({ row }) => row.outcome).toSorted()).toEqual(["duplicate", "stored"]);
    expect(harness.domains.findById(domain.id)?.isUnreviewed).toBe(true);
    expectWhole(harness);
  });

  // The last of the six transactions completes the report.
  test.each([3, 4, 5, 6])(
    "is written again when another process begins to remove it as the remains of a crash before transaction %i",
    async (when) => {
      const cleanings: Promise<number>[] = [];
      const harness = newHarness({
        around: counting((commit) => {
          if (commit === when && cleanings.length === 0) cleanings.push(harness.ingest.removeIncomplete());
        }),
      });
      harness.enrol("example.com");
      expect((await harness.upload(PACKED)).row.outcome).toBe("stored");
      expect(await Promise.all(cleanings)).toEqual([1]);
      expectWhole(harness);
    },
  );

  test.each([3, 4, 5, 6])("is written again when one of its rows was removed before transaction %i", async (when) => {
    const harness = newHarness({
      around: counting((commit, db) => {
        if (commit !== when) return;
        const [staged] = harness.all<{ number: number }>("SELECT number FROM dmarc_reports WHERE is_complete = 0");
        if (staged === undefined) throw new Error("there is no staged report");
        const reports = new ReportStore(db);
        db.transact((tx) => reports.removeIncomplete(tx, staged.number, 1));
      }),
    });
    harness.enrol("example.com");
    expect((await harness.upload(PACKED)).row.outcome).toBe("stored");
    expect(await harness.ingest.removeIncomplete()).toBe(0);
    expectWhole(harness);
  });

  test.each([2, 3, 4, 5])(
    "cut off by a crash before its transaction %i is removed at the start, and read again",
    async (when) => {
      let isDead = false;
      const harness = newHarness({
        around: (db) => {
          let commits = 0;
          return {
            ...db,
            commit: (work) => {
              commits += 1;
              if (commits > when) isDead = true;
              return isDead ? Promise.withResolvers<never>().promise : db.commit(work);
            },
          };
        },
      });
      harness.enrol("example.com");
      const id = await harness.queue.add(harness.incoming(PACKED, { via: "smtp" }));
      harness.ingester.start();
      while (!isDead) await new Promise<void>((resolve) => setImmediate(resolve));
      expect(harness.count("dmarc_daily")).toBe(0);
      const path = `/tmp/postwarden-large-${process.pid}-${when}.db`;
      await Bun.write(path, harness.db.sqlite.serialize());
      try {
        const after = newHarness({ path });
        expect(await after.ingest.removeIncomplete()).toBe(when > 2 ? 1 : 0);
        expect(after.count("dmarc_records")).toBe(0);
        after.ingester.start();
        await after.ingester.idle();
        await after.clock.advance(REREAD_AFTER_MS);
        await after.ingester.idle();
        expect(after.find(id).outcome).toBe("stored");
        expectWhole(after);
      } finally {
        for (const ending of ["", "-wal", "-shm"])
          await Bun.file(path + ending)
            .delete()
            .catch(() => undefined);
      }
    },
  );
});
