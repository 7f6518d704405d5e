import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { DnsOutcome, DnsResponse } from "../net/dns.ts";
import type { SmtpFailure } from "../net/smtp-failure.ts";
import type { ProbeTarget } from "./host-queue.ts";
import { createOutageSigns, type OutageSigns } from "./outage-signs.ts";

/** Where something may fail for everybody: sockets for DNS, DNS itself, the way out to mail hosts, the mail hosts. */
export type Channel = "dns_sockets" | "dns" | "egress" | "smtp";

/** Why lists pause, as the interface says it. */
export const PAUSED_REASONS = ["local_failure", "dns_unavailable", "smtp_unreachable"] as const;
export type PausedReason = (typeof PAUSED_REASONS)[number];

/**
 * What a failure amounts to: `outage`, nothing answers, so it says nothing about the address; `open`, not clear yet;
 * `believed`, others answer, so the failure is about this domain or host.
 */
export type OutageJudgement = "outage" | "open" | "believed";

export interface OutagesDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether DNS answers about the root, or about `known`, the last name that it answered about; null when it never did. */
  readonly reachesDns: (known: DnsQuery | null) => Promise<boolean>;
  /** Whether a mail host opens a session. */
  readonly reachesHost: (target: ProbeTarget) => Promise<boolean>;
  /** Whether a provider is so large that its hosts are hardly ever all gone. */
  readonly isLargeProvider: (provider: string) => boolean;
}

/** Whether many of those that nothing is known of fail, and how long an outage may then be assumed. */
interface Strange {
  readonly many: boolean;
  readonly lastsMsMax: number;
}

/** What DNS was asked. */
export type DnsQuery = Pick<DnsResponse, "name" | "type">;

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** How long other replies are waited for before a probe is sent. */
const GRACE_MS = 300;
/** Local failures in a row, without one success, for so long: nothing works. */
const LOCAL_MS = 3 * SECOND_MS;
/** Providers that refuse or do not answer, and not one that answers: it is our side. A large one counts for several. */
export const SILENT_PROVIDERS_MAX = 10;
const LARGE_PROVIDER_COUNTS = 5;
/** Names that DNS does not answer about, where it never answered about any: it is not about one domain. */
export const FAILING_NAMES_MAX = 10;
/** With fewer hosts or names than that it cannot be told; after this time the failure is believed. */
export const OPEN_MS_MAX = 30 * SECOND_MS;
/** Time between two probes during an outage: doubling from the first to the second figure. */
const PROBE_MS = SECOND_MS;
const PROBE_MS_MAX = MINUTE_MS;
/** An outage is assumed no longer than this; then failures are believed until something answers. */
export const OUTAGE_MS_MAX = 24 * HOUR_MS;
/** The same when nothing is known to have worked in this process: perhaps the list is just old. */
export const DOUBTFUL_OUTAGE_MS_MAX = 15 * MINUTE_MS;
/** Hosts that answered in this process, one a provider, and how many of them are probed at a time. */
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
  dns: "No DNS server answers (POSTWARDEN_DNS_SERVERS).",
  egress:
    "No connection can be opened from this machine: check the limit of open files, POSTWARDEN_SOURCE_ADDRESSES and POSTWARDEN_SOCKS_PROXIES.",
  smtp: "No mail host takes a connection: outgoing SMTP seems to be blocked on this side.",
};

const DNS_FAILURES: ReadonlySet<DnsOutcome> = new Set([
  ...(["servfail", "refused", "timeout", "malformed", "network_error", "unconfirmed"] as const),
]);
const DNS_ANSWERS: ReadonlySet<DnsOutcome> = new Set(["answer", "no_data", "nxdomain", "cname_loop"]);
const LOCAL_KINDS: ReadonlySet<SmtpFailure["kind"]> = new Set(["local_failure", "proxy_failed"]);
const UNREACHABLE_KINDS: ReadonlySet<SmtpFailure["kind"]> = new Set(["refused_or_unreachable", "connect_timeout"]);

/**
 * Tells an outage (no DNS server answers, no mail host takes a connection, no socket can be opened) from the failures
 * of single domains, by what else answers at the same time. During an outage it probes by itself, at growing intervals,
 * and notices the end by whatever answers first.
 */
