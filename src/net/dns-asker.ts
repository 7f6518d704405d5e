import type { Clock } from "../base/clock.ts";
import { type DnsServer, type DnsType, formatServer } from "./dns.ts";
import { encodeQuery, RCODES } from "./dns-message.ts";
import { type DnsReading, readAnswer } from "./dns-reading.ts";
import type { DnsExchange, DnsTransport } from "./dns-transport.ts";

/** How long is waited, in milliseconds. `totalMs` bounds one whole resolution: all servers, retransmits and aliases. */
export interface DnsTimeouts {
  readonly firstAttemptMs: number;
  readonly retransmitMs: number;
  readonly tcpMs: number;
  readonly totalMs: number;
}

/** What one round through the servers brought. */
export interface DnsAnswer {
  readonly reading: DnsReading | { readonly kind: "timeout" | "network_error" | "aborted" };
  readonly isAuthenticated: boolean;
  /** The server this came from, or the last one tried; null when the time was over before. */
  readonly server: string | null;
  readonly sizeBytes: number;
}

/** Asks one question: the next server after silence, SERVFAIL, REFUSED or nonsense. Never rejects. */
export type DnsAsk = (name: string, type: DnsType, deadlineMs: number) => Promise<DnsAnswer>;

export interface DnsAskerDependencies {
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
export const createDnsAsker = (dependencies: DnsAskerDependencies): DnsAsk => {
  const { servers, clock } = dependencies;
  const states = servers.map((server): ServerState => ({
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

  return async function ask(name, type, deadlineMs) {
    let best: DnsAnswer = { ...UNHEARD, reading: { kind: "timeout" } };
    for (const state of inOrder()) {
      if (best.server !== null && clock.monotonicMs() >= deadlineMs) return best;
      const exchange = await askServer(dependencies, state, { name, type, deadlineMs });
      const answer = readExchange(exchange, state.server, { name, type });
      if (FINAL.has(answer.reading.kind)) return answer;
      if (UNREACHED.has(answer.reading.kind)) state.suspectUntilMs = clock.monotonicMs() + SUSPECT_MS;
      // What some server said tells more than the silence of the others.
      if (UNREACHED.has(best.reading.kind)) best = answer;
    }
    return best;
  };
};

const UNHEARD = { isAuthenticated: false, server: null, sizeBytes: 0 } as const;
const FINAL: ReadonlySet<string> = new Set(["answer", "no_data", "nxdomain", "follow", "cname_loop", "aborted"]);
const UNREACHED: ReadonlySet<string> = new Set(["timeout", "network_error"]);

interface Question {
  readonly name: string;
  readonly type: DnsType;
}

/** One server's part: retransmits after silence, goes over to TCP, and does without what the server does not take. */
const askServer = async (
  { transport, clock, random16, timeouts }: DnsAskerDependencies,
  state: ServerState,
  { name, type, deadlineMs }: Question & { deadlineMs: number },
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
    const query = encodeQuery(name, type, { random16, mixCase, edns });
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

const readExchange = (exchange: DnsExchange, from: DnsServer, { name, type }: Question): DnsAnswer => {
  const server = formatServer(from);
  switch (exchange.kind) {
    case "message": {
      const { isAuthenticated, sizeBytes } = exchange.message;
      return { reading: readAnswer(exchange.message, name, type), isAuthenticated, server, sizeBytes };
    }
    case "timeout":
    case "network_error":
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
