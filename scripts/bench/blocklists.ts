import { join } from "node:path";
import { type Blocklist, isEnabled, zoneOf } from "../../src/blocklist/lists/blocklist.ts";
import { readEmbeddedCatalogue } from "../../src/blocklist/lists/catalogue.ts";
import { formQueries, literalName } from "../../src/blocklist/lists/query-name.ts";
import { BlocklistStore, type TargetRow } from "../../src/blocklist/store.ts";
import { newId } from "../../src/foundation/base/secrets.ts";
import { organisationalDomain } from "../../src/foundation/mail/organisational-domain.ts";
import { cpuSecondsOf, peakMbOf } from "../harness/binary.ts";
import { type Mark, median } from "./marks.ts";
import { type NameServer, needTools, startZones } from "./servers.ts";
import { type Stage, newDataDir, openData, startBinary } from "./stage.ts";
import embedded from "../../fixtures/blocklists.json" with { type: "json" };
import { z } from "zod";

const GROUP = "blocklists";
const TARGETS = 10_000;
const SCHEDULED = 100_000;
const PICKS = 101;
const PICKED = 200;
const PURGED = 20_000;
const PURGED_AT_ONCE = 1_000;
const KEPT_CHANGES = 200_000;
const QUERIES_PER_DAY = 1_000_000_000;
/** Of dnsperf, and of our DNS client. */
const AT_ONCE = 256;
/** A pass begins with a minute. */
const PASS_MS_MAX = 150_000;
const SIX_HOURS_MS = 6 * 60 * 60_000;

/** Eight of ten are IPv4, one IPv6, one a domain; each stands once. */
const targetOf = (n: number): Pick<TargetRow, "kind" | "value"> => {
  if (n % 10 === 8) return { kind: "ipv6", value: `2a00:1450::${n.toString(16)}` };
  if (n % 10 === 9) return { kind: "domain", value: `mail.bench-${n}.com` };
  return { kind: "ipv4", value: `100.${20 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}` };
};

const rowOf = (n: number, nextCheckAtMs: number): TargetRow => ({
  id: newId(),
  accountId: "bench",
  mode: "live",
  ...targetOf(n),
  label: null,
  status: "pending",
  listedOn: [],
  rangeId: "",
  members: null,
  severityRank: 0,
  alertSeverityMin: null,
  mutedLists: [],
  monitoringEnabled: true,
  webhookUrl: null,
  recipients: [],
  unknownChecks: 0,
  lastCheckedAtMs: null,
  nextCheckAtMs,
  createdAtMs: nextCheckAtMs,
});

/** The entries by which the lists pass their tests. */
const testRecords = (lists: readonly Blocklist[]): string[] =>
  lists.flatMap((list) =>
    (["ipv4", "ipv6", "domain"] as const).flatMap((kind) =>
      (list.testPoints[kind]?.positive ?? []).map(({ value }) => {
        const match = list.codes[0]?.matches[0];
        const from = match?.kind === "bit" ? 0x7f_00_00_00 + match.bit : (match?.from ?? 0);
        const answer = [24, 16, 8, 0].map((shift) => (from >>> shift) & 255).join(".");
        return `${literalName({ kind, value }) ?? value}.${zoneOf(list)}. 600 IN A ${answer}`;
      }),
    ),
  );

/** Every name that a pass asks for, once. */
const questionsOf = (lists: readonly Blocklist[]): string[] =>
  Array.from({ length: TARGETS }, (_, n) => targetOf(n)).flatMap((target) =>
    lists.flatMap((list) => {
      const forms = formQueries(target, list, organisationalDomain);
      return forms.ok ? forms.value.prefixes.map((prefix) => `${prefix}.${zoneOf(list)}`) : [];
    }),
  );

