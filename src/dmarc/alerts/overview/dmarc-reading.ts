import { dayOfTime, isoDay, rangeBefore, type DayRange } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { inTurns, type Steps } from "../../../foundation/base/in-steps.ts";
import { ReadMemo } from "../../../foundation/db/read-memo.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DmarcAlertStore } from "../../records/domains/alert-store.ts";
import { type RecordChange, recordChanges } from "./record-changes.ts";
import { readAlertBody } from "../rules/alert-rule.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import type { QueryContext } from "../../insight/queries/domain-query.ts";
import { readState } from "../../records/domains/domain-state.ts";
import { standingOf, type ReporterStanding } from "../../records/domains/reporter-store.ts";
import { reporterView, type ShownReporter } from "../../insight/queries/reporter.ts";
import { summarizeDomain, type Summary } from "../../insight/queries/summary.ts";
import {
  type ClassifiedSources,
  DomainSources,
  type ExplainedSource,
  inReadingTurn,
} from "../../insight/sources/domain-sources.ts";
import type { DayTotals, ReportDay, Totals } from "../../insight/sources/rollup-rows.ts";
import type { Classification, RollupStore, UserClassification } from "../../insight/sources/rollup-store.ts";
import type { Source } from "../../insight/sources/source-response.ts";
import { advisedFindings } from "../../insight/advice/advised-findings.ts";
import type { DomainHealth } from "../../insight/health/health-schema.ts";
import { serviceById, type KnownService } from "../../records/services/services.ts";
import { historyDays, judgeHistory, readDetail } from "../../insight/advice/failure-history.ts";
import type { AdvisedFinding } from "../../insight/advice/advice-facts.ts";
import { fixOf, type KnownFailures, questionOf, type SourceFix } from "../../insight/advice/source-fix.ts";
import type { RecordStore } from "../../insight/queries/record-store.ts";

interface DmarcReadingContext extends Pick<QueryContext, "db" | "clock" | "rollups" | "records" | "findDomain"> {
  readonly histories: DomainPageStores["domains"];
  readonly readHealth: SourcePageStores["readHealth"];
  readonly alerts: Pick<DmarcAlertStore, "listAlerts">;
}

/** Pages whose facts are kept until the next write: those that few people look at. */
const PAGES_KEPT = 4;

/** What the pages of a domain and of its sources show. Throws `not_found` for a domain of another account. */
export class DmarcReading {
  readonly #domains: ReadMemo<Promise<DomainPageFacts>>;
  readonly #months: ReadMemo<Promise<MonthFacts>>;
  readonly #sources: ReadMemo<Promise<SourcePage | undefined>>;

  constructor(private readonly deps: DmarcReadingContext) {
    this.#domains = new ReadMemo(deps.db, PAGES_KEPT);
    this.#months = new ReadMemo(deps.db, PAGES_KEPT);
    this.#sources = new ReadMemo(deps.db, PAGES_KEPT);
  }

  /** The last days up to today (UTC). */
  range(days: number): DayRange {
    const toDay = dayOfTime(this.deps.clock.nowMs());
    return { fromDay: toDay - days + 1, toDay };
  }

  /** A domain over the last days. */
  async domain(caller: Caller, id: string, days: number): Promise<DomainPageFacts & { readonly row: DomainRow }> {
    const row = this.deps.findDomain(caller, id);
    const range = this.range(days);
    const read = () => this.#read(row, range, (facts) => facts);
    return { row, ...(await this.#domains.get(`${id} ${range.fromDay} ${range.toDay}`, read)) };
  }

  /** A domain over a month, with the month before. */
  month(row: DomainRow, range: DayRange): Promise<MonthFacts> {
    const { fromDay, toDay } = range;
    return this.#months.get(`${row.id} ${fromDay} ${toDay}`, () => this.#readMonth(row, range));
  }

  async #readMonth(row: DomainRow, range: DayRange) {
    const { rollups, alerts } = this.deps;
    const { fromDay, toDay } = range;
    const before = await inReadingTurn(row, () => inTurns(rollups.totals(row.number, rangeBefore("monthly", range))));
    return this.#read(row, range, (facts) => ({
      ...facts,
      before,
      alerts: alerts
        .listAlerts(row.number, { before: null, limit: MONTH_ALERTS_MAX })
        .flatMap(({ rule, atMs, body }) => {
          const day = dayOfTime(atMs);
          return day < fromDay || day > toDay ? [] : [{ rule, day: isoDay(day), summary: readAlertBody(body).summary }];
        }),
    }));
  }

  async #read<T>(row: DomainRow, range: DayRange, more: (facts: DomainPageFacts) => T): Promise<T> {
    const { db, rollups, histories } = this.deps;
    const read = await DomainSources.use(rollups, row, async (all) => {
      const { sources, failing } = await inTurns(all.classified(range));
      return { range, sources, failing: await inTurns(failingDays(rollups, row, { range, failing })) };
    });
    return db.snapshot(() => more(readDomainPage({ rollups, domains: histories }, row, read)));
  }

  /** The days of a range with mail, in order. */
  mailDays({ number }: DomainRow, range: DayRange): readonly number[] {
    return this.deps.rollups
      .reportsPerDay(number, range)
      .filter(({ messages }) => messages > 0)
      .map(({ day }) => day);
  }

  /** A source over the last days. Throws `not_found` for a key that no report names. */
  async source(
    caller: Caller,
    id: string,
    { key, days }: { readonly key: string; readonly days: number },
  ): Promise<SourcePage & { readonly row: DomainRow }> {
    const { rollups, records, readHealth, findDomain } = this.deps;
    const row = findDomain(caller, id);
    const range = this.range(days);
    const read = () =>
      DomainSources.use(rollups, row, async (sources) => {
        const explained = await inTurns(sources.explain(key, range));
        if (explained === undefined) return undefined;
        return inTurns(readSourcePage({ rollups, records, readHealth }, row, { key, range, sources, explained }));
      });
    const page = await this.#sources.get(`${id} ${range.fromDay} ${range.toDay} ${key}`, read);
    if (page === undefined) throw new AppError("not_found", { message: "No report names this source." });
    return { row, ...page };
  }
}

