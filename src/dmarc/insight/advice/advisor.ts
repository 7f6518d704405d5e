import { sumBy, sumOf } from "../../../foundation/base/sums.ts";
import { type Clock, nextTurn } from "../../../foundation/base/clock.ts";
import { type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { atOnce, inTurns } from "../../../foundation/base/in-steps.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { type DnsResolver, isDefinite } from "../../../foundation/net/dns.ts";
import { readLastCheck, readState, recordOf } from "../../records/domains/domain-state.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import {
  type DomainReporters,
  decidingVouchers,
  unvouchedWords,
  VOUCHED_BY_NOBODY,
} from "../../records/domains/reporter-store.ts";
import type { DomainHealth } from "../health/health-schema.ts";
import { reporterBehind } from "../../reports/ingest/report-trust.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import type { KeyedSource } from "../sources/source-keys.ts";
import { isNameAwaited } from "../sources/source-identity.ts";
import { bundleStrangers, type StrangerStore } from "../sources/strangers.ts";
import type { ReportDay } from "../sources/rollup-rows.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { advise, mostCautious } from "./advice.ts";
import {
  type AdvisedName,
  type AdvisedSource,
  type AdviceFacts,
  failingMessages,
  isCounted,
  weighMail,
} from "./advice-facts.ts";
import type { Advice } from "./advice-model.ts";
import { MESSAGES_MIN } from "./advice-requirements.ts";
import { advisedFindings } from "./advised-findings.ts";
import { findPolicyDays, LONG_DAYS, type PolicyStores } from "./policy-days.ts";
import { countUnchecked, type FailureHistory, readDetail, readHistories } from "./failure-history.ts";
import type { RecordStore } from "../queries/record-store.ts";
import type { Source } from "../sources/source-response.ts";

interface AdvisorOptions extends PolicyStores {
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  /** The last health of a domain, by its number; null before its first check. */
  readonly readHealth?: (number: number) => DomainHealth | null;
  /** Without it every unclassified source is a question of its own. */
  readonly strangers?: StrangerStore;
  readonly records: Pick<RecordStore, "records">;
  /** The titles of the alerts about a domain that still hold. */
  readonly openAlerts?: (domain: DomainRow) => readonly string[];
}

/** The days of reports that advice is based on. */
const WINDOW_DAYS = 30;
const RECENT_REPORTED_DAYS = 7;
/** A domain that sends no mail shows it by this many days without mail that passes; one that sends monthly needs more. */
const SILENT_DAYS = 14;
const RARE_MAIL_DAYS = 45;
/** Sources whose failures are looked into; the others have few. */
const HISTORIES_MAX = 20;
/** Names looked up for one advice; whether others exist stays unknown. */
const NAMES_MAX = 20;
const LOOKUP_TIMEOUT_MS = 3_000;
/** What a reporter reports once may be anybody's report about one day. */
const REPORTER_DAYS_MIN = 2;

/** The unknown reporters with the most messages: advice must hold without each of them. The others have little weight. */
const LEFT_OUT_MAX = 10;

/**
 * Advises about a domain by its DNS as it was last checked, its mail of the last days, and whether subdomains that send exist. Where
 * known reporters cover the domain (`ReporterStore`), only they count. Elsewhere the advice must hold without each single unknown
 * reporter, and its shares also by the known ones alone. Sends no DNS queries for test domains. Never rejects for anything that the
 * DNS does.
 */
export const createAdvisor = (options: AdvisorOptions): Advisor => {
  const { clock } = options;
  return async (domain) => {
    const today = dayOfTime(clock.nowMs());
    const window = { fromDay: today - WINDOW_DAYS + 1, toDay: today };
    const reporters = options.reading.domainReporters(domain.number);
    const reading = options.reading.only(decidingVouchers(reporters));
    const facts = await gatherFacts({ ...options, reading }, domain, window);
    const first = advise(facts);
    if (reporters.isCovered || reporters.unknown.length === 0 || first.next === null) return first;
    const others: Advice[] = [];
    for (const { vouchers, keepsAmounts } of parts(reading, domain.number, { reporters, window })) {
      await nextTurn();
      const part = await gatherFacts({ ...options, reading: reading.only(vouchers) }, domain, window, facts);
      const { sources, recentSources, names, passedLately } = part;
      if (!keepsAmounts) others.push(advise(part));
      else if (sources.some(({ messages }) => messages > 0))
        others.push(advise({ ...facts, sources, recentSources, names, passedLately }));
    }
    return mostCautious(first, others);
  };
};

