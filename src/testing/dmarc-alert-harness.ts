import { dayOfTime } from "../foundation/base/days.ts";
import { afterEach, expect } from "bun:test";
import type { Clock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import { ALERT_RULES, DMARC_EVENTS } from "../dmarc/alerts/rules/alert-rules.ts";
import { AlertJob, createDomainReview } from "../dmarc/alerts/rules/alert-job.ts";
import { AlertRuleStore } from "../dmarc/alerts/rules/alert-rule-store.ts";
import type { ReviewStores } from "../dmarc/alerts/rules/review-facts.ts";
import { DmarcAlertStore, createAlertRaiser } from "../dmarc/records/domains/alert-store.ts";
import { DomainStore, type DomainRow } from "../dmarc/records/domains/domain-store.ts";
import { RecordStore } from "../dmarc/insight/queries/record-store.ts";
import { RollupStore } from "../dmarc/insight/sources/rollup-store.ts";
import { createTestClock } from "./clock.ts";
import { madeDomain } from "./dmarc-domain.ts";
import type { WrittenEvent } from "./blocklist-fixture.ts";

const openInMemory = () => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  return opened.value;
};

/** A day of a source, or of a name, in the tables of daily sums. */
export interface MadeMail {
  readonly messages: number;
  readonly aligned?: number;
  readonly forwarded?: number;
  readonly authenticated?: number;
}

/** The stores of the alert rules, and what raises alerts. */
const createRules = (db: Db, hasMail: boolean, defaults: readonly string[]) => {
  const [domains, alerts, reading] = [new DomainStore(db), new DmarcAlertStore(db), new RollupStore(db)];
  const stores: ReviewStores & { readonly domains: typeof domains } = {
    ...{ alerts, domains, records: new RecordStore(db) },
    all: { rollups: reading, rules: new AlertRuleStore(db) },
    trusted: {
      rollups: new RollupStore(db, { trustedOnly: true }),
      rules: new AlertRuleStore(db, { trustedOnly: true }),
    },
  };
  const raise = createAlertRaiser({ rules: ALERT_RULES, store: alerts, hasMail, defaultRecipients: () => defaults });
  return { domains, alerts, reading, stores, raise };
};

/** Adds reports to the daily sums, as ingestion does. `arrive` marks the domain as unreviewed. */
const createReportWriter = ({ sqlite }: Db, clock: Clock, arrive: (domain: number) => void) => ({
  /** The mail of a source (a stored key) on a day. */
  report(
    domain: number,
    day: number,
    key: string,
    { messages, aligned = 0, forwarded = 0, authenticated = 0 }: MadeMail,
  ): void {
    sqlite.run(
      `INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms) VALUES (?1, ?2, ?3, ?3, ?4)
        ON CONFLICT (domain, key) DO UPDATE SET first_day = min(first_day, ?3), last_day = max(last_day, ?3)`,
      [domain, key, day, clock.nowMs()],
    );
    sqlite.run(
      `INSERT INTO dmarc_daily VALUES (?1, ?2, (SELECT number FROM dmarc_sources WHERE domain = ?1 AND key = ?3), ?4, ?5, ?5, 0, ?6, ?7, 0, 0, 1)
        ON CONFLICT (domain, day, source, is_trusted) DO UPDATE SET messages = messages + ?4, aligned = aligned + ?5, forwarded = forwarded + ?6, authenticated = authenticated + ?7`,
      [domain, day, key, messages, aligned, forwarded, authenticated],
    );
    sqlite.run(
      `INSERT INTO dmarc_daily_reporters VALUES (?1, ?2, 'google.com', '', 1, ?3, ?4, 1)
        ON CONFLICT (domain, day, reporter, author, is_trusted) DO UPDATE SET reports = reports + 1, messages = messages + ?3, aligned = aligned + ?4`,
      [domain, day, messages, aligned],
    );
    arrive(domain);
  },
  /** The mail with a name in From on a day. */
  name(domain: number, day: number, name: string, { messages, aligned = 0 }: MadeMail): void {
    sqlite.run("INSERT OR IGNORE INTO dmarc_names (domain, name, first_day, first_seen_at_ms) VALUES (?, ?, ?, ?)", [
      ...[domain, name, day, clock.nowMs()],
    ]);
    sqlite.run("INSERT INTO dmarc_daily_names VALUES (?, ?, ?, ?, ?, 1)", [domain, day, name, messages, aligned]);
    arrive(domain);
  },
  /** The reverse name of an address was looked up. */
  reverse(ip: string, name: string | null): void {
    sqlite.run(
      "INSERT OR REPLACE INTO dmarc_reverse_names (ip, name, is_confirmed, due_at_ms, asked_at_ms) VALUES (?, ?, ?, 0, ?)",
      [ip, name, name === null ? 0 : 1, clock.nowMs()],
    );
  },
});