/** The messages of one UTC day by outcome, and by whose they are. */
export interface OutcomeDay {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** Whether any report covers it; without one nothing is known. */
  readonly isReported: boolean;
  readonly aligned: number;
  /** Failing, sent by sources that are the user's: authorized or misconfigured. Without forwarded messages. */
  readonly own: number;
  /** Failing, forwarded by forwarders or recognized as such by receivers. */
  readonly forwarded: number;
  /** Failing, from unknown senders and forgers. */
  readonly strangers: number;
}

/** A reporter in a range of days. */
export interface ReporterLine {
  readonly reporter: ShownReporter;
  readonly standing: ReporterStanding;
  readonly reports: number;
  readonly messages: number;
  readonly aligned: number;
  /** `YYYY-MM-DD`: the last day that it reported about. */
  readonly lastDay: string;
}

/** What the report about a month is made of. */
export interface MonthFacts extends DomainPageFacts {
  /** The mail of the month before. */
  readonly before: Totals;
  /** The alerts of the month, newest first. */
  readonly alerts: ReadonlyArray<{ readonly rule: string; readonly day: string; readonly summary: string }>;
}

/** Alerts read for a month. */
const MONTH_ALERTS_MAX = 500;

interface DomainPageFacts {
  readonly summary: Summary;
  /** Worst first. */
  readonly sources: readonly Source[];
  readonly days: readonly OutcomeDay[];
  /** Newest first. */
  readonly changes: readonly RecordChange[];
  readonly reporters: readonly ReporterLine[];
}

interface DomainPageStores {
  readonly rollups: RollupStore;
  readonly domains: Pick<DomainStore, "listHistory">;
}

const REPORTERS_MAX = 20;

/** Everything that the page of a domain shows of a range of days. Reads daily sums and no record. */
const readDomainPage = (
  { rollups, domains }: DomainPageStores,
  domain: DomainRow,
  {
    range,
    sources,
    failing,
  }: Pick<ClassifiedSources, "sources"> & { readonly range: DayRange; readonly failing: FailingDays },
): DomainPageFacts => {
  const reporters = rollups.reporters(domain.number, range).slice(0, REPORTERS_MAX);
  const written = rollups.writtenNames(domain.number, reporters);
  const standings = rollups.domainReporters(domain.number);
  return {
    summary: summarizeDomain(rollups, domain, range, sources),
    sources,
    days: outcomeDays(rollups, domain, { range, failing }),
    changes: recordChanges(domains, domain, range),
    reporters: reporters.map(({ reporter, author, authenticatedAs, voucher, lastDay, ...counts }) => {
      const org = reporter === "" ? null : (written.get(reporter) ?? reporter);
      const { reports, messages, aligned } = counts;
      return {
        reporter: reporterView({ org, author, authenticatedAs }),
        standing: standingOf(standings, voucher),
        reports,
        messages,
        aligned,
        lastDay: isoDay(lastDay),
      };
    }),
  };
};

const OWN_CLASSES: ReadonlySet<Classification> = new Set(["authorized", "misconfigured"]);

/** The messages by day of the sources of the user, and of forwarders, that have failing messages. */
type FailingDays = Readonly<Record<"own" | "forwarders", ReadonlyMap<number, DayTotals>>>;

/** `failing`: the classes of the stored sources that have failing messages. */
function* failingDays(
  rollups: RollupStore,
  { number }: Pick<DomainRow, "number">,
  { range, failing }: Pick<ClassifiedSources, "failing"> & { readonly range: DayRange },
): Steps<FailingDays> {
  function* perDayOf(isWanted: (one: Classification) => boolean) {
    const among = [...failing].flatMap(([source, one]) => (isWanted(one) ? [source] : []));
    return new Map((yield* rollups.perDayOf(number, range, among)).map((one) => [one.day, one]));
  }
  const own = yield* perDayOf((one) => OWN_CLASSES.has(one));
  return { own, forwarders: yield* perDayOf((one) => one === "forwarder") };
}

