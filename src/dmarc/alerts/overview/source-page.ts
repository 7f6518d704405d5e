import { type DayRange, isoDay } from "../../../foundation/base/days.ts";
import { advisedFindings } from "../../insight/advice/advisor.ts";
import { fixOf, questionOf, type SourceFix } from "../../insight/advice/source-fix.ts";
import { readState } from "../../records/domains/domain-state.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { DomainHealth } from "../../insight/health/health-sections.ts";
import { serviceById, type KnownService } from "../../records/services/services.ts";
import { DomainSources, type ExplainedSource } from "../../insight/sources/domain-sources.ts";
import type { RollupStore, UserClassification } from "../../insight/sources/rollup-store.ts";
import type { Source } from "../../insight/sources/source-response.ts";

/** The messages of a source on one UTC day. */
export interface SourceOutcomeDay {
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
  /** What to do about its failing mail; null when nothing fails that the user could mend. */
  readonly fix: SourceFix | null;
}

export interface SourcePageStores {
  readonly rollups: RollupStore;
  readonly readHealth: (domain: number) => DomainHealth | null;
}

/** What the page of a source shows of a range of days; undefined for a key that no report names. */
export const readSourcePage = (
  { rollups, readHealth }: SourcePageStores,
  domain: DomainRow,
  { key, range }: { readonly key: string; readonly range: DayRange },
): SourcePage | undefined => {
  const explained = new DomainSources(rollups, domain).explain(key, range);
  if (explained === undefined) return undefined;
  const { source } = explained;
  return {
    ...explained,
    service: source.service_id === null ? null : (serviceById(source.service_id) ?? null),
    word: rollups.userClassifications(domain.number).get(key) ?? null,
    days: sourceDays(rollups, domain, { range, numbers: explained.numbers }),
    fix: fixFor(source, domain, readHealth(domain.number)),
  };
};

const sourceDays = (
  rollups: RollupStore,
  { number }: Pick<DomainRow, "number">,
  { range, numbers }: { readonly range: DayRange; readonly numbers: readonly number[] },
): readonly SourceOutcomeDay[] => {
  const reported = new Set(rollups.reportsPerDay(number, range).map(({ day }) => day));
  const counts = new Map(rollups.perDayOf(number, range, numbers).map((one) => [one.day, one]));
  return Array.from({ length: range.toDay - range.fromDay + 1 }, (_, index) => {
    const day = range.fromDay + index;
    const { messages = 0, aligned = 0, forwarded = 0 } = counts.get(day) ?? {};
    return {
      ...{ day: isoDay(day), isReported: reported.has(day), aligned, forwarded },
      failing: messages - aligned - forwarded,
    };
  });
};

/** Forwarded and forged mail cannot be fixed at its sender. */
const fixFor = (source: Source, domain: DomainRow, health: DomainHealth | null): SourceFix | null => {
  const { classification, failing, forwarded, kind } = source;
  if (kind === "unauthenticated" || failing - forwarded <= 0) return null;
  const facts = {
    domain: domain.domain,
    policy: readState(domain.state)?.believed.policy ?? null,
    health: advisedFindings(health),
  };
  if (classification === "unknown") return questionOf(source, facts);
  return classification === "authorized" || classification === "misconfigured" ? fixOf(source, facts) : null;
};
