import { DAY_MS, type DayRange, dayOfTime } from "../../base/days.ts";
import type { Clock } from "../../base/clock.ts";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { type DnsResolver, isDefinite } from "../../net/dns.ts";
import { type Advice, advise } from "./advice.ts";
import type { AdvisedFinding, AdvisedName } from "./advice-facts.ts";
import type { DomainHealth } from "../health/health-sections.ts";
import { countReporters } from "./advice-reporters.ts";
import { policySinceMs } from "./advice-since.ts";
import { readLastCheck, readState, recordOf, type StatePolicy } from "../domains/domain-state.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import { DomainSources } from "../sources/domain-sources.ts";

export interface AdvisorDeps {
  /** Of trusted reports only: nobody else's word is to move a policy. */
  readonly reading: RollupStore;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  /** The history of the DNS. Without it the policy is taken to stand since the last change of anything about the domain. */
  readonly domains?: Pick<DomainStore, "listHistory">;
  /** The last health of a domain, by its number; null before its first check. */
  readonly readHealth?: (number: number) => DomainHealth | null;
}

/** The days that days, reporters, messages, shares and names are counted over. */
const WINDOW_DAYS = 30;
const RECENT_REPORTED_DAYS = 7;
/** A domain that is said to send no mail shows it by so many days without mail that passes. */
const SILENT_DAYS = 14;
/** Names looked up for one advice; whether others exist stays open. */
const NAMES_MAX = 20;
const LOOKUP_TIMEOUT_MS = 3_000;

/**
 * Gathers what advice about a domain is made of: its DNS as it was last seen, its mail of the last days, and of names below it
 * that send, whether they exist. Test domains ask no DNS. Never rejects for anything that the DNS does.
 */
export const createAdvisor = ({ reading, resolver, clock, domains, readHealth }: AdvisorDeps) => {
  const exists = async (name: string): Promise<boolean | null> => {
    const { outcome } = await resolver.resolve(name, "A", { timeoutMs: LOOKUP_TIMEOUT_MS });
    return isDefinite(outcome) ? outcome !== "nxdomain" : null;
  };

  const namesOf = ({ number, domain, mode }: DomainRow, window: DayRange): Promise<readonly AdvisedName[]> => {
    const sending = reading
      .names(number, window)
      .filter(({ name, aligned }) => name.endsWith(`.${domain}`) && aligned > 0);
    return Promise.all(
      sending.map(async ({ name, messages, aligned }, at) => ({
        ...{ name, messages, aligned },
        exists: mode === "live" && at < NAMES_MAX ? await exists(name) : null,
      })),
    );
  };

  /** The first whole day of the present policy. */
  const policyFromDay = (domain: DomainRow, policy: StatePolicy | null, { fromDay }: DayRange): number => {
    const sinceMs =
      domains === undefined
        ? domain.updatedAtMs
        : policySinceMs(domain, policy, { domains, fromMs: (fromDay - 1) * DAY_MS });
    return dayOfTime(sinceMs) + 1;
  };

  /**
   * Days before the enrolment whose reports found the present policy and no other one. Nobody looked at the DNS then. Reports do not
   * say that of `t`, which older reporters do not know.
   */
  const importedDays = (
    { number, domain, createdAtMs }: DomainRow,
    policy: StatePolicy | null,
    { fromDay }: DayRange,
  ): ReadonlySet<number> => {
    const enrolledDay = dayOfTime(createdAtMs);
    if (policy === null || policy.t === "y" || enrolledDay < fromDay) return new Set();
    const found = reading.reportedPolicies(number, { fromDay, toDay: enrolledDay }, domain);
    return new Set(found.flatMap(({ day, policies }) => (policies === policy.p ? [day] : [])));
  };

  return async (domain: DomainRow): Promise<Advice> => {
    const { number } = domain;
    const today = dayOfTime(clock.nowMs());
    const window = { fromDay: today - WINDOW_DAYS + 1, toDay: today };
    const days = reading.reportsPerDay(number, window).map(({ day }) => day);
    const seen = readState(domain.state)?.believed ?? {};
    const policy = seen.policy ?? null;
    const checks = readLastCheck(domain.lastCheck)?.checks ?? [];
    const fromDay = policyFromDay(domain, policy, window);
    const imported = importedDays(domain, policy, window);
    const lately = { fromDay: today - SILENT_DAYS + 1, toDay: today };
    const recent = { fromDay: days.at(-RECENT_REPORTED_DAYS) ?? window.fromDay, toDay: today };
    const sources = new DomainSources(reading, domain);
    return advise({
      domain: domain.domain,
      isOrganisational: organisationalDomain(domain.domain) === domain.domain,
      sendsMail: domain.sendsMail,
      status: domain.status,
      failing: checks.filter(({ ok }) => ok === false),
      record: recordOf(seen),
      policy,
      reportedDays: days.length,
      policyDays: days.filter((day) => day >= fromDay || imported.has(day)).length,
      reporters: countReporters(
        days.map((day) =>
          reading.reporters(number, { fromDay: day, toDay: day }).map((one) => one.authenticatedAs ?? one.reporter),
        ),
      ),
      sources: sources.sources(window),
      recentSources: sources.sources(recent),
      reportedLately: days.filter((day) => day >= lately.fromDay).length,
      passedLately: reading.totals(number, lately).aligned,
      unauthenticated: reading.untrustedMessages(number, window),
      names: await namesOf(domain, window),
      health: findingsOf(readHealth?.(number) ?? null),
    });
  };
};

const RANK = { error: 0, warning: 1, info: 2 } as const;
/** The policy is what the advice itself is about, and a key that no report proves may be anybody's invention. */
const NOT_ADVISED = /^(?:dmarc_|dkim_unproven)/;

const findingsOf = (health: DomainHealth | null): readonly AdvisedFinding[] =>
  (health?.sections ?? [])
    .flatMap<AdvisedFinding>(({ findings }) => findings)
    .filter(({ code, severity }) => severity !== "info" && !NOT_ADVISED.test(code))
    .toSorted((a, b) => RANK[a.severity] - RANK[b.severity]);

export type Advisor = ReturnType<typeof createAdvisor>;
