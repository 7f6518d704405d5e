import type { Clock } from "../base/clock.ts";
import { type DnsServer, type DnsType, formatServer } from "./dns.ts";
import { encodeQuery, RCODES } from "./dns-message.ts";
import { type DnsAnswer, readAnswer } from "./dns-answer.ts";
import type { DnsExchange, DnsTransport } from "./dns-transport.ts";

/** How long to wait, in milliseconds. `totalMs` bounds one whole resolution: all servers, retransmits and aliases. */
export interface DnsTimeouts {
  readonly firstAttemptMs: number;
  readonly retransmitMs: number;
  readonly tcpMs: number;
  readonly totalMs: number;
}

/** The outcome of one round through the servers. */
export interface DnsQueryResult {
  readonly reading:
    DnsAnswer | { readonly kind: "unconfirmed" | "timeout" | "network_error" | "local_failure" | "aborted" };
  readonly isAuthenticated: boolean;
  /** The server this came from, or the last one tried; null when the time was over before. */
  readonly server: string | null;
  readonly sizeBytes: number;
}

/** A name server list, and how it is queried. */
export interface DnsQuerierOptions {
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
  readonly #options: DnsQuerierOptions;
  readonly #states: readonly ServerState[];

  constructor(options: DnsQuerierOptions) {
    this.#options = options;
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

  #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  /** Servers that timed out lately come last. */
  #inOrder(): readonly ServerState[] {
    if (this.#states.length === 1) return this.#states;
    const nowMs = this.#nowMs();
    return this.#states.toSorted((a, b) => Number(a.suspectUntilMs > nowMs) - Number(b.suspectUntilMs > nowMs));
  }

  async #queryServer(state: ServerState, query: Query): Promise<DnsQueryResult> {
    const exchange = await exchangeWith(this.#options, state, query);
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
const isFinal = ({ reading }: DnsQueryResult): boolean =>
  "isVouched" in reading ? reading.isVouched : reading.kind === "cname_loop" || reading.kind === "aborted";
const isDoubtful = ({ reading }: DnsQueryResult): boolean => "isVouched" in reading && !reading.isVouched;
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
const refusesEdns = (exchange: DnsExchange): boolean =>
  exchange.kind === "message" && EDNS_REFUSALS.has(exchange.message.rcode);
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
