import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import type {
  DnsOutcome,
  DnsRecordData,
  DnsResponse,
  DnsResolver,
  DnsType,
  MxRecord,
  ResolveOptions,
} from "../foundation/net/dns.ts";

/** An outcome that a zone gives instead of records. */
export type ZoneFailure = Exclude<DnsOutcome, "response">;

/** The records of one name. Mail exchanges are written as `[preference, exchange]`, aliases as their target. */
export type ZoneRecords = {
  readonly [T in Exclude<DnsType, "MX" | "CNAME">]?: ReadonlyArray<DnsRecordData[T]> | ZoneFailure;
} & {
  readonly MX?: ReadonlyArray<readonly [preference: number, exchange: string]> | ZoneFailure;
  readonly CNAME?: string | ZoneFailure;
};

/** Lower-case names without a final dot, each with its records, or with the outcome of every query about it. */
export type Zone = Readonly<Record<string, ZoneRecords | ZoneFailure>>;

/** A resolver for one literal zone that records its queries. */
export interface ZoneResolver extends DnsResolver {
  /** Every query in order, as `MX example.com`. */
  readonly queries: readonly string[];
  /** The account that each query was made for. */
  readonly queriedFor: ReadonlyArray<OnBehalfOf | undefined>;
  /** How often this was queried. */
  countQueries(name: string, type: DnsType): number;
}

const ZONE_TTL_S = 300;
const ZONE_SERVER = "127.0.0.1:53";
const ALIASES_MAX = 8;
const FAILURES: ReadonlySet<string> = new Set<ZoneFailure>([
  "no_data",
  "nxdomain",
  "unconfirmed",
  "servfail",
  "refused",
  "timeout",
  "malformed",
  "network_error",
  "cname_loop",
  "invalid_name",
  "local_failure",
  "overloaded",
  "aborted",
]);

/**
 * Builds a resolver over a literal zone: `nxdomain` for a name that is not in it, `no_data` for a type that its name
 * does not have, aliases followed. The zone is read at every query, so a test may change it in between.
 */
export const createZoneResolver = (zone: Zone): ZoneResolver => {
  const queries: string[] = [];
  const queriedFor: Array<OnBehalfOf | undefined> = [];

  const lookUp = (name: string, type: DnsType, cnames: readonly string[]): Found => {
    const entry = Object.hasOwn(zone, name) ? zone[name] : undefined;
    if (entry === undefined) return { outcome: "nxdomain", records: [], cnames };
    if (typeof entry === "string") return { outcome: entry, records: [], cnames };
    const alias = entry.CNAME;
    if (alias !== undefined && !isFailure(alias) && type !== "CNAME") {
      if (cnames.length === ALIASES_MAX) return { outcome: "cname_loop", records: [], cnames };
      return lookUp(alias, type, [...cnames, alias]);
    }
    const found = readRecords(entry, type);
    return typeof found === "string"
      ? { outcome: found, records: [], cnames }
      : { outcome: found.length > 0 ? "response" : "no_data", records: found, cnames };
  };

  return {
    queries,
    queriedFor,
    countQueries: (name, type) => queries.filter((query) => query === `${type} ${name}`).length,
    async resolve<T extends DnsType>(
      name: string,
      type: T,
      { signal, onBehalfOf }: ResolveOptions = {},
    ): Promise<DnsResponse<T>> {
      const lower = name.toLowerCase().replace(/(?<=.)\.$/, "");
      queries.push(`${type} ${lower}`);
      queriedFor.push(onBehalfOf);
      const found: Found = signal?.aborted ? { outcome: "aborted", records: [], cnames: [] } : lookUp(lower, type, []);
      const isSaid = found.outcome === "response" || found.outcome === "no_data" || found.outcome === "nxdomain";
      const ttlS = isSaid ? ZONE_TTL_S : 0;
      const rest = { ttlS, authenticated: false, server: ZONE_SERVER, fromCache: false, elapsedMs: 0 };
      return { name: lower, type, ...found, ...rest } as DnsResponse<T>;
    },
  };
};

type Found = Pick<DnsResponse, "outcome" | "records" | "cnames">;

const isFailure = (text: string): text is ZoneFailure => FAILURES.has(text);

const readRecords = (entry: ZoneRecords, type: DnsType): ReadonlyArray<DnsRecordData[DnsType]> | ZoneFailure => {
  const records = entry[type];
  if (records === undefined) return [];
  if (typeof records === "string") return isFailure(records) ? records : [records];
  if (type !== "MX") return records as ReadonlyArray<DnsRecordData[DnsType]>;
  return (entry.MX as ReadonlyArray<readonly [number, string]>).map(([preference, exchange]): MxRecord => ({
    preference,
    exchange,
  }));
};
