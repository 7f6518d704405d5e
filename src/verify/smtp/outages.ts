import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Log } from "../../foundation/base/log.ts";
import type { DnsOutcome, DnsResponse } from "../../foundation/net/dns.ts";
import type { SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import type { ProbeTarget } from "./host-queue.ts";

/** What an outage can affect: DNS sockets, DNS, the egress to mail hosts, mail hosts. */
export type Channel = "dns_sockets" | "dns" | "egress" | "smtp";

/** Why lists are paused, as in the API. */
export const PAUSED_REASONS = ["local_failure", "dns_unavailable", "smtp_unreachable"] as const;
export type PausedReason = (typeof PAUSED_REASONS)[number];

/**
 * What a failure is due to: `outage`, nothing responds, so it says nothing about the address; `open`, not known yet;
 * `believed`, others respond, so it is due to this domain or host.
 */
export type OutageJudgement = "outage" | "open" | "believed";

export interface OutagesDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether DNS responds for the root or for `known`, the latest query with a response; null when there is none. */
  readonly reachesDns: (known: DnsQuery | null) => Promise<boolean>;
  /** Whether a session with a mail host can be opened. */
  readonly reachesHost: (target: ProbeTarget) => Promise<boolean>;
  /** Whether a provider is so large that its hosts are hardly ever all down. */
  readonly isLargeProvider: (provider: string) => boolean;
}

/** A DNS query. */
export type DnsQuery = Pick<DnsResponse, "name" | "type">;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How long to wait for other responses before a probe is sent. */
const GRACE_MS = 300;
/** Local failures without one success for this long are an outage. */
const LOCAL_MS = 3 * SECOND_MS;
/** With this many unreachable providers and none that responds, it is our side. A large one counts for several. */
export const FAILING_PROVIDERS_MAX = 10;
const LARGE_PROVIDER_COUNTS = 5;
/** With this many names that DNS gives no response for, and none that it does, it is not about one domain. */
export const FAILING_NAMES_MAX = 10;
/** With fewer hosts or names than that it is open; after this time the failure is believed. */
export const OPEN_MS_MAX = 30 * SECOND_MS;
/** Time between two probes during an outage: doubling from the first to the second figure. */
const PROBE_MS = SECOND_MS;
const PROBE_MS_MAX = MINUTE_MS;
/** An outage is assumed no longer than this; then failures are believed until something responds. */
export const OUTAGE_MS_MAX = 24 * HOUR_MS;
/** The same when nothing has responded yet in this process: perhaps the list is just old. */
export const DOUBTFUL_OUTAGE_MS_MAX = 15 * MINUTE_MS;
/** Hosts kept that responded in this process, one per provider, and how many of them are probed at a time. */
const KNOWN_HOSTS_MAX = 32;
const HOSTS_PER_PROBE = 3;

const CHANNELS: readonly Channel[] = ["dns_sockets", "dns", "egress", "smtp"];
const REASONS: Readonly<Record<Channel, PausedReason>> = {
  dns_sockets: "local_failure",
  dns: "dns_unavailable",
  egress: "local_failure",
  smtp: "smtp_unreachable",
};
const FINDINGS: Readonly<Record<Channel, string>> = {
  dns_sockets: "This machine cannot open sockets for DNS queries (out of file descriptors?).",
  dns: "No DNS server responds (POSTWARDEN_DNS_SERVERS).",
  egress:
    "No connection can be opened from this machine: check the limit of open files, POSTWARDEN_SOURCE_ADDRESSES and POSTWARDEN_SOCKS_PROXIES.",
  smtp: "No mail host accepts a connection: outgoing SMTP (port 25) seems to be blocked on this side.",
};

const DNS_FAILURES: ReadonlySet<DnsOutcome> = new Set([
  ...(["servfail", "refused", "timeout", "malformed", "network_error", "unconfirmed"] as const),
]);
const DNS_ANSWERS: ReadonlySet<DnsOutcome> = new Set(["response", "no_data", "nxdomain", "cname_loop"]);
const LOCAL_KINDS: ReadonlySet<SmtpFailure["kind"]> = new Set(["local_failure", "proxy_failed"]);
const UNREACHABLE_KINDS: ReadonlySet<SmtpFailure["kind"]> = new Set(["refused_or_unreachable", "connect_timeout"]);

