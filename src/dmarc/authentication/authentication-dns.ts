import type { DnsOutcome, DnsResponse, DnsResolver, DnsType } from "../../net/dns.ts";

/** Longer texts are neither keys nor SPF records that a mail host would use; reading them would only cost time. */
export const TXT_CHARACTERS_MAX = 8_192;

/** A question as node's `dns.promises.resolve` takes it. */
export type ResolveRecords = (name: string, type: string) => Promise<readonly unknown[]>;

/** A resolver in the form of node's, that remembers whether an answer was wanting. */
export interface NodeResolver {
  readonly resolve: ResolveRecords;
  /** Whether a question had no definite answer: what was concluded without it is not certain. */
  hasFailed(): boolean;
}

/** Passes at most `questionsMax` questions on; the outcome of all further ones is `overloaded`. The signal ends every wait. */
export const limitQueries = (resolver: DnsResolver, questionsMax: number, signal: AbortSignal): DnsResolver => {
  let asked = 0;
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      asked += 1;
      if (asked <= questionsMax) return await resolver.resolve(name, type, { signal });
      const nothing = { records: [], cnames: [], ttlS: 0, authenticated: false, server: null } as const;
      return { name, type, outcome: "overloaded", ...nothing, fromCache: false, elapsedMs: 0 };
    },
  };
};

/**
 * Gives a resolver the form of node's: records as arrays, everything else as an error with node's code. ENOTFOUND and
 * ENODATA alone say that there is nothing; a name that cannot be asked for does not exist.
 */
export const asNodeResolver = (resolver: DnsResolver): NodeResolver => {
  let failed = false;
  const fail = (code: string, name: string): Error => {
    failed ||= code !== "ENOTFOUND" && code !== "ENODATA";
    return Object.assign(new Error(`${code} ${name.slice(0, 255)}`), { code });
  };
  return {
    hasFailed: () => failed,
    async resolve(name, type) {
      if (!isAsked(type)) throw fail("ENOTIMP", name);
      const reply = await resolver.resolve(name, type);
      if (reply.outcome !== "answer") throw fail(codeOf(reply.outcome), name);
      const records = reply.records.map(nodeRecord);
      if (records.includes(null)) throw fail("EBADRESP", name);
      return records;
    },
  };
};

const ASKED_TYPES = ["A", "AAAA", "MX", "PTR", "TXT"] as const;
type AskedType = (typeof ASKED_TYPES)[number];

const isAsked = (type: string): type is AskedType => ASKED_TYPES.some((asked) => asked === type);

const codeOf = (outcome: DnsOutcome): string => {
  if (outcome === "no_data") return "ENODATA";
  if (outcome === "nxdomain" || outcome === "invalid_name") return "ENOTFOUND";
  if (outcome === "timeout" || outcome === "aborted") return "ETIMEOUT";
  return outcome === "refused" ? "EREFUSED" : "ESERVFAIL";
};

/** Null for a record that is too long to be read. */
const nodeRecord = (record: DnsResponse<AskedType>["records"][number]): unknown => {
  if (typeof record !== "string") return { priority: record.preference, exchange: record.exchange };
  return record.length <= TXT_CHARACTERS_MAX ? record : null;
};