const askByDnsperf = async (stage: Stage, { address, port }: NameServer, questions: readonly string[]) => {
  const path = join(stage.directory, "blocklists-questions.txt");
  await Bun.write(path, questions.map((name) => `${name} A`).join("\n"));
  const where = ["-s", address, "-p", String(port), "-d", path, "-n", "1"];
  const said = await stage.supervisor.run(["dnsperf", ...where, "-c", "1", "-T", "1", "-q", String(AT_ONCE)]);
  return Math.round(Number(/Queries per second:\s+([\d.]+)/.exec(said)?.[1]));
};

/** How many checks the binary has written down so far. */
const countChecks = ({ sqlite }: ReturnType<typeof openData>): number =>
  sqlite.query<{ checks: number }, []>("SELECT count(*) AS checks FROM blocklist_checks").get()?.checks ?? 0;

const Passed = z.object({
  checks: z.number(),
  sinceMs: z.number().nullable(),
  untilMs: z.number().nullable(),
  answered: z.number().nullable(),
  lost: z.number().nullable(),
});

/** What the binary has written down. */
const passedOf = (db: ReturnType<typeof openData>) => {
  const count = (name: string) => `json_extract(body, '$.counts.${name}')`;
  const sql = `SELECT count(*) AS checks, min(started_at_ms) AS sinceMs, max(finished_at_ms) AS untilMs,
    sum(${count("listed")} + ${count("not_listed")}) AS answered,
    sum(${count("failed")} + ${count("refused")}) AS lost FROM blocklist_checks`;
  return Passed.parse(db.sqlite.query(sql).get());
};

/** The binary, with the lists of its catalogue and none of their pauses, checks 10,000 targets that became due. */
const measurePass = async (stage: Stage): Promise<Mark[]> => {
  const lists = readEmbeddedCatalogue().lists.filter(isEnabled);
  const zones = lists.flatMap((list) => zoneOf(list) ?? []);
  const names = await startZones(stage, "blocklists-names", { zones, records: testRecords(lists) });
  const questions = questionsOf(lists);
  const before = await askByDnsperf(stage, names, questions);

  const dataDir = await newDataDir(stage, "blocklists-pass");
  const budget = { queries_per_day: QUERIES_PER_DAY, spacing_ms: 0 };
  const cataloguePath = join(dataDir, "catalogue.json");
  const catalogue = { ...embedded, lists: embedded.lists.map((list) => ({ ...list, budget })) };
  await Bun.write(cataloguePath, JSON.stringify(catalogue));
  const db = openData(dataDir);
  const store = new BlocklistStore(db);
  const nowMs = Date.now();
  db.transact((tx) => {
    for (let n = 0; n < TARGETS; n++) store.insertTarget(tx, rowOf(n, nowMs));
  });
  const service = await startBinary(stage, dataDir, {
    POSTWARDEN_DNS_SERVERS: names.setting,
    POSTWARDEN_BLOCKLIST_CATALOGUE: cataloguePath,
  });
  const startedS = cpuSecondsOf(service.pid);
  for (const endsAtMs = Date.now() + PASS_MS_MAX; countChecks(db) < TARGETS && Date.now() < endsAtMs;)
    await Bun.sleep(500);
  const cpuUs = ((cpuSecondsOf(service.pid) - startedS) * 1e6) / questions.length;
  const mostMb = peakMbOf(service.pid);
  await service.stop();
  const passed = passedOf(db);
  db.close();
  const after = await askByDnsperf(stage, names, questions);

  const seconds = ((passed.untilMs ?? 0) - (passed.sinceMs ?? 0)) / 1000;
  const note = `${passed.checks} targets, ${lists.length} lists, ${seconds.toFixed(1)} s; every check recorded`;
  const perSecond = questions.length / seconds;
  const dnsperf = median([before, after]);
  const figure = (what: string, value: number, unit: string): Mark => ({ group: GROUP, what, value, unit });
  return [
    {
      ...figure("questions of one pass", Math.round(perSecond), "/s"),
      limit: { least: 10_000 },
      note,
    },
    { ...figure("targets not checked", TARGETS - passed.checks, ""), limit: { most: 0 } },
    {
      ...figure("answers lost", passed.lost ?? Number.NaN, ""),
      limit: { most: 0 },
      note: `${passed.answered} came`,
    },
    { ...figure("memory meanwhile", mostMb, "MB"), limit: { most: 200 } },
    { ...figure("dnsperf, the same questions", dnsperf, "/s"), note: "mean of before and after" },
    {
      ...figure("time of one pass, of dnsperf's", dnsperf / perSecond, ""),
      limit: { most: 4 },
      note: `the same names, ${AT_ONCE} at once`,
    },
    figure("CPU of each question, with everything that is stored", cpuUs, "µs"),
  ];
};

