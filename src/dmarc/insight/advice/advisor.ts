import { sumBy, sumOf } from "../../../foundation/base/sums.ts";
import { type Clock, nextTurn } from "../../../foundation/base/clock.ts";
import { DAY_MS, type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { type DnsResolver, isDefinite } from "../../../foundation/net/dns.ts";
import {
  historyBodySchema,
  readLastCheck,
  readState,
  recordOf,
  type StatePolicy,
} from "../../records/domains/domain-state.ts";
import type { DomainRow, DomainStore, HistoryRow } from "../../records/domains/domain-store.ts";
import { type DomainReporters, decidingVouchers, unvouchedWords } from "../../records/domains/reporter-store.ts";
import type { DomainHealth } from "../health/health-schema.ts";
import { reporterBehind } from "../../reports/ingest/report-trust.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { bundleStrangers, type StrangerStore } from "../sources/strangers.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { advise, mostCautious } from "./advice.ts";
import type { AdvisedFinding, AdvisedName, AdviceFacts, Advice } from "./advice-model.ts";

interface AdvisorOptions {
  /** Of the reports on which decisions rely only: others must not change a policy. */
  readonly reading: RollupStore;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  /** The history of the DNS. Without it the policy counts as published at the last change of anything about the domain. */
  readonly domains?: Pick<DomainStore, "listHistory">;
  /** The last health of a domain, by its number; null before its first check. */
  readonly readHealth?: (number: number) => DomainHealth | null;
  /** Without it every unclassified source is a question of its own. */
  readonly strangers?: StrangerStore;
}

/** The days of reports that advice is based on. */
const WINDOW_DAYS = 30;
const RECENT_REPORTED_DAYS = 7;
/** A domain that sends no mail shows it by this many days without mail that passes. */
const SILENT_DAYS = 14;
/** Names looked up for one advice; whether others exist stays unknown. */
const NAMES_MAX = 20;
const LOOKUP_TIMEOUT_MS = 3_000;
/** What a reporter reports once may be anybody's report about one day. */
const REPORTER_DAYS_MIN = 2;
const HISTORY_ROWS_AT_ONCE = 50;
/** A domain whose DNS changes more often has had its policy since the oldest of these rows. */
const HISTORY_PAGES_MAX = 20;

/** The unknown reporters with the most messages: advice must hold without each of them. The others have little weight. */
const LEFT_OUT_MAX = 10;

/**
 * Advises about a domain by its DNS as it was last checked, its mail of the last days, and whether subdomains that send exist. Where
 * known reporters cover the domain (`ReporterStore`), only they count. Elsewhere the advice must hold without each single unknown
 * reporter, and its shares also by the known ones alone. Sends no DNS queries for test domains. Never rejects for anything that the
 * DNS does.
 */
export const createAdvisor = (options: AdvisorOptions): Advisor => {
  const { reading, clock } = options;
  return async (domain) => {
    const today = dayOfTime(clock.nowMs());
    const window = { fromDay: today - WINDOW_DAYS + 1, toDay: today };
    const reporters = reading.domainReporters(domain.number);
    const facts = await gatherFacts(options, domain, window);
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
  const silent = { fromDay: today - SILENT_DAYS + 1, toDay: today };
  const reported = reading.reportsPerDay(number, window);
  const days = reported.map(({ day }) => day);
  const recent = { fromDay: days.at(-RECENT_REPORTED_DAYS) ?? window.fromDay, toDay: today };
  const believed = readState(domain.state)?.believed ?? {};
  const checks = readLastCheck(domain.lastCheck)?.checks ?? [];
  // Of a domain with 20,000 sources each of these takes a long time: everything else has its turn in between.
  const read = new DomainSources(reading, domain);
  await read.identifyAll();
  await nextTurn();
  const all = read.sources(window);
  const strangers = options.strangers?.find(domain, all, window.fromDay) ?? new Set<string>();
  const sources = bundleStrangers(all, strangers);
  await nextTurn();
  const recentSources = read.sources(recent);
  await nextTurn();
  return {
    domain: domain.domain,
    isOrganisational: organisationalDomain(domain.domain) === domain.domain,
    sendsMail: domain.sendsMail,
    status: domain.status,
    failing: checks.filter(({ ok }) => ok === false),
    record: recordOf(believed),
    policy: believed.policy ?? null,
    reportedDays: days.length,
    policyDays: countPolicyDays(options, domain, { policy: believed.policy ?? null, days, window }),
    reporters: countReporters(days.map((day) => reportersOf(reading, number, day))),
    sources,
    recentSources,
    reportedLately: days.filter((day) => day >= silent.fromDay).length,
    passedLately: sumBy(reported, ({ day, aligned }) => (day < silent.fromDay ? 0 : aligned)),
    unauthenticated: reading.untrusted(number, window).messages,
    unknownReporters: whole?.unknownReporters ?? unknownReportersOf(reading, number, window),
    names: await sendingNames(options, domain, window, whole?.names ?? null),
    health: whole?.health ?? advisedFindings(readHealth?.(number) ?? null),
  };
};

const unknownReportersOf = (reading: RollupStore, number: number, window: DayRange) => {
  const reporters = reading.domainReporters(number);
  const { unknown, isCovered } = reporters;
  const sums = reading.only(unknown.map(({ voucher }) => voucher)).reporters(number, window);
  const names = [...new Set(sums.map(({ authenticatedAs, reporter }) => authenticatedAs ?? reporter))];
  return {
    names,
    messages: sumOf(sums, "messages"),
    isCovered,
    unvouchedWords: unvouchedWords(reporters),
  };
};

export type Advisor = (domain: DomainRow) => Promise<Advice>;

interface PolicyDays {
  readonly policy: StatePolicy | null;
  /** Days with reports. */
  readonly days: readonly number[];
  readonly window: DayRange;
}

/** The days with reports on which the present policy was published for the whole day. */
const countPolicyDays = (options: AdvisorOptions, domain: DomainRow, { policy, days, window }: PolicyDays) => {
  const { domains } = options;
  const fromMs = (window.fromDay - 1) * DAY_MS;
  const sinceMs = domains === undefined ? domain.updatedAtMs : policySinceMs(domains, domain, { policy, fromMs });
  const imported = importedDays(options, domain, { policy, days, window });
  return days.filter((day) => day > dayOfTime(sinceMs) || imported.has(day)).length;
};

/**
 * Since when the policy (`p` and `t`) was published without a change: the oldest of the newest rows of the history that have it, but not
 * before `fromMs`. Without a history that is the enrolment. Where the newest row has another policy, the present one was published
 * later, at an unknown time.
 */
const policySinceMs = (
  domains: Pick<DomainStore, "listHistory">,
  { number, createdAtMs }: DomainRow,
  { policy, fromMs }: { readonly policy: StatePolicy | null; readonly fromMs: number },
): number => {
  let sinceMs = createdAtMs;
  let before: string | null = null;
  let isNewest = true;
  for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
    const rows: HistoryRow[] = domains.listHistory(number, { before, limit: HISTORY_ROWS_AT_ONCE });
    for (const row of rows) {
      if (!hasPolicy(row, policy)) return isNewest ? row.atMs : sinceMs;
      isNewest = false;
      sinceMs = row.atMs;
      if (sinceMs <= fromMs) return sinceMs;
    }
    before = rows.at(-1)?.id ?? null;
    if (rows.length < HISTORY_ROWS_AT_ONCE) break;
  }
  return sinceMs;
};

const historyPolicySchema = historyBodySchema.pick({ policy: true });

const hasPolicy = ({ body }: HistoryRow, policy: StatePolicy | null) => {
  const read = historyPolicySchema.safeParse(JSON.parse(body));
  return read.success && read.data.policy?.p === policy?.p && read.data.policy?.t === policy?.t;
};

/**
 * Days before the enrolment whose reports found the present policy and no other one; the DNS was not checked then. Reports do not give
 * `t`, which older reporters do not know.
 */
const importedDays = (
  { reading }: AdvisorOptions,
  { number, domain, createdAtMs }: DomainRow,
  { policy, window: { fromDay } }: PolicyDays,
) => {
  const enrolledDay = dayOfTime(createdAtMs);
  if (policy === null || policy.t === "y" || enrolledDay < fromDay) return new Set();
  const found = reading.reportedPolicies(number, { fromDay, toDay: enrolledDay }, domain);
  return new Set(found.flatMap(({ day, policies }) => (policies === policy.p ? [day] : [])));
};

/** Who reported about a day: the domain that their mail is authenticated as, or the name in reports that the owner uploaded. */
const reportersOf = (reading: RollupStore, number: number, day: number) =>
  reading.reporters(number, { fromDay: day, toDay: day }).map((one) => one.authenticatedAs ?? one.reporter);

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

const RANK = { error: 0, warning: 1, info: 2 } as const;
/** The policy is what the advice itself is about, and a key that no report proves may be made up. */
const NOT_ADVISED = /^(?:dmarc_|dkim_unproven)/;

/** The findings of a health check that advice and fixes are about, errors first. */
export const advisedFindings = (health: DomainHealth | null): readonly AdvisedFinding[] =>
  (health?.sections ?? [])
    .flatMap<AdvisedFinding>(({ findings }) => findings)
    .filter(({ code, severity }) => severity !== "info" && !NOT_ADVISED.test(code))
    .toSorted((a, b) => RANK[a.severity] - RANK[b.severity]);
