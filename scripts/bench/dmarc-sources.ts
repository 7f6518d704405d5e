import { join } from "node:path";
import { DAY_MS, dayOfTime } from "../../src/foundation/base/days.ts";
import { nextTurn, systemClock } from "../../src/foundation/base/clock.ts";
import { inTurns } from "../../src/foundation/base/in-steps.ts";
import type { Db } from "../../src/foundation/db/open.ts";
import { DmarcReading } from "../../src/dmarc/alerts/overview/dmarc-reading.ts";
import { ALERT_RULES } from "../../src/dmarc/alerts/rules/alert-rules.ts";
import { AlertRuleStore } from "../../src/dmarc/alerts/rules/alert-rule-store.ts";
import { createDomainReview } from "../../src/dmarc/alerts/rules/alert-job.ts";
import { DmarcAlertStore, createAlertRaiser } from "../../src/dmarc/records/domains/alert-store.ts";
import { DomainStore, type DomainRow } from "../../src/dmarc/records/domains/domain-store.ts";
import { DomainSources } from "../../src/dmarc/insight/sources/domain-sources.ts";
import { SourceClassifier } from "../../src/dmarc/insight/sources/source-classifier.ts";
import { RecordStore } from "../../src/dmarc/insight/queries/record-store.ts";
import { RollupStore } from "../../src/dmarc/insight/sources/rollup-store.ts";
import { readRecords } from "../../src/dmarc/insight/queries/records.ts";
import { summarizeDomain, timeseriesOf } from "../../src/dmarc/insight/queries/summary.ts";
import { LIVE_CALLER } from "../../src/testing/verification-runner.ts";
import { DAYS, fillDomain, SHAPES } from "./dmarc-sources-history.ts";
import { type Mark, median } from "./marks.ts";
import { newDataDir, openData, type Stage } from "./stage.ts";

const GROUP = "dmarc-sources";
const REPORTS = 100_000;
const CALLS = 5;
const KEYS_MAX = 500;
const DOMAINS = 1_000;
const SOURCES_PER_DOMAIN = 200;
const DOMAIN = "bench-lab.com";

/** The CPU that some work takes, in milliseconds: the median of a few calls, after one that warms up. */
const cpuMsOf = async (work: () => unknown): Promise<number> => {
  const times: number[] = [];
  for (let call = 0; call <= CALLS; call++) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    if (call > 0) times.push((user + system) / 1000);
  }
  return median(times);
};

/** The longest time for which some work holds the event loop, in milliseconds. */
const longestTurnMs = async (work: () => Promise<unknown>): Promise<number> => {
  let [longestMs, beforeMs] = [0, performance.now()];
  let isOver: boolean = false;
  const done = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await nextTurn();
    const nowMs = performance.now();
    [longestMs, beforeMs] = [Math.max(longestMs, nowMs - beforeMs), nowMs];
  }
  await done;
  return longestMs;
};

/** The same, the median of a few calls, after one that warms up. */
const heldMsOf = async (work: () => Promise<unknown>): Promise<number> => {
  await work();
  const times: number[] = [];
  for (let call = 0; call < CALLS; call++) times.push(await longestTurnMs(work));
  return median(times);
};

const composeReading = (db: Db) => {
  const [store, trusted] = [new RollupStore(db), new RollupStore(db, { trustedOnly: true })];
  const alerts = new DmarcAlertStore(db);
  const records = new RecordStore(db);
  const review = createDomainReview(
    { db, clock: systemClock },
    {
      ...{ alerts, records, domains: new DomainStore(db) },
      all: { rollups: store, rules: new AlertRuleStore(db) },
      trusted: { rollups: trusted, rules: new AlertRuleStore(db, { trustedOnly: true }) },
      raise: createAlertRaiser({ rules: ALERT_RULES, store: alerts, hasMail: false, defaultRecipients: () => [] }),
    },
  );
  const classifier = new SourceClassifier({ db, clock: systemClock }, store);
  /** A new one: what one of them has read is kept. */
  const openPages = (domain: DomainRow) =>
    new DmarcReading({
      ...{ db, clock: systemClock, rollups: store, records, alerts, histories: new DomainStore(db) },
      findDomain: () => domain,
      readHealth: () => null,
    });
  return { store, records, review, classifier, openPages };
};

/** Looks at a domain, by their names. */
type Looks = ReadonlyArray<readonly [what: string, look: () => Promise<unknown>]>;

