import { join } from "node:path";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { newId } from "../../src/foundation/base/secrets.ts";
import type { Db } from "../../src/foundation/db/open.ts";
import { DomainStore } from "../../src/dmarc/records/domains/domain-store.ts";
import { madeDomain } from "../../src/testing/dmarc-domain.ts";
import { openMemoryGroup } from "../siege/cgroup.ts";
import { fillTargets } from "./dashboard-history.ts";
import { fillHistory, HISTORY } from "./dmarc-history.ts";
import { GapMeter, WATCH, type Watched, spawnWatched } from "./gap-meter.ts";
import { checksBetween, createOwner, type Owner } from "./growth-data.ts";
import { type Mark, median } from "./marks.ts";
import {
  type Service,
  type Settings,
  type Stage,
  environment,
  newDataDir,
  openData,
  startServing,
  untilReady,
} from "./stage.ts";

const GROUP = "year";
const DAY_MS = 86_400_000;
const CHECKS = 5_000_000;
const REPORTS = 200_000;
const CHECKS_OF_TARGET_A_DAY = 4;
const DAYS_OF_TARGETS = 90;
const MEMORY_BYTES_MAX = 1024 ** 3;
const QUICK_PART = 0.1;
/** Over all that stands before: the checks older than 300 days are purged. */
const RETENTION: Settings = {
  POSTWARDEN_VERIFICATION_RETENTION_DAYS: "300",
  POSTWARDEN_EVIDENCE_RETENTION_DAYS: "300",
};
const DAYS = 365;
const CALLS = 5;
const WARM_UP_MS = 3_000;

const CHECK_BODY = JSON.stringify({
  ...{ listed_on: [], added: [], removed: [], results: [] },
  counts: { listed: 0, not_listed: 26, unproven: 0, refused: 0, failed: 0, skipped: 0 },
  not_listed: Array.from({ length: 26 }, (_, n) => `list-${n}`),
});
const FILL_TARGET_CHECKS = `INSERT INTO blocklist_checks (id, target_id, trigger, started_at_ms, finished_at_ms, status, is_change, body)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $count),
    at (i, ms) AS (SELECT i, $nowMs - i * 86400000 / $perDay FROM n)
  SELECT printf('%08x-%04x-7%03x-9f4c-%012x', ms >> 16, ms & 65535, i, t.rowid), t.id, 'scheduled', ms, ms + 400, t.status, 0, $body
    FROM blocklist_targets t, at`;

/** A year of one busy account, as a service that was there all the time has it. */
const fillYear = (dataDir: string, part: number): Owner => {
  const checks = CHECKS * part;
  const owner = createOwner(dataDir, { days: DAYS, everyMs: (DAYS * DAY_MS) / checks });
  checksBetween(dataDir, owner, { from: 0, to: checks });
  const db = openData(dataDir);
  try {
    db.sqlite.run("PRAGMA synchronous = OFF");
    const nowMs = systemClock.nowMs();
    fillTargets(db, owner.accountId, nowMs);
    const checksOfTarget = { $count: DAYS_OF_TARGETS * CHECKS_OF_TARGET_A_DAY * part, $perDay: CHECKS_OF_TARGET_A_DAY };
    db.sqlite.prepare(FILL_TARGET_CHECKS).run({ ...checksOfTarget, $nowMs: nowMs, $body: CHECK_BODY });
    const domains = Math.ceil((REPORTS * part) / HISTORY.reports);
    for (let n = 0; n < domains; n++) fillDomain(db, owner.accountId, { name: `year${n}.example`, nowMs });
    db.sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.close();
  }
  return owner;
};

const fillDomain = (db: Db, accountId: string, { name, nowMs }: { name: string; nowMs: number }): void => {
  const domain = madeDomain({ id: newId(), accountId, domain: name, createdAtMs: nowMs - DAYS * DAY_MS });
  db.transact((tx) => new DomainStore(db).insert(tx, domain));
  fillHistory(db, domain.id, Math.floor(nowMs / DAY_MS) - 1);
};

const pagesOf = ({ sqlite }: Db): readonly string[] => {
  const idOf = (table: string) =>
    sqlite.query<{ id: string }, []>(`SELECT id FROM ${table} ORDER BY rowid LIMIT 1`).get()?.id ?? "";
  const domain = `/dmarc/${idOf("dmarc_domains")}`;
  const ofDomain = ["", "?days=90", "/sources", "/reports", "/advice", "/alerts"].map((path) => domain + path);
  return [
    "/",
    "/verify",
    "/verify?verdict=risky",
    "/verify?q=nobody-has-this",
    "/usage",
    "/blocklists",
    "/dmarc",
  ].concat(...ofDomain, `/blocklists/${idOf("blocklist_targets")}`);
};

