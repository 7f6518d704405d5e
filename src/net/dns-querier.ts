import type { Clock } from "../base/clock.ts";
import { type DnsServer, type DnsType, formatServer } from "./dns.ts";
import { encodeQuery, RCODES } from "./dns-message.ts";
import { type DnsAnswer, readAnswer } from "./dns-answer.ts";
import type { DnsExchange, DnsTransport } from "./dns-transport.ts";

/** How long is waited, in milliseconds. `totalMs` bounds one whole resolution: all servers, retransmits and aliases. */
export interface DnsTimeouts {
  readonly firstAttemptMs: number;
  readonly retransmitMs: number;
  readonly tcpMs: number;
  readonly totalMs: number;
}

/** What one round through the servers brought. */
export interface DnsQueryResult {
  readonly reading:
    DnsAnswer | { readonly kind: "unconfirmed" | "timeout" | "network_error" | "local_failure" | "aborted" };
  readonly isAuthenticated: boolean;
  /** The server this came from, or the last one tried; null when the time was over before. */
  readonly server: string | null;
  readonly sizeBytes: number;
}

/**
 * Asks one question: the next server after silence, SERVFAIL, REFUSED or nonsense. Never rejects. A negative response
 * without an SOA is asked for again before it counts: see `confirm`.
 */
export type DnsQuerier = (name: string, type: DnsType, deadlineMs: number) => Promise<DnsQueryResult>;

export interface DnsQuerierOptions {
  readonly servers: readonly DnsServer[];
  readonly transport: DnsTransport;
  readonly clock: Clock;
  /** A random number from 0 to 65535, hard to guess: for the id and the case of letters. */
  readonly random16: () => number;
  readonly timeouts: DnsTimeouts;
}

/** Queries to one server for one question: first, retransmit, without 0x20, without EDNS, and one to spare. */
const QUERIES_PER_SERVER_MAX = 5;
/** For how long a server's peculiarities are remembered. */
const QUIRK_MS = 600_000;
/** For how long a server that did not answer is asked last. */
const SUSPECT_MS = 30_000;

/** What is known about one server; the times are of the monotonic clock. */
interface ServerState {
  readonly server: DnsServer;
  changesCaseUntilMs: number;
  refusesEdnsUntilMs: number;
  suspectUntilMs: number;
}

/** Binds the servers to a way of asking them. `deadlineMs` of an ask is a moment of `clock.monotonicMs`. */
export const createDnsQuerier = (dependencies: DnsQuerierOptions): DnsQuerier => {
  const { clock } = dependencies;
  // A server that is named twice must not confirm itself.
  const servers = new Map(dependencies.servers.map((server) => [formatServer(server), server]));
  const states = [...servers.values()].map((server): ServerState => ({
    server,
    changesCaseUntilMs: 0,
    refusesEdnsUntilMs: 0,
    suspectUntilMs: 0,
  }));

  const inOrder = (): readonly ServerState[] => {
    const nowMs = clock.monotonicMs();
    const isSuspect = (state: ServerState) => state.suspectUntilMs > nowMs;
    if (!states.some(isSuspect)) return states;
    return [...states.filter((state) => !isSuspect(state)), ...states.filter(isSuspect)];
  };

  const askOne = async (state: ServerState, question: Query): Promise<DnsQueryResult> => {
    const exchange = await askServer(dependencies, state, question);
    const answer = readExchange(exchange, state.server, question);
    // A socket that this machine could not open says nothing about the server.
    if (UNREACHED.has(answer.reading.kind) && answer.reading.kind !== "local_failure")
      state.suspectUntilMs = clock.monotonicMs() + SUSPECT_MS;
    return answer;
  };

  /**
   * A negative response without an SOA (RFC 2308 §2) comes from forwarders that answer out of their cache, and from broken
   * servers. With the DO bit forwarders such as systemd-resolved pass the question on, and the SOA back. Without one, another server has to
   * agree. NXDOMAIN is a statement of the server's own (RFC 2308 §2.1), so it may repeat that itself; an empty NOERROR
   * is what servers send that know nothing, and the same server saying it twice confirms nothing.
   */
  const confirm = async (doubted: DnsQueryResult, by: ServerState, rest: Rest): Promise<DnsQueryResult> => {
    const { kind } = doubted.reading;
    let isContradicted = false;
    for (const state of [...rest.others, by]) {
      if (clock.monotonicMs() >= rest.deadlineMs) break;
      const second = await askOne(state, { ...rest, dnssecOk: true });
      if (isFinal(second)) return second;
      if (!isDoubtful(second)) continue;
      isContradicted ||= second.reading.kind !== kind;
      if (!isContradicted && (state !== by || kind === "nxdomain")) return second;
    }
    return { ...doubted, reading: { kind: "unconfirmed" } };
  };

  return async function ask(name, type, deadlineMs) {
    let best: DnsQueryResult = { ...UNHEARD, reading: { kind: "timeout" } };
    const states = inOrder();
    for (const [at, state] of states.entries()) {
      if (best.server !== null && clock.monotonicMs() >= deadlineMs) return best;
      const answer = await askOne(state, { name, type, deadlineMs });
      if (isFinal(answer)) return answer;
      if (isDoubtful(answer)) {
        const nowMs = clock.monotonicMs();
        const others = states.slice(at + 1).filter(({ suspectUntilMs }) => suspectUntilMs <= nowMs);
        return confirm(answer, state, { name, type, deadlineMs, others });
      }
      // What some server said tells more than the silence of the others.
      if (UNREACHED.has(best.reading.kind)) best = answer;
    }
    return best;
  };
};