interface Part {
  readonly vouchers: readonly number[];
  /** Whether only its shares have to hold. */
  readonly keepsAmounts: boolean;
}

/** The known reporters alone, and all reporters without each unknown one. */
const parts = (
  reading: RollupStore,
  number: number,
  { reporters, window }: { readonly reporters: DomainReporters; readonly window: DayRange },
): readonly Part[] => {
  const deciding = decidingVouchers(reporters);
  const weights = reading.reporters(number, window);
  const heaviest = [...new Set(weights.map(({ voucher }) => voucher))]
    .filter((voucher) => !reporters.known.includes(voucher))
    .slice(0, LEFT_OUT_MAX);
  return [
    { vouchers: reporters.known, keepsAmounts: true },
    ...heaviest.map((voucher) => ({ vouchers: deciding.filter((one) => one !== voucher), keepsAmounts: false })),
  ];
};

/** What advice is based on; of a part of the reports with what is the same for the whole. */
const gatherFacts = async (
  options: AdvisorOptions,
  domain: DomainRow,
  window: DayRange,
  whole: AdviceFacts | null = null,
): Promise<AdviceFacts> => {
  const { reading, readHealth } = options;
  const { number } = domain;
  const { toDay: today } = window;
  const reported = reading.reportsPerDay(number, { fromDay: today - LONG_DAYS + 1, toDay: today });
  const days = reported.flatMap(({ day }) => (day >= window.fromDay ? [day] : []));
  const recent = { fromDay: days.at(-RECENT_REPORTED_DAYS) ?? window.fromDay, toDay: today };
  // Of a domain with 20,000 sources each of these takes a long time: everything else has its turn in between.
  const read = await inTurns(DomainSources.open(reading, domain));
  const shown = await inTurns(read.sources(window));
  const strangers = options.strangers?.find(domain, shown, window.fromDay) ?? new Set<string>();
  const recentShown = await inTurns(read.sources(recent));
  await nextTurn();
  const histories =
    whole === null ? await inTurns(historiesOf(options, domain, { read, shown, window })) : historiesBefore(whole);
  const advised = advisedIn(await inTurns(read.keyed(window)), domain, { histories, nowMs: options.clock.nowMs() });
  const sources = bundleStrangers(shown.map(advised), strangers);
  const recentSources = recentShown.map(advised);
  const known = recordFacts(domain);
  const { policy } = known;
  const health = readHealth?.(number) ?? null;
  const { policyDay, policyDays } = findPolicyDays(options, domain, { policy, days, window });
  return {
    ...known,
    ...lateFacts(reported, today),
    ...(whole === null ? leftOut(reading, number, window) : leftOutBefore(whole)),
    reportedDays: days.length,
    policyDays,
    policyAgeDays: today - policyDay,
    reporters: countReporters(reportersByDay(reading, number, window)),
    sources,
    recentSources,
    recentUnchecked: () => uncheckedIn(options, domain, { read, sources: recentSources, range: recent }),
    little: await littleMailOf(options, domain, { read, sources, policyDay, today }),
    detailOf: (key) => {
      const history = histories.get(key);
      return history === undefined
        ? null
        : atOnce(
            readDetail(
              { records: options.records, rollups: reading, domain },
              { sources: read, key, range: window, history },
            ),
          );
    },
    ownDays: await ownDaysOf(reading, number, { read, sources, window }),
    today,
    silentDays: silentDaysOf(reported, today),
    declaredSilent: declaredSilent(health),
    openAlerts: whole?.openAlerts ?? options.openAlerts?.(domain) ?? [],
    names: await sendingNames(options, domain, window, whole?.names ?? null),
    health: whole?.health ?? advisedFindings(health, today),
  };
};

/** Only a sender that has recovered needs them. */
const ownDaysOf = async (
  reading: RollupStore,
  number: number,
  {
    read,
    sources,
    window,
  }: { readonly read: DomainSources; readonly sources: readonly AdvisedSource[]; readonly window: DayRange },
) =>
  sources.some(({ history }) => history?.hasRecovered === true)
    ? inTurns(reading.perDayOf(number, window, await inTurns(read.numbersOf(countedKeys(sources), window))))
    : [];