export class Outages {
  private readonly signs: Readonly<Record<Channel, OutageSigns>>;
  private readonly knownHosts = new Map<string, ProbeTarget>();
  private readonly silentProviders = new Map<string, number>();
  private readonly failingNames = new Set<string>();
  private knownQuestion: DnsQuery | null = null;
  private readonly listeners = new Set<() => void>();
  private readonly probes = new Map<Channel, Promise<boolean>>();
  private readonly timers = new Map<Channel, () => void>();
  private turns = 0;
  private nextHost = 0;
  private shortageMs = Number.NEGATIVE_INFINITY;
  private stopped: boolean = false;

  constructor(private readonly deps: OutagesDeps) {
    const { clock, log } = deps;
    const of = (channel: Channel) =>
      createOutageSigns({ clock, log, reason: REASONS[channel], finding: FINDINGS[channel] });
    this.signs = { dns_sockets: of("dns_sockets"), dns: of("dns"), egress: of("egress"), smtp: of("smtp") };
  }

  /** Why nothing can be found out at the moment; null when something answers. */
  current(): PausedReason | null {
    const channel = CHANNELS.find((one) => this.signs[one].isOut());
    return channel === undefined ? null : REASONS[channel];
  }

  /** A sentence for the operator on each outage. */
  findings(): string[] {
    return CHANNELS.filter((channel) => this.signs[channel].isOut()).map((channel) => FINDINGS[channel]);
  }

  /** When a socket could not be opened last, by the monotonic clock. */
  lastShortageMs(): number {
    return this.shortageMs;
  }

  /** Calls the listener when an outage begins or ends, and whenever one more address may be tried meanwhile. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** During an outage: true once for each interval, for one address to be tried. */
  takeTurn(): boolean {
    if (this.turns === 0) return false;
    this.turns = 0;
    return true;
  }

  /** What came of a DNS query. Replies from the cache say nothing about now. */
  noteDns({ name, type, outcome, fromCache }: Pick<DnsResponse, "name" | "type" | "outcome" | "fromCache">): void {
    if (fromCache) return;
    if (outcome === "local_failure") this.noteShortage("dns_sockets");
    if (DNS_ANSWERS.has(outcome) || DNS_FAILURES.has(outcome)) this.noteLife("dns_sockets");
    if (DNS_ANSWERS.has(outcome)) {
      this.knownQuestion = { name, type };
      this.noteLife("dns");
    } else if (DNS_FAILURES.has(outcome)) {
      if (this.signs.dns.noteFailure()) this.failingNames.clear();
      if (this.failingNames.size < FAILING_NAMES_MAX) this.failingNames.add(name);
    }
  }

  /** What came of dialling a mail host; null for an open session. */
  noteConnect(target: ProbeTarget, failure: SmtpFailure | null): void {
    if (failure !== null && LOCAL_KINDS.has(failure.kind)) {
      this.noteShortage("egress");
      return;
    }
    this.noteLife("egress");
    if (failure === null || failure.receivedAnything) {
      this.remember(target);
      this.noteLife("smtp");
    } else if (UNREACHABLE_KINDS.has(failure.kind)) {
      const counts = this.deps.isLargeProvider(target.provider) ? LARGE_PROVIDER_COUNTS : 1;
      if (this.silentProviders.size < SILENT_PROVIDERS_MAX) this.silentProviders.set(target.provider, counts);
      if (this.signs.smtp.noteFailure()) {
        this.silentProviders.clear();
        this.silentProviders.set(target.provider, counts);
      }
    }
  }

  /** Judges a failure that has just happened; may wait for other replies, and send a probe. */
  async judge(channel: Channel): Promise<OutageJudgement> {
    const signs = this.signs[channel];
    if (signs.isOut()) return "outage";
    if (signs.isGivenUp() || this.stopped) return "believed";
    if (channel === "dns_sockets" || channel === "egress") return this.judgeLocally(channel);
    if (channel === "smtp" && this.knownHosts.size === 0) return this.judgeUnknown(channel, this.strangeHosts());
    const failedMs = this.deps.clock.monotonicMs();
    await signs.lifeWithin(GRACE_MS);
    if (signs.hasLifeSince(failedMs) || (await this.probe(channel))) return "believed";
    if (signs.isGivenUp()) return "believed";
    if (channel === "dns" && this.knownQuestion === null) return this.judgeUnknown(channel, this.strangeNames());
    this.begin(channel, OUTAGE_MS_MAX);
    return "outage";
  }