/** The messages of each day of a range. */
const outcomeDays = (
  rollups: RollupStore,
  { number }: Pick<DomainRow, "number">,
  { range, failing: { own, forwarders } }: { readonly range: DayRange; readonly failing: FailingDays },
): readonly OutcomeDay[] => {
  const reported = new Map(rollups.reportsPerDay(number, range).map((one) => [one.day, one]));
  return Array.from({ length: range.toDay - range.fromDay + 1 }, (_, index) => {
    const day = range.fromDay + index;
    const { messages = 0, aligned = 0 } = reported.get(day) ?? {};
    const ours = own.get(day);
    const [ownFailing, recognized] = [failingOf(ours), ours?.forwarded ?? 0];
    const passedOn = failingOf(forwarders.get(day));
    return {
      day: isoDay(day),
      isReported: reported.has(day),
      aligned,
      own: ownFailing - recognized,
      forwarded: recognized + passedOn,
      strangers: messages - aligned - ownFailing - passedOn,
    };
  });
};

const failingOf = (counts: DayTotals | undefined) => (counts === undefined ? 0 : counts.messages - counts.aligned);

/** The messages of a source on one UTC day. */
interface SourceOutcomeDay {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** Whether any report covers the day; without one nothing is known. */
  readonly isReported: boolean;
  readonly aligned: number;
  readonly forwarded: number;
  readonly failing: number;
}

export interface SourcePage extends ExplainedSource {
  readonly service: KnownService | null;
  /** The user's classification under this very key; null when it has none. */
  readonly word: UserClassification | null;
  readonly days: readonly SourceOutcomeDay[];
  /** What to do about its failing mail; null when nothing fails that the user could fix. */
  readonly fix: SourceFix | null;
  /** The most frequent results of its failing mail: see `failingResults`. Null where nothing fails, or no record shows them. */
  readonly results: string | null;
}

interface SourcePageStores {
  readonly rollups: RollupStore;
  readonly records: Pick<RecordStore, "records">;
  readonly readHealth: (domain: number) => DomainHealth | null;
}

/** What the page of a source shows of a range of days. */
function* readSourcePage(
  { rollups, records, readHealth }: SourcePageStores,
  domain: DomainRow,
  {
    key,
    range,
    sources,
    explained,
  }: {
    readonly key: string;
    readonly range: DayRange;
    readonly sources: DomainSources;
    readonly explained: ExplainedSource;
  },
): Steps<SourcePage> {
  const { source } = explained;
  const known = historyDays(range.toDay);
  const read = { ...range, fromDay: Math.min(known.fromDay, range.fromDay) };
  const perDay = yield* rollups.perDayOf(domain.number, read, explained.numbers);
  const history = judgeHistory(perDay.filter(({ day }) => day >= known.fromDay));
  const detail =
    history === null ? null : yield* readDetail({ records, rollups, domain }, { sources, key, range, history });
  const health = advisedFindings(readHealth(domain.number), range.toDay);
  return {
    ...explained,
    service: source.service_id === null ? null : (serviceById(source.service_id) ?? null),
    word: rollups.userClassifications(domain.number).get(key) ?? null,
    days: sourceDays(range, rollups.reportsPerDay(domain.number, range), perDay),
    fix: fixFor(source, domain, { health, known: { history, detail } }),
    results: detail?.results ?? null,
  };
}

/** `reported`: the days with reports. */
const sourceDays = (
  { fromDay, toDay }: DayRange,
  reported: readonly ReportDay[],
  perDay: readonly DayTotals[],
): readonly SourceOutcomeDay[] => {
  const days = new Set(reported.map(({ day }) => day));
  const counts = new Map(perDay.map((one) => [one.day, one]));
  return Array.from({ length: toDay - fromDay + 1 }, (_, index) => {
    const day = fromDay + index;
    const { messages = 0, aligned = 0, forwarded = 0 } = counts.get(day) ?? {};
    return {
      day: isoDay(day),
      isReported: days.has(day),
      aligned,
      forwarded,
      failing: messages - aligned - forwarded,
    };
  });
};

/** Forwarded and forged mail cannot be fixed at its sender. */
const fixFor = (
  source: Source,
  domain: DomainRow,
  { health, known }: { readonly health: readonly AdvisedFinding[]; readonly known: KnownFailures },
) => {
  const { classification, failing, forwarded, kind } = source;
  if (kind === "unauthenticated" || failing - forwarded <= 0) return null;
  const facts = {
    domain: domain.domain,
    policy: readState(domain.state)?.believed.policy ?? null,
    health,
  };
  if (classification === "unknown") return questionOf(source, facts);
  return classification === "authorized" || classification === "misconfigured" ? fixOf(source, facts, known) : null;
};