const countedKeys = (sources: readonly AdvisedSource[]) => sources.filter(isCounted).map(({ key }) => key);

const uncheckedIn = (
  { records }: Pick<AdvisorOptions, "records">,
  { domain }: DomainRow,
  {
    read,
    sources,
    range,
  }: { readonly read: DomainSources; readonly sources: readonly AdvisedSource[]; readonly range: DayRange },
) => {
  const sending = [...atOnce(read.keysOf(new Set(countedKeys(sources)), range)).keys()];
  return countUnchecked(records, domain, { sources: sending, range });
};

/** What the domain's DNS says. */
const recordFacts = ({ domain, sendsMail, status, state, lastCheck }: DomainRow) => {
  const believed = readState(state)?.believed ?? {};
  return {
    domain,
    isOrganisational: organisationalDomain(domain) === domain,
    sendsMail,
    status,
    failing: (readLastCheck(lastCheck)?.checks ?? []).filter(({ ok }) => ok === false),
    record: recordOf(believed),
    policy: believed.policy ?? null,
  };
};

/** What the reports of the last days say as a whole. */
const lateFacts = (reported: readonly ReportDay[], today: number) => {
  const late = reported.filter(({ day }) => day > today - SILENT_DAYS);
  return { reportedLately: late.length, passedLately: sumOf(late, "aligned") };
};

/** The reports that are left out, and those of unknown reporters. */
const leftOut = (reading: RollupStore, number: number, window: DayRange) => {
  const reporters = reading.domainReporters(number);
  const { unknown, isCovered } = reporters;
  const sums = reading.only([VOUCHED_BY_NOBODY, ...unknown.map(({ voucher }) => voucher)]).reporters(number, window);
  const unauthenticated = sums.filter(({ voucher }) => voucher === VOUCHED_BY_NOBODY);
  const others = sums.filter(({ voucher }) => voucher !== VOUCHED_BY_NOBODY);
  return {
    unauthenticated: sumOf(unauthenticated, "messages"),
    unauthenticatedNames: [...new Set(unauthenticated.map(({ reporter }) => reporter))].filter((name) => name !== ""),
    unknownReporters: {
      names: [...new Set(others.map(({ authenticatedAs, reporter }) => authenticatedAs ?? reporter))],
      messages: sumOf(others, "messages"),
      isCovered,
      unvouchedWords: unvouchedWords(reporters),
    },
  };
};

const leftOutBefore = ({ unauthenticated, unauthenticatedNames, unknownReporters }: AdviceFacts) => ({
  unauthenticated,
  unauthenticatedNames,
  unknownReporters,
});

/** The histories of the counted sources with the most failures. */
const historiesOf = (
  { reading }: Pick<AdvisorOptions, "reading">,
  domain: DomainRow,
  {
    read,
    shown,
    window,
  }: { readonly read: DomainSources; readonly shown: readonly Source[]; readonly window: DayRange },
) => {
  const keys = shown
    .filter((source) => isCounted(source) && failingMessages(source) > 0)
    .toSorted((a, b) => failingMessages(b) - failingMessages(a))
    .slice(0, HISTORIES_MAX)
    .map(({ key }) => key);
  return readHistories({ rollups: reading, domain }, { sources: read, keys, range: window });
};

/** A part of the reports has the histories of all: they choose the step, and change no policy. */
const historiesBefore = ({ sources }: AdviceFacts): ReadonlyMap<string, FailureHistory> =>
  new Map(sources.flatMap(({ key, history }) => (history === null ? [] : [[key, history] as const])));

/** A source with what decides about its step; `keyed` are the stored sources of the last 30 days. */
const advisedIn = (
  keyed: readonly KeyedSource[],
  domain: DomainRow,
  { histories, nowMs }: { readonly histories: ReadonlyMap<string, FailureHistory>; readonly nowMs: number },
) => {
  const awaited = Map.groupBy(
    keyed.filter((one) => isNameAwaited(one, domain, nowMs)),
    ({ shownKey }) => shownKey,
  );
  return (source: Source): AdvisedSource => ({
    ...source,
    isAwaited: sumBy(awaited.get(source.key) ?? [], ({ totals }) => totals.messages) * 2 > source.messages,
    history: histories.get(source.key) ?? null,
  });
};

