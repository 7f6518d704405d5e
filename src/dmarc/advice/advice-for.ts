import { dayOfTime } from "../../base/days.ts";
import type { Clock } from "../../base/clock.ts";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { type DnsResolver, isDefinite } from "../../net/dns.ts";
import { type Advice, advise } from "./advice.ts";
import type { AdvisedName } from "./advice-facts.ts";
import { readLastCheck, readState, recordOf } from "../domains/domain-state.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { ReadingStore } from "../reading/reading-store.ts";
import type { SourceReader } from "../reading/sources.ts";

export interface AdvisorDeps {
  readonly reading: ReadingStore;
  readonly reader: Pick<SourceReader, "sources">;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
}

const SOURCE_DAYS = 14;
const NAME_DAYS = 30;
/** Names looked up for one advice; whether others exist stays open. */
const NAMES_MAX = 20;
const LOOKUP_TIMEOUT_MS = 3_000;

/**
 * Gathers what advice about a domain is made of: its DNS as it was last seen, its mail of the last days, and of names below it
 * that send, whether they exist. Test domains ask no DNS. Never rejects for anything that the DNS does.
 */
export const createAdvisor = ({ reading, reader, resolver, clock }: AdvisorDeps) => {
  const exists = async (name: string): Promise<boolean | null> => {
    const { outcome } = await resolver.resolve(name, "A", { timeoutMs: LOOKUP_TIMEOUT_MS });
    return isDefinite(outcome) ? outcome !== "nxdomain" : null;
  };

  const namesOf = ({ number, domain, mode }: DomainRow, today: number): Promise<readonly AdvisedName[]> => {
    const sending = reading
      .names(number, { fromDay: today - NAME_DAYS + 1, toDay: today })
      .filter(({ name, aligned }) => name.endsWith(`.${domain}`) && aligned > 0);
    return Promise.all(
      sending.map(async ({ name }, at) => ({
        name,
        exists: mode === "live" && at < NAMES_MAX ? await exists(name) : null,
      })),
    );
  };

  return async (domain: DomainRow): Promise<Advice> => {
    const today = dayOfTime(clock.nowMs());
    const recent = { fromDay: today - SOURCE_DAYS + 1, toDay: today };
    const seen = readState(domain.state)?.believed ?? {};
    const checks = readLastCheck(domain.lastCheck)?.checks ?? [];
    return advise({
      domain: domain.domain,
      isOrganisational: organisationalDomain(domain.domain) === domain.domain,
      sendsMail: domain.sendsMail,
      status: domain.status,
      failing: checks.filter(({ ok }) => ok === false),
      record: recordOf(seen),
      policy: seen.policy ?? null,
      reportedDays: reading.reportsPerDay(domain.number, { fromDay: today - NAME_DAYS + 1, toDay: today }).length,
      reporters: reading.countReporters(domain.number, recent),
      sources: reader.sources(domain, recent),
      names: await namesOf(domain, today),
    });
  };
};

export type Advisor = ReturnType<typeof createAdvisor>;