const readPages = async (service: Service, { session }: Owner, pages: readonly string[], meter: Metered) => {
  const read = async (path: string): Promise<number> => {
    const startedMs = performance.now();
    const headers = { cookie: `pw_session=${session}`, accept: "text/html" };
    const answer = await fetch(service.url + path, { headers, redirect: "manual" });
    await answer.text();
    if (answer.status !== 200) throw new Error(`${path} was answered with ${answer.status}`);
    return performance.now() - startedMs;
  };
  for (const path of ["/", "/dmarc", "/blocklists", "/verify"]) await read(path);
  await Bun.sleep(WARM_UP_MS);
  for (const path of pages) {
    const shown = path.replace(/[0-9a-f-]{36}/, ":id");
    const times: number[] = [];
    await meter.meter.during(`page ${shown}`, meter.watched, async () => {
      for (let call = 0; call < CALLS; call++) times.push(await read(path));
    });
    meter.meter.marks.push({ group: GROUP, what: `page ${shown}`, value: median(times), unit: "ms" });
  }
};

interface Metered {
  readonly meter: GapMeter;
  readonly watched: Watched;
}

/** Runs a command of the executable to its end, in seconds. */
const timeCommand = async (argv: readonly string[], env: Record<string, string>): Promise<number> => {
  const startedMs = performance.now();
  const child = Bun.spawn([...argv], { env, stdio: ["ignore", "ignore", "pipe"] });
  const [said, status] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (status !== 0) throw new Error(`${argv.join(" ")} ended with ${status}: ${said.slice(-300)}`);
  return (performance.now() - startedMs) / 1_000;
};

/**
 * What a service is like after a year, with 1 GiB of memory and on one core: its start, its pages, and a backup beside the
 * nightly purge. Nothing may hold the event loop.
 */
export const measureYear = async (stage: Stage): Promise<Mark[]> => {
  const dataDir = await newDataDir(stage, GROUP);
  const owner = fillYear(dataDir, stage.isQuick ? QUICK_PART : 1);
  const db = openData(dataDir);
  const pages = pagesOf(db);
  db.close();
  const group = openMemoryGroup(MEMORY_BYTES_MAX);
  const inside = (argv: readonly string[]) => group.enter(["taskset", "--cpu-list", "0", ...argv]);
  const bare = spawnWatched(stage, [WATCH], environment({}));
  const meter = new GapMeter(bare, GROUP);
  const env = environment({ ...RETENTION, POSTWARDEN_DATA_DIR: dataDir });
  try {
    const started = Promise.withResolvers<Watched>();
    const startedMs = performance.now();
    const service = await startServing(stage, { dataDir, settings: {} }, (ownEnv) => {
      const spawned = spawnWatched(stage, "binary", ownEnv, inside);
      started.resolve(spawned);
      return spawned.child;
    });
    const watched = await started.promise;
    try {
      await untilReady(service);
      const readyMs = performance.now() - startedMs;
      meter.marks.push(
        { group: GROUP, what: "first response", value: service.firstAnswerMs, unit: "ms", note: "from the source" },
        { group: GROUP, what: "first response of /readyz", value: readyMs, unit: "ms" },
      );
      await readPages(service, owner, pages, { meter, watched });
    } finally {
      await service.stop();
    }
    const purge = spawnWatched(stage, [join(import.meta.dir, "purge-child.ts"), "nightly"], env, inside);
    await purge.ready;
    const backup = inside([stage.binary, "backup", join(dataDir, "backup.db")]);
    const seconds = await meter.during("purging beside a backup", purge, async () => {
      const [took] = await Promise.all([timeCommand(backup, env), purge.said]);
      return took;
    });
    await purge.stop();
    const gigabytes = Bun.file(join(dataDir, "postwarden.db")).size / 1e9;
    const note = `${gigabytes.toFixed(1)} GB; memory: ${group.kind}`;
    meter.marks.push({ group: GROUP, what: "backup beside the purge", value: seconds, unit: "s", note });
    meter.marks.push({
      group: GROUP,
      what: "killed for memory",
      value: group.read().kills,
      unit: "",
      limit: { most: 0 },
    });
    return meter.marks;
  } finally {
    await bare.stop();
    group.remove();
  }
};