const looksAt = async (db: Db, domain: DomainRow): Promise<Looks> => {
  const { store, records, review, classifier, openPages } = composeReading(db);
  const toDay = dayOfTime(systemClock.nowMs());
  const range = { fromDay: toDay - DAYS, toDay };
  const scope = { domain: domain.number };
  const sources = (options = {}) => DomainSources.read(store, domain, (all) => all.sources(range, options));
  const readPage = async () => {
    const names = await DomainSources.read(store, domain, (all) => all.names(range));
    return readRecords(records, { scope, range, filters: {}, names }, { after: null, limit: 100 });
  };
  const recent = { fromDay: toDay - 29, toDay };
  const shown = await DomainSources.read(store, domain, (all) => all.sources(recent, { byNetwork: true }));
  const [{ key: largest } = { key: "" }] = (await sources()).toSorted((a, b) => b.address_count - a.address_count);
  const keys = shown.slice(0, KEYS_MAX).map(({ key }) => key);
  const markSources = (isReviewed: 0 | 1): void =>
    void db.sqlite.run("UPDATE dmarc_sources SET is_reviewed = ?", [isReviewed]);
  const reviewed = (isReviewed: 0 | 1) => () => {
    markSources(isReviewed);
    return review(domain.number);
  };
  return [
    ["summary", async () => summarizeDomain(store, domain, range, await sources())],
    ["days", () => inTurns(timeseriesOf(store, domain, range))],
    ["page of the domain", () => openPages(domain).domain(LIVE_CALLER, domain.id, DAYS)],
    [
      "page of the largest source",
      () => openPages(domain).source(LIVE_CALLER, domain.id, { key: largest, days: DAYS }),
    ],
    ["sources", () => sources()],
    ["sources by network", () => sources({ byNetwork: true })],
    ["100 records", readPage],
    [`classification of ${keys.length}`, () => classifier.classify(() => domain, { keys, classification: "unknown" })],
    ["review of new sources", reviewed(0)],
    ["review without new sources", reviewed(1)],
  ];
};

const enrolled = (db: Db): DomainRow => {
  const row = db.sqlite.query<{ number: number }, []>("SELECT number FROM dmarc_domains ORDER BY number LIMIT 1").get();
  const domain = row === null ? undefined : new DomainStore(db).findByNumber(row.number);
  if (domain === undefined) throw new Error("the domain is not there");
  return domain;
};

/** A pass over many domains: its CPU, and the longest time that one of them holds the event loop. */
const measurePass = async (db: Db): Promise<{ readonly cpuMs: number; readonly longestMs: number }> => {
  const { review } = composeReading(db);
  const numbers = db.sqlite.query<{ number: number }, []>("SELECT number FROM dmarc_domains").all();
  let longestMs = 0;
  const before = process.cpuUsage();
  for (const { number } of numbers) longestMs = Math.max(longestMs, await longestTurnMs(() => review(number)));
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1000, longestMs };
};

/** Who sends in the name of a domain, read in every way, for domains of few and of very many addresses. */
export const measureDmarcSources = async (stage: Stage): Promise<Mark[]> => {
  const todayS = (dayOfTime(systemClock.nowMs()) * DAY_MS) / 1000;
  const marks: Mark[] = [];
  for (const [n, shape] of SHAPES.entries()) {
    const db = openData(await newDataDir(stage, join(GROUP, String(n))));
    try {
      await fillDomain(db, shape, { domain: DOMAIN, reports: REPORTS, todayS });
      for (const [what, look] of await looksAt(db, enrolled(db))) {
        const held = { group: GROUP, what: `${what}, ${shape.name}`, value: await heldMsOf(look), unit: "ms held" };
        const note = `${(await cpuMsOf(look)).toFixed(1)} ms of CPU`;
        const limit = shape.heldMsMax === undefined ? {} : { limit: { most: shape.heldMsMax } };
        marks.push({ ...held, ...limit, note });
      }
    } finally {
      db.close();
    }
  }
  const db = openData(await newDataDir(stage, join(GROUP, "domains")));
  try {
    const shape = { name: "many domains", addresses: SOURCES_PER_DOMAIN };
    for (let n = 0; n < DOMAINS; n++)
      await fillDomain(db, shape, { domain: `bench${n}.example`, reports: DAYS, todayS });
    for (const [what, isReviewed] of [
      ["all sources are new", 0],
      ["nothing is new", 1],
    ] as const) {
      db.sqlite.run("UPDATE dmarc_sources SET is_reviewed = ?", [isReviewed]);
      const { cpuMs, longestMs } = await measurePass(db);
      const note = `${DOMAINS} domains of ${SOURCES_PER_DOMAIN} sources; ${what}`;
      marks.push({
        group: GROUP,
        what: "review of all domains",
        value: cpuMs,
        unit: "ms of CPU",
        limit: { most: 10_000 },
        note,
      });
      marks.push({ group: GROUP, what: "longest review", value: longestMs, unit: "ms", limit: { most: 50 }, note });
    }
  } finally {
    db.close();
  }
  return marks;
};
