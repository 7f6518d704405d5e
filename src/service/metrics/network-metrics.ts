import type { Clock } from "../../foundation/base/clock.ts";
import type { Result } from "../../foundation/base/errors.ts";
import type { DnsResolver } from "../../foundation/net/dns.ts";
import type { SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import type { SmtpProbe, SmtpProbeResult, SmtpSession } from "../../foundation/net/smtp-session.ts";
import {
  addTally,
  type NetworkCounters,
  NetworkTally,
  type TalliedNetwork,
} from "../../verify/thread/network-tally.ts";
import { Histogram, type Registry } from "./prometheus.ts";
import { SummedCounter } from "./summed-counter.ts";

const DNS_BUCKETS_S = [0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10];
const SMTP_BUCKETS_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320];

const createNetworkCounters = (registry: Registry) => {
  const registers = [registry];
  return {
    dnsQueries: new SummedCounter({
      ...{ registers, name: "postwarden_dns_queries_total" },
      help: "DNS queries by record type and outcome; `cached`: answered without a name server.",
      labelNames: ["type", "outcome", "cached"] as const,
    }),
    dnsSeconds: new Histogram({
      ...{ registers, name: "postwarden_dns_query_seconds" },
      help: "Duration of DNS queries that were not answered from the cache, including the wait for a free slot.",
      buckets: DNS_BUCKETS_S,
    }),
    openSeconds: new Histogram({
      ...{ registers, name: "postwarden_smtp_open_seconds" },
      help: "Time from dialling a mail host to its reply to EHLO, or to the failure.",
      labelNames: ["result"] as const,
      buckets: SMTP_BUCKETS_S,
    }),
    sessionSeconds: new Histogram({
      ...{ registers, name: "postwarden_smtp_session_seconds" },
      help: "Time from dialling a mail host to the end of the session.",
      buckets: SMTP_BUCKETS_S,
    }),
    failures: new SummedCounter({
      ...{ registers, name: "postwarden_smtp_failures_total" },
      help: "SMTP sessions and probes that failed, by the command whose reply was awaited and by kind.",
      labelNames: ["stage", "kind"] as const,
    }),
    replies: new SummedCounter({
      ...{ registers, name: "postwarden_smtp_replies_total" },
      help: "Replies to MAIL and RCPT, by the first digit of the code.",
      labelNames: ["command", "class"] as const,
    }),
  };
};

/** Opens the SMTP session with a target. */
type OpenTarget<T> = (target: T) => Promise<Result<SmtpSession, SmtpFailure>>;

/** Observes DNS queries and SMTP sessions from outside: the clients themselves do not know of metrics. */
export class NetworkMetrics {
  readonly #clock: Clock;
  readonly #counters: NetworkCounters;

  /** On the registry of the service, or on the tally of a thread without one. */
  constructor(counters: Registry | NetworkTally, clock: Clock) {
    this.#clock = clock;
    this.#counters = counters instanceof NetworkTally ? counters : createNetworkCounters(counters);
  }

  /** Adds what another thread counted and measured. */
  add(tally: TalliedNetwork): void {
    addTally(this.#counters, tally);
  }

  /** The same resolver, observed. */
  watchResolver(resolver: DnsResolver): DnsResolver {
    const { dnsQueries, dnsSeconds } = this.#counters;
    return {
      resolve: async (name, type, options) => {
        const startedMs = this.#clock.monotonicMs();
        const response = await resolver.resolve(name, type, options);
        const { outcome, fromCache } = response;
        dnsQueries.inc({ type, outcome, cached: String(fromCache) });
        if (!fromCache) dnsSeconds.observe((this.#clock.monotonicMs() - startedMs) / 1_000);
        return response;
      },
    };
  }

  /** The same function, with sessions that are observed. */
  watchSessions<T>(open: OpenTarget<T>): OpenTarget<T> {
    return async (target) => {
      const startedMs = this.#clock.monotonicMs();
      const opened = await open(target);
      const elapsedS = () => (this.#clock.monotonicMs() - startedMs) / 1_000;
      this.#counters.openSeconds.observe({ result: opened.ok ? "opened" : "failed" }, elapsedS());
      if (opened.ok) return { ok: true, value: new WatchedSession(opened.value, this.#counters, elapsedS) };
      const { stage, kind } = opened.error;
      this.#counters.failures.inc({ stage, kind });
      return opened;
    };
  }
}

/** An SMTP session that counts its replies and failures, and its duration once it is closed. */
class WatchedSession implements SmtpSession {
  #isClosed: boolean = false;

  constructor(
    private readonly session: SmtpSession,
    private readonly counters: NetworkCounters,
    private readonly elapsedS: () => number,
  ) {}

  get capabilities() {
    return this.session.capabilities;
  }

  get transcript() {
    return this.session.transcript;
  }

  get tls() {
    return this.session.tls;
  }

  get usable() {
    return this.session.usable;
  }

  async probe(probe: SmtpProbe): Promise<SmtpProbeResult> {
    const result = await this.session.probe(probe);
    const { mail, rcpts, failure } = result;
    const { replies, failures } = this.counters;
    if (mail !== null) replies.inc({ command: "mail", class: classOf(mail.code) });
    for (const rcpt of rcpts) if (rcpt !== null) replies.inc({ command: "rcpt", class: classOf(rcpt.code) });
    if (failure !== null) failures.inc({ stage: failure.stage, kind: failure.kind });
    return result;
  }

  close(): void {
    if (!this.#isClosed) this.counters.sessionSeconds.observe(this.elapsedS());
    this.#isClosed = true;
    this.session.close();
  }
}

/** `5xx` for 550. Only 2xx, 4xx and 5xx are replies to MAIL and RCPT. */
const classOf = (code: number): string => `${Math.floor(code / 100)}xx`;