/** Null where the last 30 days have enough mail for a rate. */
const littleMailOf = async (
  { reading }: Pick<AdvisorOptions, "reading">,
  { number }: DomainRow,
  {
    read,
    sources,
    policyDay,
    today,
  }: {
    readonly read: DomainSources;
    readonly sources: readonly AdvisedSource[];
    readonly policyDay: number;
    readonly today: number;
  },
): Promise<AdviceFacts["little"]> => {
  if (weighMail(sources).messages >= MESSAGES_MIN) return null;
  const range = { fromDay: Math.max(policyDay, today - LONG_DAYS + 1), toDay: today };
  const { messages, failing } = weighMail(
    (await inTurns(read.sources(range))).map((source) => ({ ...source, isAwaited: false, history: null })),
  );
  return {
    messages,
    failing: sumBy(failing, failingMessages),
    reporters: countReporters(reportersByDay(reading, number, range)),
  };
};

/** `days`: the days with reports of the last 90. */
const silentDaysOf = (days: readonly ReportDay[], today: number): number | null => {
  const [first] = days;
  const isReported = days.some(({ day }) => day > today - WINDOW_DAYS);
  const hasPassed = days.some(({ day, aligned }) => aligned > 0 && day > today - RARE_MAIL_DAYS);
  if (first === undefined || !isReported || hasPassed) return null;
  const passed = days.findLast(({ aligned }) => aligned > 0);
  const silent = today - (passed ?? first).day;
  return silent < SILENT_DAYS ? null : silent;
};

/** SPF that lets nobody send, and the null MX (RFC 7505). Many domains with other mechanisms end in `-all`, too. */
const declaredSilent = (health: DomainHealth | null): string | null => {
  for (const section of health?.sections ?? []) {
    if (section.code === "spf" && section.record !== null && /^v=spf1 +-all *$/i.test(section.record)) {
      return "Its SPF record says that nothing may send for it (v=spf1 -all).";
    }
    if (section.code === "mx" && section.null_mx) return "It receives no mail (null MX).";
  }
  return null;
};

export type Advisor = (domain: DomainRow) => Promise<Advice>;

/**
 * Who reported about each day of a range: the domain that their mail is authenticated as, or the name in reports that the owner
 * uploaded.
 */
const reportersByDay = (reading: RollupStore, number: number, range: DayRange): readonly (readonly string[])[] =>
  [...Map.groupBy(reading.reporterDays(number, range), ({ day }) => day).values()].map((of) =>
    of.map(({ authenticatedAs, reporter }) => authenticatedAs ?? reporter),
  );

/** How many reporters reported about at least two days. */
export const countReporters = (days: readonly (readonly string[])[]): number => {
  const daysByReporter = Map.groupBy(
    days.flatMap((names) => [...new Set(names.map(reporterBehind))]),
    (reporter) => reporter,
  );
  return [...daysByReporter.values()].filter(({ length }) => length >= REPORTER_DAYS_MIN).length;
};

/** The subdomains whose mail passes, and whether they exist in the DNS. */
const sendingNames = (
  { reading, resolver }: AdvisorOptions,
  { number, domain, mode }: DomainRow,
  window: DayRange,
  found: readonly AdvisedName[] | null,
): Promise<readonly AdvisedName[]> => {
  const sending = reading
    .names(number, window)
    .filter(({ name, aligned }) => name.endsWith(`.${domain}`) && aligned > 0);
  return Promise.all(
    sending.map(async ({ name, messages, aligned }, at) => ({
      name,
      messages,
      aligned,
      exists:
        found !== null
          ? (found.find((one) => one.name === name)?.exists ?? null)
          : mode === "live" && at < NAMES_MAX
            ? await nameExists(resolver, name)
            : null,
    })),
  );
};

const nameExists = async (resolver: DnsResolver, name: string) => {
  const { outcome } = await resolver.resolve(name, "A", { timeoutMs: LOOKUP_TIMEOUT_MS });
  return isDefinite(outcome) ? outcome !== "nxdomain" : null;
};
