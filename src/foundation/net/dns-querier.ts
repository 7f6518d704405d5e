import type { Clock } from "../base/clock.ts";
import { type DnsServer, type DnsType, formatServer, type DnsRecordData } from "./dns.ts";
import { encodeQuery, RCODES, type DnsMessage, type DnsResourceRecord } from "./dns-message.ts";
import type { DnsExchange, DnsTransport } from "./dns-transport.ts";

/** How long to wait, in milliseconds. `totalMs` bounds one whole resolution: all servers, retransmits and aliases. */
export interface DnsTimeouts {
  readonly firstAttemptMs: number;
  readonly retransmitMs: number;
  readonly tcpMs: number;
  readonly totalMs: number;
}

/** The outcome of one round through the servers. */
interface DnsQueryResult {
  readonly reading:
    DnsAnswer | { readonly kind: "unconfirmed" | "timeout" | "network_error" | "local_failure" | "aborted" };
  readonly isAuthenticated: boolean;
  /** The server this came from, or the last one tried; null when the time was over before. */
  readonly server: string | null;
  readonly sizeBytes: number;
}

/** A name server list, and how it is queried. */
interface DnsQuerierOptions {
  readonly servers: readonly DnsServer[];
  readonly transport: DnsTransport;
  readonly clock: Clock;
  /** A random number from 0 to 65535, hard to guess: for the id and the case of letters. */
  readonly random16: () => number;
  readonly timeouts: DnsTimeouts;
}

/** Queries to one server for one name: first, retransmit, without 0x20, without EDNS, and one to spare. */
const QUERIES_PER_SERVER_MAX = 5;
/** For how long a server's peculiarities are cached. */
const QUIRK_MS = 600_000;
/** For how long a server that did not respond is queried last. */
const SUSPECT_MS = 30_000;

/** What is known about one server; the times are of the monotonic clock. */
interface ServerState {
  readonly server: DnsServer;
  /** As text. */
  readonly name: string;
  changesCaseUntilMs: number;
  refusesEdnsUntilMs: number;
  suspectUntilMs: number;
}

/** Queries the servers: the next one after a timeout, SERVFAIL, REFUSED or an invalid response. */
export class DnsQuerier {
  readonly #states: readonly ServerState[];

  constructor(private readonly options: DnsQuerierOptions) {
    // A server that is named twice must not confirm itself.
    const servers = new Map(options.servers.map((server) => [formatServer(server), server]));
    const fresh = { changesCaseUntilMs: 0, refusesEdnsUntilMs: 0, suspectUntilMs: 0 };
    this.#states = [...servers].map(([name, server]) => ({ server, name, ...fresh }));
  }

  /** Resolves one name and type. `deadlineMs` is monotonic. Never rejects. */
  async query(name: string, type: DnsType, deadlineMs: number): Promise<DnsQueryResult> {
    let best: DnsQueryResult = NOT_TRIED;
    const states = this.#inOrder();
    for (const [at, state] of states.entries()) {
      if (best.server !== null && this.#nowMs() >= deadlineMs) return best;
      const result = await this.#queryServer(state, { name, type, deadlineMs });
      if (isFinal(result)) return result;
      if (isDoubtful(result)) {
        const nowMs = this.#nowMs();
        const others = states.slice(at + 1).filter(({ suspectUntilMs }) => suspectUntilMs <= nowMs);
        return this.#confirm(result, state, { name, type, deadlineMs, others });
      }
      // A response of any server is more informative than the timeouts of the others.
      if (UNREACHED.has(best.reading.kind)) best = result;
    }
    return best;
  }

  #nowMs() {
    return this.options.clock.monotonicMs();
  }

  /** Servers that timed out lately come last. */
  #inOrder(): readonly ServerState[] {
    if (this.#states.length === 1) return this.#states;
    const nowMs = this.#nowMs();
    return this.#states.toSorted((a, b) => Number(a.suspectUntilMs > nowMs) - Number(b.suspectUntilMs > nowMs));
  }

  async #queryServer(state: ServerState, query: Query): Promise<DnsQueryResult> {
    const exchange = await exchangeWith(this.options, state, query);
    const result = readExchange(exchange, state.name, query);
    // A socket that this machine could not open says nothing about the server.
    if (UNREACHED.has(result.reading.kind) && result.reading.kind !== "local_failure")
      state.suspectUntilMs = this.#nowMs() + SUSPECT_MS;
    return result;
  }

  /**
   * A negative response without an SOA (RFC 2308 §2) comes from forwarders that answer out of their cache, and from broken
   * servers. With the DO bit, forwarders such as systemd-resolved pass the query on, and the SOA back. Without one, another
   * server has to agree. NXDOMAIN is a statement of the server's own (RFC 2308 §2.1), so it may repeat that itself; an empty
   * NOERROR is what servers send that know nothing, and the same server sending it twice confirms nothing.
   */
  async #confirm(doubted: DnsQueryResult, by: ServerState, rest: ConfirmationQuery): Promise<DnsQueryResult> {
    const { kind } = doubted.reading;
    let isContradicted = false;
    for (const state of [...rest.others, by]) {
      if (this.#nowMs() >= rest.deadlineMs) break;
      const second = await this.#queryServer(state, { ...rest, dnssecOk: true });
      if (isFinal(second)) return second;
      if (!isDoubtful(second)) continue;
      isContradicted ||= second.reading.kind !== kind;
      if (!isContradicted && (state !== by || kind === "nxdomain")) return second;
    }
    return { ...doubted, reading: { kind: "unconfirmed" } };
  }
}

