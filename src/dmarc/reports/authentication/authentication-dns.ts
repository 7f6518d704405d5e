import type { DnsOutcome, DnsResolver, DnsResponse, DnsType } from "../../../foundation/net/dns.ts";

/** Longer texts are neither keys nor SPF records in use; reading them would only cost time. */
export const TXT_CHARACTERS_MAX = 8_192;

/** A query in the form of node's `dns.promises.resolve`. */
export type ResolveRecords = (name: string, type: string) => Promise<readonly unknown[]>;

/** A resolver in the form of node's, as mailauth uses it. */
export interface NodeResolver {
  readonly resolve: ResolveRecords;
  /** Whether a query had no definite response: conclusions drawn without it are not certain. */
  hasFailed(): boolean;
  /** Throws what the resolver rejected with, if it did: mailauth takes every rejection for a DNS failure. */
  throwBug(): void;
}

/** Sends at most `queriesMax` queries; the outcome of all further ones is `overloaded`. The signal ends every wait. */
export const limitQueries = (resolver: DnsResolver, queriesMax: number, signal: AbortSignal): DnsResolver => {
  let sent = 0;
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      sent += 1;
      if (sent <= queriesMax) return await resolver.resolve(name, type, { signal });
      const nothing = { records: [], cnames: [], ttlS: 0, authenticated: false, server: null } as const;
      return { name, type, outcome: "overloaded", ...nothing, fromCache: false, elapsedMs: 0 };
    },
  };
};

/**
 * Gives a resolver the form of node's: records as arrays, everything else as an error with node's code. ENOTFOUND and
 * ENODATA alone are definite; a name that cannot be queried does not exist.
 */
export const asNodeResolver = (resolver: DnsResolver): NodeResolver => {
  let hasFailed = false;
  const bugs: unknown[] = [];
  const failure = (code: string, name: string): Error => {
    hasFailed ||= code !== "ENOTFOUND" && code !== "ENODATA";
    return Object.assign(new Error(`${code} ${name.slice(0, 255)}`), { code });
  };
  return {
    hasFailed: () => hasFailed,
    throwBug() {
      if (bugs.length > 0) throw bugs[0];
    },
    async resolve(name, type) {
      if (!isSupported(type)) throw failure("ENOTIMP", name);
      const response = await resolver.resolve(name, type).catch((error: unknown) => {
        bugs.push(error);
        throw error;
      });
      if (response.outcome !== "answer") throw failure(codeOf(response.outcome), name);
      const records = response.records.map(nodeRecord);
      if (records.includes(null)) throw failure("EBADRESP", name);
      return records;
    },
  };
};

const TYPES = ["A", "AAAA", "MX", "PTR", "TXT"] as const;
type SupportedType = (typeof TYPES)[number];

const isSupported = (type: string): type is SupportedType => TYPES.some((supported) => supported === type);

const codeOf = (outcome: DnsOutcome): string => {
  if (outcome === "no_data") return "ENODATA";
  if (outcome === "nxdomain" || outcome === "invalid_name") return "ENOTFOUND";
  if (outcome === "timeout" || outcome === "aborted") return "ETIMEOUT";
  return outcome === "refused" ? "EREFUSED" : "ESERVFAIL";
};

/** Null for a record that is too long. */
const nodeRecord = (record: DnsResponse<SupportedType>["records"][number]): unknown => {
  if (typeof record !== "string") return { priority: record.preference, exchange: record.exchange };
  return record.length <= TXT_CHARACTERS_MAX ? record : null;
};
