import { describe, expect, test } from "bun:test";
import type { Db } from "../../db/open.ts";
import { madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import { createIngestWorlds, type IngestWorld } from "../../testing/ingest-world.ts";
import { AGAIN_AFTER_MS } from "./ingester.ts";
import { LARGE_ROWS_MIN, ROWS_PER_COMMIT } from "./ingest-large.ts";

const newWorld = createIngestWorlds();

const ROWS = LARGE_ROWS_MIN + ROWS_PER_COMMIT + 7;
const rows = Array.from({ length: ROWS }, (_, at) => ({
  ...{ ip: `192.0.${at % 200}.${at % 50}`, count: 1 + (at % 9), headerFrom: at % 7 === 0 ? "" : "example.com" },
  ...(at % 3 === 0 ? ({ dkim: "fail", spf: "fail" } as const) : {}),
}));
const LARGE = { reportId: "large", rows };

const expectWhole = (world: IngestWorld, records = ROWS): void => {
  expect(world.count("dmarc_records")).toBe(records);
  expect(world.rollups()).toEqual(world.recount());
  expect(world.all("SELECT * FROM dmarc_reports WHERE is_complete = 0 OR sameness LIKE 'staged%'")).toEqual([]);
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
    const world = newWorld({ around });
    world.enrol("example.com");
    const { row } = await world.upload(madeReportXml(LARGE));
    expect(row.outcome).toBe("stored");
    expect(commits).toBeGreaterThanOrEqual(ROWS / ROWS_PER_COMMIT);
    expect(new Set(seen)).toEqual(new Set([0]));
    expect(world.all("SELECT rows, messages, aligned FROM dmarc_reports")).toEqual(
      world.all(
        "SELECT count(*) AS rows, sum(count) AS messages, sum(count * is_aligned) AS aligned FROM dmarc_records",
      ),
    );
    expectWhole(world);
    expect((await world.upload(madeReportMail(LARGE))).row.outcome).toBe("duplicate");
    expectWhole(world);
  });

  test("beside small ones, about a stranger, and twice in one upload", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const stranger = madeReportXml({ ...LARGE, domain: "stranger.example" });
    const files = [
      madeReportXml(),
      madeReportXml(LARGE),
      stranger,
      madeReportXml(LARGE),
      madeReportXml({ reportId: "2" }),
    ];
    const done = await world.ingestions.ingestFiles(files.map((text) => world.incoming(text)));
    expect(done.map(({ outcome }) => outcome)).toEqual(["stored", "stored", "quarantined", "duplicate", "stored"]);
    expectWhole(world, ROWS + 2);
  });

  test("that the same one overtakes goes away again", async () => {
    let overtake = (): void => undefined;
    const world = newWorld({ around: counting((commit) => (commit === 3 ? overtake() : undefined)) });
    const domain = world.enrol("example.com");
    overtake = () => {
      const [staged] = world.all<{ sameness: string; content: string }>("SELECT * FROM dmarc_reports");
      expect(staged?.sameness).toStartWith("staged ");
    };
    const twice = await Promise.all([world.upload(madeReportXml(LARGE)), world.upload(madeReportXml(LARGE))]);
    expect(twice.map(({ row }) => row.outcome).toSorted()).toEqual(["duplicate", "stored"]);
    expect(world.domains.findById(domain.id)?.isUnreviewed).toBe(true);
    expectWhole(world);
  });

  test("that somebody takes for the remains of a crash is written once more", async () => {
    const cleanings: Promise<number>[] = [];
    const world = newWorld({
      around: counting((commit) => {
        if (commit === 3 && cleanings.length === 0) cleanings.push(world.ingest.removeIncomplete());
      }),
    });
    world.enrol("example.com");
    expect((await world.upload(madeReportXml(LARGE))).row.outcome).toBe("stored");
    expect(await Promise.all(cleanings)).toEqual([1]);
    expectWhole(world);
  });

  test.each([2, 3, 4, 5])(
    "cut off by a crash before its transaction %i is removed at the start, and read again",
    async (when) => {
      let isDead = false;
      const world = newWorld({
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
      world.enrol("example.com");
      const id = await world.intake.take(world.incoming(madeReportXml(LARGE), { via: "smtp" }));
      world.ingester.start();
      while (!isDead) await new Promise<void>((resolve) => setImmediate(resolve));
      expect(world.count("dmarc_daily")).toBe(0);
      const path = `/tmp/postwarden-large-${process.pid}-${when}.db`;
      await Bun.write(path, world.db.sqlite.serialize());
      try {
        const after = newWorld({ path });
        expect(await after.ingest.removeIncomplete()).toBe(when > 2 ? 1 : 0);
        expect(after.count("dmarc_records")).toBe(0);
        after.ingester.start();
        await after.ingester.idle();
        await after.clock.advance(AGAIN_AFTER_MS);
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
