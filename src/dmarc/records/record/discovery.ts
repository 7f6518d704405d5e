import type { DnsOutcome, DnsResolver, ResolveOptions } from "../../../foundation/net/dns.ts";
import { type ValidRecord, dmarcRecordsIn, type Published, readPublished, recordHost } from "./record.ts";
import type { AlignmentMode, DmarcPolicy } from "./record-values.ts";

/** One query of a discovery, in the order of the queries. */
export interface QueriedRecord {
  /** The `_dmarc` name. */
  readonly host: string;
  readonly outcome: DnsOutcome;
  /** The texts there that are DMARC records; more than one counts as none (RFC 9989 §4.10). */
  readonly records: readonly string[];
  /** For how many more seconds resolvers may keep this response. */
  readonly ttlS: number;
}

/** The policy that receivers apply to mail from one domain. */
export interface EffectivePolicy {
  /** For the domain itself: its own `p`, or the `sp` of the record it inherits from. */
  readonly p: DmarcPolicy;
  /** For existing names below the domain. */
  readonly sp: DmarcPolicy;
  /** For names below the domain that do not exist. */
  readonly np: DmarcPolicy;
  readonly adkim: AlignmentMode;
  readonly aspf: AlignmentMode;
  /** With `y` receivers are queried to relax all of it by one step. */
  readonly t: "y" | "n";
  /** The domain has the record itself. */
  readonly own: boolean;
  /** The domain whose record applies; null when it is the domain's own. */
  readonly inheritedFrom: string | null;
}

/** A record that applies to a domain without being its own. */
export interface InheritedRecord {
  readonly from: string;
  readonly record: ValidRecord;
  readonly policy: EffectivePolicy;
}

/** The result of a discovery. `published` is what the domain's own `_dmarc` name has, whatever applies. */
export type PolicyDiscovery = { readonly published: Published; readonly queried: readonly QueriedRecord[] } & (
  | { readonly kind: "own"; readonly record: ValidRecord; readonly policy: EffectivePolicy }
  | ({ readonly kind: "inherited" } & InheritedRecord)
  | { readonly kind: "none" }
  /** A query failed on which the policy depends. */
  | { readonly kind: "indefinite"; readonly host: string; readonly outcome: DnsOutcome }
);

/** RFC 9989 §4.10: the queries of a tree walk at most, the domain itself included. */
export const QUERIES_MAX = 8;

/**
 * Finds the DMARC policy of a domain (lower-case A-labels): its own record, else the one of its organizational domain, else the
 * one of the public suffix above it, by the tree walk of RFC 9989 §4.10. Several records at a name count as none. Never rejects; a
 * DNS failure before the end of the walk makes the outcome `indefinite`, never `none`.
 */
export const discoverPolicy = async (
  resolver: DnsResolver,
  domain: string,
  options: ResolveOptions = {},
): Promise<PolicyDiscovery> => {
  const queried: QueriedRecord[] = [];
  const query = async (name: string): Promise<DnsAnswer> => {
    const host = recordHost(name);
    const reply = await resolver.resolve(host, "TXT", options);
    const published = readPublished(reply);
    const records = published.kind === "failure" ? [] : dmarcRecordsIn(published.texts);
    queried.push({ host, outcome: reply.outcome, records: records.map(({ text }) => text), ttlS: reply.ttlS });
    return { name, host, published, record: records.length === 1 ? (records[0] ?? null) : null };
  };

  const start = await query(domain);
  const { published } = start;
  if (start.record !== null) {
    return { kind: "own", record: start.record, policy: ownPolicy(start.record), published, queried };
  }
  const failure = failureOf(start);
  if (failure !== null) return { kind: "indefinite", ...failure, published, queried };

  const found: Ancestor[] = [];
  for (const name of walkTargets(domain)) {
    const answer = await query(name);
    const failed = failureOf(answer);
    if (failed !== null) return { kind: "indefinite", ...failed, published, queried };
    if (answer.record === null) continue;
    found.push({ name, record: answer.record });
    if (answer.record.values.psd !== "u") break;
  }
  const applying = selectAncestor(domain, found);
  if (applying === null) return { kind: "none", published, queried };
  const { name: from, record } = applying;
  return { kind: "inherited", from, record, policy: inheritedPolicy(record, from), published, queried };
};

/**
 * The names that a walk queries after the domain itself, from the longest to the shortest (RFC 9989 §4.10 steps 4 to 8): the parents,
 * of which those with more than seven labels are left out.
 */
export const walkTargets = (domain: string): readonly string[] => {
  const labels = domain.split(".");
  const first = Math.max(1, labels.length - (QUERIES_MAX - 1));
  return labels.slice(first).map((_, index) => labels.slice(first + index).join("."));
};

interface DnsAnswer {
  readonly name: string;
  readonly host: string;
  readonly published: Published;
  readonly record: ValidRecord | null;
}

interface Ancestor {
  readonly name: string;
  readonly record: ValidRecord;
}

const failureOf = ({ host, published }: DnsAnswer): { host: string; outcome: DnsOutcome } | null => {
  // A name too long for a query cannot have a record: that is definite.
  if (published.kind !== "failure" || published.outcome === "invalid_name") return null;
  return { host, outcome: published.outcome };
};

/**
 * RFC 9989 §4.10.2 and §4.10.1: psd=n marks the organizational domain, psd=y the one above it, else it is the shortest name with a
 * record. The records are those above a domain that has none itself, from the longest name to the shortest.
 */
const selectAncestor = (domain: string, found: readonly Ancestor[]): Ancestor | null => {
  const shortest = found.at(-1);
  if (shortest === undefined) return null;
  if (shortest.record.values.psd !== "y") return shortest;
  const suffixLabels = shortest.name.split(".").length;
  const organisational = domain
    .split(".")
    .slice(-(suffixLabels + 1))
    .join(".");
  return found.find(({ name }) => name === organisational) ?? shortest;
};

const ownPolicy = ({ values: { p, sp, np, adkim, aspf, t } }: ValidRecord): EffectivePolicy => ({
  p,
  sp,
  np,
  adkim,
  aspf,
  t,
  own: true,
  inheritedFrom: null,
});

const inheritedPolicy = (record: ValidRecord, from: string): EffectivePolicy => ({
  ...ownPolicy(record),
  p: record.values.sp,
  own: false,
  inheritedFrom: from,
});
