import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  MADE_DAY_S,
  type MadeReport,
  type MadeRow,
  madeReportMail,
  madeReportXml,
} from "../../testing/dmarc-reports.ts";
import type { CheckAuthenticity } from "../authenticity/authenticity.ts";
import { createTestClock } from "../../testing/clock.ts";
import { makeSourcesLegacy } from "../../testing/legacy-sources.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { createSourceRebuild } from "./source-rebuild.ts";
import { createSourceRebuildStore } from "./source-rebuild-store.ts";
import { createIngestWorlds, INGEST_OWNER, type IngestWorld } from "../../testing/ingest-world.ts";

const newWorld = createIngestWorlds();
/** When all the days that are told of are over. */
const AFTERWARDS_MS = (MADE_DAY_S + 5 * 86_400) * 1000;
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

const randomRow = (chance: Chance): MadeRow => {
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

const randomReport = (chance: Chance): MadeReport => ({
  domain: pick(chance, ["example.com", "a.example.com", "sub.example.net", "stranger.example"]),
  org: pick(chance, ["one.example", "Two.example", "three.example"]),
  reportId: `r${chance(30)}`,
  begin: MADE_DAY_S + 86_400 * chance(3),
  rows: Array.from({ length: chance(6) }, () => randomRow(chance)),
});

/** Of the same report with other rows one gives way to another. */
const judgeBySender: CheckAuthenticity = async ({ mailFrom }) => ({
  ...{ from: mailFrom?.split("@")[1] ?? null, spf: null, dkim: [], dmarc: null, message: "made up" },
  authenticity: mailFrom?.startsWith("pass") ? "pass" : mailFrom?.startsWith("fail") ? "fail" : "unknown",
});

let replaced = 0;

/** Rebuilds some sources, or all. */
const rebuildSome = async ({ db, clock, stores }: IngestWorld, isAll: boolean): Promise<void> => {
  const rebuild = createSourceRebuild({
    ...{ db, clock, counts: stores.counts, store: createSourceRebuildStore(db), log: silentLog, recordsPerStep: 9 },
    pause: async () => {
      if (!isAll) void rebuild.stop();
    },
  });
  await rebuild.run();
};

describe("what is counted is what the records say", () => {
  test.each([1, 2, 3, 4, 5, 6])("whatever comes, in whatever order and batches, over restarts (%i)", async (seed) => {
    const chance = createRandom(seed * 7_919);
    const path = join(folder, `${seed}.db`);
    const open = () => newWorld({ path, clock: createTestClock(AFTERWARDS_MS), authenticate: judgeBySender });
    let world = open();
    world.enrol("example.com");
    /** Reports that came by mail: they come again with other rows. */
    const mailed: MadeReport[] = [];
    for (let step = 0; step < 40; step += 1) {
      const reports = Array.from({ length: 1 + chance(5) }, () => randomReport(chance));
      const files = reports.map((report) => (chance(2) === 0 ? madeReportXml(report) : madeReportMail(report)));
      const incoming = files.map((file) => world.incoming(file));
      switch (chance(8)) {
        case 0:
          world = open();
          break;
        case 1:
          await world.ingestions.retryAll(INGEST_OWNER);
          break;
        case 2: {
          const [any] = world.all<{ id: string }>(`SELECT id FROM dmarc_ingestions LIMIT 1 OFFSET ${chance(20)}`);
          if (any !== undefined) await world.ingestions.retry(INGEST_OWNER, any.id);
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
            await world.intake.take(world.incoming(madeReportMail(sent), { via: "smtp", mailFrom }));
          }
          world.ingester.start();
          await world.ingester.stop();
          break;
        default:
          await world.ingestions.ingestFiles(incoming);
      }
      if (step === 20) world.enrol("example.net");
      if (step % 13 === 7) makeSourcesLegacy(world.db);
      else await rebuildSome(world, step % 13 === 0);
      expect(world.rollups()).toEqual(world.recount());
      replaced += world.count("dmarc_ingestions WHERE reason = 'replaced'");
    }
    world = open();
    world.ingester.start();
    await world.ingester.idle();
    await rebuildSome(world, true);
    expect(world.rollups()).toEqual(world.recount());
    expect(world.all("SELECT key FROM dmarc_sources WHERE key NOT LIKE '% %'")).toEqual([]);
    expect(world.all("SELECT id FROM dmarc_ingestions WHERE status = 'pending'")).toEqual([]);
    expect(world.count("dmarc_raw")).toBe(world.count("dmarc_ingestions"));
    expect(world.count("dmarc_reports")).toBeGreaterThan(20);
    const told =
      "SELECT DISTINCT domain, key FROM dmarc_sources WHERE number NOT IN (SELECT source FROM dmarc_records)";
    expect(world.all(told)).toEqual([]);
    // One of each author, and none beside one that is trusted.
    const doubles = world.all(
      `SELECT domain, org, report_id, begin_ms, policy_domain, count(*) FROM dmarc_reports GROUP BY 1, lower(org), 3, 4, 5
        HAVING count(DISTINCT sameness) < count(*) OR (count(*) > 1 AND min(instr(sameness, ' ')) = 0)`,
    );
    expect(doubles).toEqual([]);
    const wrong =
      world.all(`SELECT * FROM (SELECT r.*, (SELECT count(*) FROM dmarc_records WHERE report = r.number) AS there,
      (SELECT sum(count) FROM dmarc_records WHERE report = r.number) AS sent FROM dmarc_reports r) WHERE there <> rows OR sent <> messages`);
    expect(wrong).toEqual([]);
  });
});

test("in that some reports gave way to others", () => {
  expect(replaced).toBeGreaterThan(10);
});

test("no damage to a mail is ever too much, or loses it", async () => {
  const chance = createRandom(99);
  const world = newWorld();
  world.enrol("example.com");
  const mail = madeReportMail({ rows: [randomRow(chance), randomRow(chance)] });
  const files = Array.from({ length: 300 }, () => {
    const bytes = Buffer.from(mail);
    for (let times = chance(4); times >= 0; times -= 1) bytes[chance(bytes.length)] = chance(256);
    return chance(3) === 0 ? bytes.subarray(0, chance(bytes.length)) : bytes;
  });
  const rows = await world.ingestions.ingestFiles(files.map((bytes) => world.incoming(bytes)));
  expect(rows).toHaveLength(files.length);
  for (const [at, { id, status }] of rows.entries()) {
    expect(status).toBe("done");
    expect(Buffer.compare(world.store.findRaw(id) ?? Buffer.alloc(0), files[at] ?? Buffer.alloc(0))).toBe(0);
  }
  expect(rows.filter(({ reason }) => reason === "internal_error")).toEqual([]);
  expect(world.rollups()).toEqual(world.recount());
});