  stop(): void {
    this.stopped = true;
    for (const cancel of this.timers.values()) cancel();
    this.timers.clear();
  }

  private judgeLocally(channel: "dns_sockets" | "egress"): OutageJudgement {
    const forMs = this.signs[channel].failingForMs();
    if (forMs === null) return "believed";
    if (forMs < LOCAL_MS) return "open";
    this.begin(channel, OUTAGE_MS_MAX);
    return "outage";
  }

  /** Nothing is known to work: only if many fail, and none answers, is it a sign that it is us. */
  private judgeUnknown(channel: "dns" | "smtp", { many, lastsMsMax }: Strange): OutageJudgement {
    if (many) {
      this.begin(channel, lastsMsMax);
      return "outage";
    }
    const forMs = this.signs[channel].failingForMs();
    return forMs !== null && forMs < OPEN_MS_MAX ? "open" : "believed";
  }

  private strangeHosts(): Strange {
    const counts = [...this.silentProviders.values()];
    const many = counts.reduce((sum, count) => sum + count, 0) >= SILENT_PROVIDERS_MAX;
    return { many, lastsMsMax: counts.some((count) => count > 1) ? OUTAGE_MS_MAX : DOUBTFUL_OUTAGE_MS_MAX };
  }

  private strangeNames(): Strange {
    return { many: this.failingNames.size >= FAILING_NAMES_MAX, lastsMsMax: DOUBTFUL_OUTAGE_MS_MAX };
  }

  private noteShortage(channel: "dns_sockets" | "egress"): void {
    this.shortageMs = this.deps.clock.monotonicMs();
    this.signs[channel].noteFailure();
    this.signs[channel].warn();
  }

  private remember(target: ProbeTarget): void {
    this.knownHosts.delete(target.provider);
    this.knownHosts.set(target.provider, target);
    const [oldest] = this.knownHosts.keys();
    if (this.knownHosts.size > KNOWN_HOSTS_MAX && oldest !== undefined) this.knownHosts.delete(oldest);
  }

  private noteLife(channel: Channel): void {
    if (channel === "smtp") this.silentProviders.clear();
    if (channel === "dns") this.failingNames.clear();
    if (!this.signs[channel].noteLife()) return;
    this.timers.get(channel)?.();
    this.timers.delete(channel);
    this.tell();
  }

  private begin(channel: Channel, lastsMsMax: number): void {
    if (!this.signs[channel].begin(lastsMsMax)) return;
    this.tell();
    this.probeLater(channel, PROBE_MS);
  }

  private probeLater(channel: Channel, afterMs: number): void {
    if (this.stopped) return;
    const tick = () => {
      this.timers.delete(channel);
      if (this.signs[channel].giveUpWhenOver()) return this.tell();
      this.turns = 1;
      this.tell();
      void this.probe(channel).then(() => {
        if (this.signs[channel].isOut() && !this.timers.has(channel))
          this.probeLater(channel, Math.min(afterMs * 2, PROBE_MS_MAX));
      });
    };
    this.timers.set(channel, this.deps.clock.after(afterMs, tick));
  }

  /** Asks for something that is known to work; several who want to know at once share one probe. */
  private probe(channel: Channel): Promise<boolean> {
    const underWay = this.probes.get(channel);
    if (underWay !== undefined) return underWay;
    const probe = (channel === "smtp" ? this.probeHosts() : this.deps.reachesDns(this.knownQuestion))
      .then((answers) => {
        if (answers && (channel === "dns" || channel === "smtp")) this.noteLife(channel);
        return answers;
      })
      .finally(() => this.probes.delete(channel));
    this.probes.set(channel, probe);
    return probe;
  }

  /** Some hosts that answered before, the next time others. */
  private async probeHosts(): Promise<boolean> {
    const all = [...this.knownHosts.values()];
    const some = [...all, ...all].slice(this.nextHost, this.nextHost + Math.min(HOSTS_PER_PROBE, all.length));
    this.nextHost = all.length === 0 ? 0 : (this.nextHost + some.length) % all.length;
    const answers = await Promise.all(some.map((target) => this.deps.reachesHost(target)));
    return answers.includes(true);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}