/** How long it takes to find what is due among very many. */
const measurePick = async (stage: Stage): Promise<Mark[]> => {
  const db = openData(await newDataDir(stage, "blocklists-pick"));
  const store = new BlocklistStore(db);
  const nowMs = Date.now();
  const everyMs = SIX_HOURS_MS / SCHEDULED;
  db.transact((tx) => {
    for (let n = 0; n < SCHEDULED; n++) store.insertTarget(tx, rowOf(n, Math.round(nowMs + (n - PICKED) * everyMs)));
  });
  const times = Array.from({ length: PICKS }, () => {
    const startedMs = performance.now();
    const due = store.dueTargets(nowMs, PICKED);
    if (due.length < PICKED) throw new Error(`${due.length} targets were due`);
    return performance.now() - startedMs;
  });
  db.close();
  const note = `${PICKED} due of ${SCHEDULED.toLocaleString("en")}, median of ${PICKS}; the worst ${Math.max(...times).toFixed(1)} ms`;
  return [{ group: GROUP, what: "picking what is due", value: median(times), unit: "ms", limit: { most: 5 }, note }];
};

const FILL_OLD_CHECKS = `INSERT INTO blocklist_checks (id, target_id, trigger, started_at_ms, finished_at_ms, status, is_change, body)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
  SELECT printf('%d-%09d', ?2, i), 'bench', 'scheduled', i, i, 'listed', ?2, '{}' FROM n`;

/** The purge of checks, first without and then beside checks with a change, which are kept for longer. */
const measurePurge = async (stage: Stage): Promise<Mark[]> => {
  const db = openData(await newDataDir(stage, "blocklists-purge"));
  const store = new BlocklistStore(db);
  const timeMs = (): number => {
    db.sqlite.query(FILL_OLD_CHECKS).run(PURGED, 0);
    const startedMs = performance.now();
    const purge = () =>
      db.transact((tx) => store.purgeChecks(tx, { isChange: false, beforeMs: Date.now(), limit: PURGED_AT_ONCE }));
    let purged = 0;
    for (let count = purge(); count > 0; count = purge()) purged += count;
    if (purged !== PURGED) throw new Error(`${purged} checks were purged`);
    return performance.now() - startedMs;
  };
  const alone = timeMs();
  db.sqlite.query(FILL_OLD_CHECKS).run(KEPT_CHANGES, 1);
  const beside = timeMs();
  db.close();
  const note = `${PURGED.toLocaleString("en")} checks in ${alone.toFixed(0)} ms alone, in ${beside.toFixed(0)} ms beside ${KEPT_CHANGES.toLocaleString("en")} kept`;
  const what = "purge beside checks with changes, of one alone";
  return [{ group: GROUP, what, value: beside / alone, unit: "times", limit: { most: 3 }, note }];
};

/** A pass of the binary over 10,000 targets, the timetable of 100,000, and a purge. */
export const measureBlocklists = async (stage: Stage): Promise<Mark[]> => {
  await needTools(stage.supervisor, "dnsperf");
  return [...(await measurePass(stage)), ...(await measurePick(stage)), ...(await measurePurge(stage))];
};