const createAlertReader = ({ sqlite }: Db) => ({
  /** The events in the outbox, in order. */
  events: (): WrittenEvent[] =>
    sqlite
      .query<{ type: string; url: string; data: string }, []>("SELECT type, url, data FROM outbox ORDER BY id")
      .all()
      .map(({ type, url, data }) => ({ type, url, data: JSON.parse(data) })),
  /** Rule and subject of the raised alerts, in order. */
  raised: (): string[] =>
    sqlite
      .query<{ what: string }, []>("SELECT rule || ' ' || subject what FROM dmarc_alerts ORDER BY id")
      .all()
      .map(({ what }) => what),
  countMails: (): number => sqlite.query<{ n: number }, []>("SELECT count(*) n FROM dmarc_alert_mails").get()?.n ?? 0,
});

/** Domains with daily sums as ingestion writes them, and the alert rules over them, for the tests of one file. */
export const createDmarcAlertHarness = () => {
  const closers: Array<() => void> = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  return ({ hasMail = true }: { readonly hasMail?: boolean } = {}) => {
    const clock = createTestClock(Date.UTC(2026, 10, 20, 12));
    const db = openInMemory();
    closers.push(() => db.close());
    const logged: string[] = [];
    const log = createLog("warn", clock, (line) => logged.push(line));
    const defaults: string[] = [];
    const rules = createRules(db, hasMail, defaults);
    const { domains, stores, raise } = rules;
    const startJob = () => new AlertJob({ db, clock, log }, { ...stores, raise });
    const find = (number: number): DomainRow => {
      const domain = domains.findByNumber(number);
      if (domain === undefined) throw new Error(`no domain ${number}`);
      return domain;
    };
    const arrive = (domain: number): void =>
      db.transact((tx) => domains.update(tx, domain, { isUnreviewed: true, lastReportAtMs: clock.nowMs() }));
    return {
      ...rules,
      ...createReportWriter(db, clock, arrive),
      ...createAlertReader(db),
      ...{ clock, db, log, logged, find, arrive, startJob },
      /** Recipients of the account; empty at first. */
      defaults,
      job: startJob(),
      today: dayOfTime(clock.nowMs()),
      /** Reviews a domain now, with other stores where a test gives them. */
      review(number: number, more: Partial<ReviewStores> = {}): Promise<void> {
        return createDomainReview({ db, clock }, { ...stores, raise, ...more, domains })(number);
      },
      add(domain: string, more: Partial<DomainRow> = {}): DomainRow {
        const nowMs = clock.nowMs();
        const notified = { webhookUrl: "https://example.com/hook", recipients: ["ops@example.com"] };
        const times = { nextCheckAtMs: nowMs, createdAtMs: nowMs, updatedAtMs: nowMs };
        return db.transact((tx) => domains.insert(tx, madeDomain({ domain, ...notified, ...times, ...more })));
      },
    };
  };
};

export type DmarcAlertHarness = ReturnType<ReturnType<typeof createDmarcAlertHarness>>;

const MANY = 2_000;

/** Enrols a domain with two weeks of mail that passes; nothing was alerted. */
export const enrolSettled = async (harness: DmarcAlertHarness, more: Parameters<DmarcAlertHarness["add"]>[1] = {}) => {
  const { number } = harness.add("example.com", more);
  harness.reverse("192.0.2.1", "mail.example.com");
  for (let day = harness.today - 14; day <= harness.today; day++)
    harness.report(number, day, "192.0.2.1 example.com/mail example.com -", { messages: MANY, aligned: MANY });
  await harness.job.run();
  expect(harness.raised()).toEqual([]);
  return { harness, number };
};

/** Every event has the documented data. */
export const expectDocumented = ({ events }: Pick<DmarcAlertHarness, "events">): void => {
  for (const { type, data } of events()) {
    const doc = DMARC_EVENTS.find((candidate) => candidate.type === type);
    expect([type, doc?.data.safeParse(data).error?.issues ?? []]).toEqual([type, []]);
  }
};
