import type { DkimAuthResult, SpfAuthResult } from "../report/report-row.ts";
import { isRelaxedAligned } from "../ingest/source-key.ts";

/** A record as far as it tells why mail fails. */
export interface CauseRecord {
  readonly day: number;
  readonly count: number;
  readonly isAligned: boolean;
  readonly dkimResults: readonly DkimAuthResult[];
  readonly spfResults: readonly SpfAuthResult[];
}

export const CAUSE_CODES = ["dkim_failing", "dkim_missing", "spf_failing", "spf_missing"] as const;

/** Why mail fails that passed before. */
export interface FailureCause {
  readonly code: (typeof CAUSE_CODES)[number];
  /** The domain of the signature, or of the envelope. */
  readonly domain: string;
  /** Of the signature; null when reports do not say, and for SPF. */
  readonly selector: string | null;
  /** What receivers said, `fail` or `permerror`, with the words that they added; null for what is missing. */
  readonly result: string | null;
}

/** A cause must explain so much of the failing mail. */
const EXPLAINED_MIN = 0.5;
/** What passed before must have done so for so much of the mail. */
const USUAL_MIN = 0.2;

/**
 * Finds out why mail of a source fails: what usually passed and was aligned with the domain, and now fails or is missing. `before` are
 * records from before the incident, `failing` are failing ones since. Empty when records do not tell.
 */
export const findCauses = (
  domain: string,
  before: readonly CauseRecord[],
  failing: readonly CauseRecord[],
): readonly FailureCause[] => {
  const isAligned = (name: string | null): name is string => name !== null && isRelaxedAligned(name, domain);
  const usual = new Map<string, { readonly proof: Proof; count: number }>();
  let usualMessages = 0;
  for (const record of before) {
    usualMessages += record.count;
    for (const proof of proofsOf(record, isAligned)) {
      if (!proof.isPass) continue;
      const found = usual.get(nameOf(proof));
      if (found === undefined) usual.set(nameOf(proof), { proof, count: record.count });
      else found.count += record.count;
    }
  }
  return [...usual.values()]
    .filter(({ count }) => count >= usualMessages * USUAL_MIN)
    .toSorted((a, b) => b.count - a.count)
    .flatMap(({ proof }) => causeOf(proof, failing, isAligned) ?? []);
};

interface Proof {
  readonly kind: "dkim" | "spf";
  readonly domain: string;
  readonly selector: string | null;
  readonly isPass: boolean;
  readonly result: string;
}

const proofsOf = (
  { dkimResults, spfResults }: CauseRecord,
  isAligned: (name: string | null) => name is string,
): readonly Proof[] => [
  ...dkimResults.flatMap(({ domain, selector, result, humanResult }) =>
    isAligned(domain)
      ? [{ kind: "dkim" as const, domain, selector, isPass: result === "pass", result: said(result, humanResult) }]
      : [],
  ),
  ...spfResults.flatMap(({ domain, result, humanResult }) =>
    isAligned(domain)
      ? [{ kind: "spf" as const, domain, selector: null, isPass: result === "pass", result: said(result, humanResult) }]
      : [],
  ),
];

const said = (result: string, words: string | null): string =>
  words === null || words.toLowerCase() === result ? result : `${result}: ${words}`;

const nameOf = ({ kind, domain, selector }: Proof): string => `${kind} ${domain} ${selector ?? ""}`;

/** How a proof that was usual fares in failing mail. */
const causeOf = (
  proof: Proof,
  failing: readonly CauseRecord[],
  isAligned: (name: string | null) => name is string,
): FailureCause | null => {
  const results = new Map<string, number>();
  let [all, broken, missing] = [0, 0, 0];
  for (const record of failing) {
    all += record.count;
    const same = proofsOf(record, isAligned).filter((other) => nameOf(other) === nameOf(proof));
    if (same.length === 0) missing += record.count;
    else if (same.every(({ isPass }) => !isPass)) {
      broken += record.count;
      const [first] = same;
      if (first !== undefined) results.set(first.result, (results.get(first.result) ?? 0) + record.count);
    }
  }
  const { kind, domain, selector } = proof;
  if (all > 0 && broken >= all * EXPLAINED_MIN) {
    const [result = null] = [...results].toSorted((a, b) => b[1] - a[1])[0] ?? [];
    return { code: `${kind}_failing`, domain, selector, result };
  }
  if (all > 0 && missing >= all * EXPLAINED_MIN) return { code: `${kind}_missing`, domain, selector, result: null };
  return null;
};

/** A cause in one sentence without a full stop; `since` is a day as people read it. */
export const causeText = ({ code, domain, selector, result }: FailureCause, since: string): string => {
  const signature =
    selector === null ? `DKIM signatures of ${domain}` : `DKIM signatures of ${domain} with selector ${selector}`;
  switch (code) {
    case "dkim_failing":
      return `${signature} have failed since ${since} (${result ?? "fail"})`;
    case "dkim_missing":
      return `${signature} have been missing since ${since}`;
    case "spf_failing":
      return `SPF for ${domain} has failed since ${since} (${result ?? "fail"})`;
    case "spf_missing":
      return `mail has not used the envelope domain ${domain} since ${since}`;
    default:
      return code satisfies never;
  }
};