interface Rest extends Query {
  /** Servers that have not been asked yet and are not known to be silent. */
  readonly others: readonly ServerState[];
}

const UNHEARD = { isAuthenticated: false, server: null, sizeBytes: 0 } as const;
const isFinal = ({ reading }: DnsQueryResult): boolean =>
  "isVouched" in reading ? reading.isVouched : reading.kind === "cname_loop" || reading.kind === "aborted";
const isDoubtful = ({ reading }: DnsQueryResult): boolean => "isVouched" in reading && !reading.isVouched;
const UNREACHED: ReadonlySet<string> = new Set(["timeout", "network_error", "local_failure"]);

interface Question {
  readonly name: string;
  readonly type: DnsType;
}

interface Query extends Question {
  readonly deadlineMs: number;
  readonly dnssecOk?: boolean;
}

/** One server's part: retransmits after silence, goes over to TCP, and does without what the server does not take. */
const askServer = async (
  { transport, clock, random16, timeouts }: DnsQuerierOptions,
  state: ServerState,
  { name, type, deadlineMs, dnssecOk = false }: Query,
): Promise<DnsExchange> => {
  const { server } = state;
  let exchange: DnsExchange = { kind: "timeout" };
  let silences = 0;
  for (let sent = 0; sent < QUERIES_PER_SERVER_MAX; sent++) {
    const nowMs = clock.monotonicMs();
    if (nowMs >= deadlineMs) break;
    // Some servers drop names of mixed case: the retransmit does without.
    const mixCase = silences === 0 && state.changesCaseUntilMs <= nowMs;
    const edns = state.refusesEdnsUntilMs <= nowMs;
    const query = encodeQuery(name, type, { random16, mixCase, edns, dnssecOk });
    const attemptMs = silences === 0 ? timeouts.firstAttemptMs : timeouts.retransmitMs;
    exchange = await transport.udp({ server, query, timeoutMs: Math.min(attemptMs, deadlineMs - nowMs) });

    if (exchange.kind === "truncated") {
      const remainingMs = Math.max(0, deadlineMs - clock.monotonicMs());
      exchange = await transport.tcp({ server, query, timeoutMs: Math.min(timeouts.tcpMs, remainingMs) });
    } else if (exchange.kind === "timeout" && ++silences < 2) {
      continue;
    }
    if (exchange.kind === "case_changed" && mixCase) state.changesCaseUntilMs = nowMs + QUIRK_MS;
    else if (edns && refusesEdns(exchange)) state.refusesEdnsUntilMs = nowMs + QUIRK_MS;
    else break;
  }
  return exchange;
};

/** RFC 6891 §7: a server without EDNS answers FORMERR, NOTIMP or BADVERS. */
const refusesEdns = (exchange: DnsExchange): boolean =>
  exchange.kind === "message" && EDNS_REFUSALS.has(exchange.message.rcode);
const EDNS_REFUSALS: ReadonlySet<number> = new Set([RCODES.FORMERR, RCODES.NOTIMP, RCODES.BADVERS]);

const readExchange = (exchange: DnsExchange, from: DnsServer, { name, type }: Question): DnsQueryResult => {
  const server = formatServer(from);
  switch (exchange.kind) {
    case "message": {
      const { isAuthenticated, sizeBytes } = exchange.message;
      return { reading: readAnswer(exchange.message, name, type), isAuthenticated, server, sizeBytes };
    }
    case "timeout":
    case "network_error":
    case "local_failure":
    case "aborted":
      return { ...UNHEARD, server, reading: { kind: exchange.kind } };
    // The transport keeps the first two to itself; the others outlived every repetition.
    case "foreign":
    case "noise":
    case "case_changed":
    case "truncated":
    case "malformed":
      return { ...UNHEARD, server, reading: { kind: "malformed" } };
    default:
      return exchange satisfies never;
  }
};