interface ConfirmationQuery extends Query {
  /** Servers that have not been queried yet and did not time out lately. */
  readonly others: readonly ServerState[];
}

const NOT_TRIED: DnsQueryResult = {
  reading: { kind: "timeout" },
  isAuthenticated: false,
  server: null,
  sizeBytes: 0,
};
const NO_RESPONSE = { isAuthenticated: false, server: null, sizeBytes: 0 } as const;
const isFinal = ({ reading }: DnsQueryResult) =>
  "isVouched" in reading ? reading.isVouched : reading.kind === "cname_loop" || reading.kind === "aborted";
const isDoubtful = ({ reading }: DnsQueryResult) => "isVouched" in reading && !reading.isVouched;
const UNREACHED: ReadonlySet<string> = new Set(["timeout", "network_error", "local_failure"]);

interface DnsQuestion {
  readonly name: string;
  readonly type: DnsType;
}

interface Query extends DnsQuestion {
  readonly deadlineMs: number;
  readonly dnssecOk?: boolean;
}

/** Queries one server: retransmits after a timeout, repeats truncated responses over TCP, and leaves out what the server refuses. */
const exchangeWith = async (
  { transport, clock, random16, timeouts }: DnsQuerierOptions,
  state: ServerState,
  { name, type, deadlineMs, dnssecOk = false }: Query,
): Promise<DnsExchange> => {
  const { server } = state;
  let exchange: DnsExchange = { kind: "timeout" };
  let timeoutCount = 0;
  for (let sent = 0; sent < QUERIES_PER_SERVER_MAX; sent++) {
    const nowMs = clock.monotonicMs();
    if (nowMs >= deadlineMs) break;
    // Some servers drop names of mixed case: the retransmit does without.
    const mixCase = timeoutCount === 0 && state.changesCaseUntilMs <= nowMs;
    const edns = state.refusesEdnsUntilMs <= nowMs;
    const query = encodeQuery(name, type, { random16, mixCase, edns, dnssecOk });
    const attemptMs = timeoutCount === 0 ? timeouts.firstAttemptMs : timeouts.retransmitMs;
    exchange = await transport.udp({ server, query, timeoutMs: Math.min(attemptMs, deadlineMs - nowMs) });

    if (exchange.kind === "truncated") {
      const remainingMs = Math.max(0, deadlineMs - clock.monotonicMs());
      exchange = await transport.tcp({ server, query, timeoutMs: Math.min(timeouts.tcpMs, remainingMs) });
    } else if (exchange.kind === "timeout" && ++timeoutCount < 2) {
      continue;
    }
    if (exchange.kind === "case_changed" && mixCase) state.changesCaseUntilMs = nowMs + QUIRK_MS;
    else if (edns && refusesEdns(exchange)) state.refusesEdnsUntilMs = nowMs + QUIRK_MS;
    else break;
  }
  return exchange;
};

/** RFC 6891 §7: a server without EDNS responds with FORMERR, NOTIMP or BADVERS. */
const refusesEdns = (exchange: DnsExchange) => exchange.kind === "message" && EDNS_REFUSALS.has(exchange.message.rcode);
const EDNS_REFUSALS: ReadonlySet<number> = new Set([RCODES.FORMERR, RCODES.NOTIMP, RCODES.BADVERS]);

const readExchange = (exchange: DnsExchange, server: string, { name, type }: DnsQuestion): DnsQueryResult => {
  switch (exchange.kind) {
    case "message": {
      const { isAuthenticated, sizeBytes } = exchange.message;
      return { reading: readAnswer(exchange.message, name, type), isAuthenticated, server, sizeBytes };
    }
    case "timeout":
    case "network_error":
    case "local_failure":
    case "aborted":
      return { ...NO_RESPONSE, server, reading: { kind: exchange.kind } };
    // The transport keeps the first two to itself; the others persisted through every retry.
    case "foreign":
    case "noise":
    case "case_changed":
    case "truncated":
    case "malformed":
      return { ...NO_RESPONSE, server, reading: { kind: "malformed" } };
    default:
      return exchange satisfies never;
  }
};

