import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import type { DkimAuthResult, SpfAuthResult } from "../../reports/report/report-row.ts";

/** A record of a report, as far as it shows why mail fails. */
export interface CauseRecord {
  readonly count: number;
  readonly dkimResults: readonly DkimAuthResult[];
  readonly spfResults: readonly SpfAuthResult[];
}

export const CAUSE_CODES = ["dkim_failing", "dkim_missing", "spf_failing", "spf_missing"] as const;

/** Why mail fails that passed before. */
export interface SpikeCause {
  readonly code: (typeof CAUSE_CODES)[number];
  /** The domain of the signature, or of the envelope. */
  readonly domain: string;
  /** Of the signature; null when reports do not give it, and for SPF. */
  readonly selector: string | null;
  /** The result that receivers gave, `fail` or `permerror`, with their explanation; null for what is missing. */
  readonly result: string | null;
}

/** A cause must explain this share of the failing mail. */
const EXPLAINED_MIN = 0.5;
/** Authentication that is usual passed for this share of the mail before. */
const USUAL_MIN = 0.2;

/**
 * Finds out why mail of a source fails: which aligned authentication usually passed, and now fails or is missing. `before` are records
 * from before the incident, `failing` are failing ones since. Empty when the records do not show it.
 */
export const findCauses = (
  domain: string,
  before: readonly CauseRecord[],
  failing: readonly CauseRecord[],
): readonly SpikeCause[] => {
  const usual = new Map<string, { readonly authentication: Authentication; count: number }>();
  for (const record of before) {
    for (const authentication of alignedAuthentications(record, domain)) {
      if (!authentication.isPass) continue;
      const found = usual.get(authentication.id);
      if (found === undefined) usual.set(authentication.id, { authentication, count: record.count });
      else found.count += record.count;
    }
  }
  const messages = before.reduce((sum, { count }) => sum + count, 0);
  return [...usual.values()]
    .filter(({ count }) => count >= messages * USUAL_MIN)
    .toSorted((a, b) => b.count - a.count)
    .flatMap(({ authentication }) => causeOf(authentication, failing, domain) ?? []);
};

interface Authentication {
  readonly id: string;
  readonly kind: "dkim" | "spf";
  readonly domain: string;
  readonly selector: string | null;
  readonly isPass: boolean;
  readonly result: string;
}

const alignedAuthentications = (
  { dkimResults, spfResults }: CauseRecord,
  headerFrom: string,
): readonly Authentication[] =>
  [
    ...dkimResults.map((each) => ({ kind: "dkim" as const, ...each })),
    ...spfResults.map((each) => ({ kind: "spf" as const, selector: null, ...each })),
  ].flatMap(({ kind, domain, selector, result, humanResult }) => {
    if (domain === null || !isSameOrganisation(domain, headerFrom)) return [];
    const explained =
      humanResult === null || humanResult.toLowerCase() === result ? result : `${result}: ${humanResult}`;
    const id = `${kind} ${domain} ${selector ?? ""}`;
    return [{ id, kind, domain, selector, isPass: result === "pass", result: explained }];
  });

/** What became of a usual authentication in failing mail. */
const causeOf = (usual: Authentication, failing: readonly CauseRecord[], headerFrom: string): SpikeCause | null => {
  const results = new Map<string, number>();
  let [all, failed, missing] = [0, 0, 0];
  for (const record of failing) {
    all += record.count;
    const same = alignedAuthentications(record, headerFrom).filter(({ id }) => id === usual.id);
    const [first] = same;
    if (first === undefined) missing += record.count;
    else if (same.every(({ isPass }) => !isPass)) {
      failed += record.count;
      results.set(first.result, (results.get(first.result) ?? 0) + record.count);
    }
  }
  const { kind, domain, selector } = usual;
  if (all > 0 && failed >= all * EXPLAINED_MIN) {
    const [result = null] = [...results].toSorted((a, b) => b[1] - a[1])[0] ?? [];
    return { code: `${kind}_failing`, domain, selector, result };
  }
  if (all > 0 && missing >= all * EXPLAINED_MIN) return { code: `${kind}_missing`, domain, selector, result: null };
  return null;
};

/** A cause in one sentence without a full stop; `since` is a day as people read it. */
export const causeText = ({ code, domain, selector, result }: SpikeCause, since: string): string => {
  const signatures = `DKIM signatures of ${domain}${selector === null ? "" : ` with selector ${selector}`}`;
  switch (code) {
    case "dkim_failing":
      return `${signatures} have failed since ${since} (${result ?? "fail"})`;
    case "dkim_missing":
      return `${signatures} have been missing since ${since}`;
    case "spf_failing":
      return `SPF for ${domain} has failed since ${since} (${result ?? "fail"})`;
    case "spf_missing":
      return `mail has not used the envelope domain ${domain} since ${since}`;
    default:
      return code satisfies never;
  }
};