/**
 * Distinguishes an outage (no DNS server responds, no mail host accepts a connection, no socket can be opened) from
 * failures of single domains, by what else responds at the same time. During an outage it sends probes at growing
 * intervals; the first response ends it.
 */
export class Outages {
  readonly #signs: Readonly<Record<Channel, OutageSigns>>;
  readonly #knownHosts = new BoundedMap<string, ProbeTarget>(KNOWN_HOSTS_MAX);
  readonly #failingProviders = new Map<string, number>();
  readonly #failingNames = new Set<string>();
  #knownQuery: DnsQuery | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #probes = new Map<Channel, Promise<boolean>>();
  readonly #timers = new Map<Channel, () => void>();
  #turns = 0;
  #nextHost = 0;
  #shortageMs = Number.NEGATIVE_INFINITY;
  #stopped: boolean = false;

  constructor(private readonly deps: OutagesDeps) {
    const { clock, log } = deps;
    const of = (channel: Channel) =>
      new OutageSigns({ clock, log, reason: REASONS[channel], finding: FINDINGS[channel] });
    this.#signs = { dns_sockets: of("dns_sockets"), dns: of("dns"), egress: of("egress"), smtp: of("smtp") };
  }

  /** Why nothing can be verified at the moment; null without an outage. */
  current(): PausedReason | null {
    const channel = CHANNELS.find((one) => this.#signs[one].isOut);
    return channel === undefined ? null : REASONS[channel];
  }

  /** A sentence for the operator about each outage. */
  findings(): string[] {
    return CHANNELS.filter((channel) => this.#signs[channel].isOut).map((channel) => FINDINGS[channel]);
  }

  /** When a socket could last not be opened, by the monotonic clock. */
  lastShortageMs(): number {
    return this.#shortageMs;
  }

  /** Calls the listener when an outage begins or ends, and whenever one more address may be tried meanwhile. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** During an outage: true once for each interval, for one address to be tried. */
  takeTurn(): boolean {
    if (this.#turns === 0) return false;
    this.#turns = 0;
    return true;
  }

  /** Notes the outcome of a DNS query. Cached responses say nothing about now. */
  noteDns({ name, type, outcome, fromCache }: Pick<DnsResponse, "name" | "type" | "outcome" | "fromCache">): void {
    if (fromCache) return;
    if (outcome === "local_failure") this.#noteShortage("dns_sockets");
    if (DNS_ANSWERS.has(outcome) || DNS_FAILURES.has(outcome)) this.#noteResponse("dns_sockets");
    if (DNS_ANSWERS.has(outcome)) {
      this.#knownQuery = { name, type };
      this.#noteResponse("dns");
    } else if (DNS_FAILURES.has(outcome)) {
      if (this.#signs.dns.noteFailure()) this.#failingNames.clear();
      if (this.#failingNames.size < FAILING_NAMES_MAX) this.#failingNames.add(name);
    }
  }

  /** Notes the outcome of dialling a mail host; null for an open session. */
  noteConnect(target: ProbeTarget, failure: SmtpFailure | null): void {
    if (failure !== null && LOCAL_KINDS.has(failure.kind)) {
      this.#noteShortage("egress");
      return;
    }
    this.#noteResponse("egress");
    if (failure === null || failure.receivedAnything) {
      this.#knownHosts.set(target.provider, target);
      this.#noteResponse("smtp");
    } else if (UNREACHABLE_KINDS.has(failure.kind)) {
      const counts = this.deps.isLargeProvider(target.provider) ? LARGE_PROVIDER_COUNTS : 1;
      if (this.#failingProviders.size < FAILING_PROVIDERS_MAX) this.#failingProviders.set(target.provider, counts);
      if (this.#signs.smtp.noteFailure()) {
        this.#failingProviders.clear();
        this.#failingProviders.set(target.provider, counts);
      }
    }
  }

  /** Judges a failure that has just happened; may wait for other responses, and send a probe. */
  async judge(channel: Channel): Promise<OutageJudgement> {
    const signs = this.#signs[channel];
    if (signs.isOut) return "outage";
    if (signs.isGivenUp || this.#stopped) return "believed";
    if (channel === "dns_sockets" || channel === "egress") return this.#judgeLocally(channel);
    if (channel === "smtp" && this.#knownHosts.size === 0) return this.#judgeUnknown(channel, this.#failingHostSigns());
    const failedMs = this.deps.clock.monotonicMs();
    await signs.responseWithin(GRACE_MS);
    if (signs.hasResponseSince(failedMs) || (await this.#probe(channel))) return "believed";
    if (signs.isGivenUp) return "believed";
    if (channel === "dns" && this.#knownQuery === null) return this.#judgeUnknown(channel, this.#failingNameSigns());
    this.#begin(channel, OUTAGE_MS_MAX);
    return "outage";
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  #judgeLocally(channel: "dns_sockets" | "egress"): OutageJudgement {
    const forMs = this.#signs[channel].failingForMs();
    if (forMs === null) return "believed";
    if (forMs < LOCAL_MS) return "open";
    this.#begin(channel, OUTAGE_MS_MAX);
    return "outage";
  }

  /** Nothing has responded yet: it is our side only if many fail. Then an outage is assumed for up to `lastsMsMax`. */
  #judgeUnknown(
    channel: "dns" | "smtp",
    { many, lastsMsMax }: { readonly many: boolean; readonly lastsMsMax: number },
  ): OutageJudgement {
    if (many) {
      this.#begin(channel, lastsMsMax);
      return "outage";
    }
    return (this.#signs[channel].failingForMs() ?? OPEN_MS_MAX) < OPEN_MS_MAX ? "open" : "believed";
  }

  #failingHostSigns() {
    const counts = [...this.#failingProviders.values()];
    const many = counts.reduce((sum, count) => sum + count, 0) >= FAILING_PROVIDERS_MAX;
    return { many, lastsMsMax: counts.some((count) => count > 1) ? OUTAGE_MS_MAX : DOUBTFUL_OUTAGE_MS_MAX };
  }

  #failingNameSigns() {
    return { many: this.#failingNames.size >= FAILING_NAMES_MAX, lastsMsMax: DOUBTFUL_OUTAGE_MS_MAX };
  }

  #noteShortage(channel: "dns_sockets" | "egress"): void {
    this.#shortageMs = this.deps.clock.monotonicMs();
    this.#signs[channel].noteFailure();
    this.#signs[channel].warn();
  }

  #noteResponse(channel: Channel): void {
    if (channel === "smtp") this.#failingProviders.clear();
    if (channel === "dns") this.#failingNames.clear();
    if (!this.#signs[channel].noteResponse()) return;
    this.#timers.get(channel)?.();
    this.#timers.delete(channel);
    this.#notify();
  }

  #begin(channel: Channel, lastsMsMax: number): void {
    if (!this.#signs[channel].begin(lastsMsMax)) return;
    this.#notify();
    this.#probeLater(channel, PROBE_MS);
  }

  #probeLater(channel: Channel, afterMs: number): void {
    if (this.#stopped) return;
    const tick = () => {
      this.#timers.delete(channel);
      if (this.#signs[channel].giveUpWhenOver()) return this.#notify();
      this.#turns = 1;
      this.#notify();
      void this.#probe(channel).then(() => {
        if (this.#signs[channel].isOut && !this.#timers.has(channel))
          this.#probeLater(channel, Math.min(afterMs * 2, PROBE_MS_MAX));
      });
    };
    this.#timers.set(channel, this.deps.clock.after(afterMs, tick));
  }

  /** Probes something that responded before; concurrent callers share one probe. */
  #probe(channel: Channel): Promise<boolean> {
    const underWay = this.#probes.get(channel);
    if (underWay !== undefined) return underWay;
    const probe = (channel === "smtp" ? this.#probeHosts() : this.deps.reachesDns(this.#knownQuery))
      .then((responds) => {
        if (responds && (channel === "dns" || channel === "smtp")) this.#noteResponse(channel);
        return responds;
      })
      .finally(() => this.#probes.delete(channel));
    this.#probes.set(channel, probe);
    return probe;
  }

  /** Some hosts that responded before, the next time others. */
  async #probeHosts(): Promise<boolean> {
    const all = [...this.#knownHosts.values()];
    const some = [...all, ...all].slice(this.#nextHost, this.#nextHost + Math.min(HOSTS_PER_PROBE, all.length));
    this.#nextHost = all.length === 0 ? 0 : (this.#nextHost + some.length) % all.length;
    const responds = await Promise.all(some.map((target) => this.deps.reachesHost(target)));
    return responds.includes(true);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Failures further apart than this are not one series. */
const SERIES_GAP_MS = 2 * 60_000;
/** Failures, and outages that come and go, are logged at most this often. */
const WARNED_AGAIN_MS = 10 * 60_000;
const OUTAGE_LOGGED_AGAIN_MS = 60_000;

/** Signs for and against an outage on one channel, and the outage while there is one. Times are monotonic. */
class OutageSigns {
  readonly #waiting = new Set<() => void>();
  #lastResponseMs = Number.NEGATIVE_INFINITY;
  #series: { readonly sinceMs: number; lastMs: number } | null = null;
  #outage: { readonly sinceMs: number; readonly untilMs: number; readonly isLogged: boolean } | null = null;
  #isGivenUp: boolean = false;
  #warnedMs = Number.NEGATIVE_INFINITY;
  #loggedMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly deps: Pick<OutagesDeps, "clock" | "log"> & { readonly reason: string; readonly finding: string },
  ) {}

  get isOut(): boolean {
    return this.#outage !== null;
  }

  /** The outage lasted too long to be assumed; until something responds, failures count as the hosts' own. */
  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  hasResponseSince(sinceMs: number): boolean {
    return this.#lastResponseMs >= sinceMs;
  }

  /** For how long there have been failures and no success; null when there are none. */
  failingForMs(): number | null {
    return this.#series === null ? null : this.#nowMs() - this.#series.sinceMs;
  }

  /** True when this failure is the first of a series. */
  noteFailure(): boolean {
    const nowMs = this.#nowMs();
    if (this.#series !== null && nowMs - this.#series.lastMs <= SERIES_GAP_MS) {
      this.#series.lastMs = nowMs;
      return false;
    }
    this.#series = { sinceMs: nowMs, lastMs: nowMs };
    return true;
  }

  /** Logs, now and then, failures that are not an outage. */
  warn(): void {
    const nowMs = this.#nowMs();
    if (this.isOut || nowMs - this.#warnedMs < WARNED_AGAIN_MS) return;
    this.#warnedMs = nowMs;
    this.deps.log.warn(this.deps.finding, { reason: this.deps.reason });
  }

  /** Something responds; true when an outage ends with it. */
  noteResponse(): boolean {
    this.#lastResponseMs = this.#nowMs();
    this.#series = null;
    this.#isGivenUp = false;
    for (const wake of this.#waiting) wake();
    return this.#end("The outage is over: lists continue.");
  }

  /** Resolves when something responds, or after that time. */
  responseWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        cancel();
        this.#waiting.delete(wake);
        resolve();
      };
      const cancel = this.deps.clock.after(ms, wake);
      this.#waiting.add(wake);
    });
  }

  /** False when there is an outage already. */
  begin(lastsMsMax: number): boolean {
    if (this.isOut) return false;
    const nowMs = this.#nowMs();
    const isLogged = nowMs - this.#loggedMs >= OUTAGE_LOGGED_AGAIN_MS;
    this.#outage = { sinceMs: nowMs, untilMs: nowMs + lastsMsMax, isLogged };
    if (!isLogged) return true;
    this.#loggedMs = nowMs;
    this.deps.log.warn(`Lists are paused. ${this.deps.finding}`, { reason: this.deps.reason });
    return true;
  }

  /** True when the outage has lasted as long as one is assumed. */
  giveUpWhenOver(): boolean {
    if (this.#outage === null || this.#nowMs() < this.#outage.untilMs) return false;
    this.#isGivenUp = true;
    return this.#end("No host has responded for too long: lists continue, and failures are final from now on.");
  }

  /** False without an outage. */
  #end(message: string): boolean {
    if (this.#outage === null) return false;
    const { sinceMs, isLogged } = this.#outage;
    this.#outage = null;
    const seconds = Math.round((this.#nowMs() - sinceMs) / 1000);
    if (isLogged) this.deps.log.warn(message, { reason: this.deps.reason, seconds });
    return true;
  }

  #nowMs(): number {
    return this.deps.clock.monotonicMs();
  }
}