/** What one response says about one query. `follow` means: query the last of `cnames`. */
export type DnsAnswer =
  | {
      readonly kind: "response" | "no_data" | "nxdomain" | "follow";
      readonly records: ReadonlyArray<DnsRecordData[DnsType]>;
      readonly cnames: readonly string[];
      /** The least time to live on the way; 0 when the response names none (RFC 2308 §5). */
      readonly ttlS: number;
      /** False for a negative response without the SOA of a zone that holds the name. */
      readonly isVouched: boolean;
    }
  | { readonly kind: "servfail" | "refused" | "malformed" | "cname_loop" };

/** Longest chain of aliases that is followed, over all responses. */
export const CNAMES_MAX = 8;

/**
 * Reads a response as the answer to "`type` of `name`": follows the aliases inside it, and drops every record whose
 * owner is neither the name nor one of them.
 */
export const readAnswer = (message: DnsMessage, name: string, type: DnsType): DnsAnswer => {
  const { rcode } = message;
  if (rcode === RCODES.REFUSED) return { kind: "refused" };
  if (rcode !== RCODES.NOERROR && rcode !== RCODES.NXDOMAIN) return { kind: "servfail" };

  const chain = followAliases(message.answers, name, type);
  if (!chain) return { kind: "cname_loop" };
  const { cnames } = chain;
  const owner = cnames.at(-1) ?? name;
  const found = message.answers.filter((record) => record.type === type && record.owner === owner);

  if (found.length > 0) {
    // NXDOMAIN together with records is contradictory: neither is used.
    if (rcode === RCODES.NXDOMAIN) return { kind: "malformed" };
    const ttlS = Math.min(...chain.ttlsS, ...found.map((record) => record.ttlS));
    return { kind: "response", records: found.map((record) => record.data), cnames, ttlS, isVouched: true };
  }
  // Records, but none of the queried type: no statement about this name, least of all that it has none.
  if (message.hasStrayAnswers || message.answers.some((record) => !isOnTheWay(record, name, cnames)))
    return { kind: "malformed" };
  const soaTtlS = findNegativeTtlS(message, owner);
  const isVouched = soaTtlS !== undefined;
  const negative = { records: [], cnames, ttlS: Math.min(...chain.ttlsS, soaTtlS ?? 0), isVouched };
  if (rcode === RCODES.NXDOMAIN) return { kind: "nxdomain", ...negative };
  if (cnames.length > 0 && !isVouched)
    return { kind: "follow", records: [], cnames, ttlS: Math.min(...chain.ttlsS), isVouched: true };
  if (isReferral(message)) return { kind: "servfail" };
  return { kind: "no_data", ...negative };
};

/** Beside a negative response the answer section holds the aliases that led there, and nothing else. */
const isOnTheWay = (record: DnsResourceRecord, name: string, cnames: readonly string[]) =>
  isCname(record) && (record.owner === name || cnames.includes(record.owner));

/** The targets of the aliases from `name` on, with their times to live; undefined for a circle or too many. */
const followAliases = (answers: readonly DnsResourceRecord[], name: string, type: DnsType) => {
  const cnames: string[] = [];
  const ttlsS: number[] = [];
  if (type === "CNAME" || !answers.some(isCname)) return { cnames, ttlsS };
  const aliases = new Map<string, DnsResourceRecord<"CNAME">>();
  for (const record of answers) if (isCname(record) && !aliases.has(record.owner)) aliases.set(record.owner, record);

  for (let alias = aliases.get(name); alias; alias = aliases.get(alias.data)) {
    if (alias.data === name || cnames.includes(alias.data) || cnames.length >= CNAMES_MAX) return undefined;
    cnames.push(alias.data);
    ttlsS.push(alias.ttlS);
  }
  return { cnames, ttlsS };
};

const isCname = (record: DnsResourceRecord): record is DnsResourceRecord<"CNAME"> => record.type === "CNAME";
const isSoa = (record: DnsResourceRecord): record is DnsResourceRecord<"SOA"> => record.type === "SOA";

/** RFC 2308 §5: the lesser of the SOA's own time to live and its minimum; the zone must hold the name. */
const findNegativeTtlS = ({ authorities }: DnsMessage, name: string): number | undefined => {
  const soa = authorities
    .filter(isSoa)
    .find(({ owner }) => owner === "." || name === owner || name.endsWith(`.${owner}`));
  return soa && Math.min(soa.ttlS, soa.data.minimumS);
};

/** Name servers without an SOA point elsewhere: never "no data", whatever the AA bit says (RFC 2308 §2.2). */
const isReferral = ({ authorities }: DnsMessage) =>
  authorities.some((record) => record.type === "NS") && !authorities.some(isSoa);
