import type { SmtpFailure } from "../foundation/net/smtp-failure.ts";
import type { ProbeFinding, ReplyEvidence } from "./evidence.ts";
import { knowsNothing, mayBeSettledByControl, mayBeSettledByRandom, type ReplyReading, verdictOf } from "./replies.ts";
import { BoundedMap } from "../foundation/base/bounded-map.ts";
import type { Clock } from "../foundation/base/clock.ts";

const REPLY_CHARACTERS_MAX = 300;

/** Refusals in words that hold for now, whatever the code. */
const FOR_NOW: ReadonlySet<ReplyReading> = new Set(["greylisted", "rate_limited", "temporary"]);
/** The recipient exists: waiting adds nothing. */
const EXISTS: ReadonlySet<ReplyReading> = new Set(["accepted", "mailbox_full"]);

/**
 * Whether a later attempt may get another reply. The code decides (RFC 5321 §4.2.1: 4yz is worth a retry), not the words:
 * greylisting comes in the words of a policy, too.
 */
const isTemporaryRefusal = (reading: ReplyReading, code: number): boolean =>
  FOR_NOW.has(reading) || (code >= 400 && code < 500 && !EXISTS.has(reading));

/** Readings of a temporary refusal that may be greylisting, whatever its words. */
const MAYBE_GREYLISTED: ReadonlySet<ReplyReading> = new Set(["greylisted", "blocked", "temporary"]);
/** An enhanced status code about an address (RFC 3463 §3.2): nobody has that name. */
const ABOUT_THE_ADDRESS = "4.1.";

/** Whether the random recipient may be accepted later: greylisting can let it pass after the submitted one. */
const mayBeGreylisted = ({ reading, code, enhanced }: ReplyEvidence): boolean =>
  code >= 400 &&
  code < 500 &&
  code !== 421 &&
  MAYBE_GREYLISTED.has(reading) &&
  !enhanced?.startsWith(ABOUT_THE_ADDRESS);

const quote = ({ code, enhanced, text }: ReplyEvidence): string => {
  const line = [code, enhanced, text.replace(/\s+/g, " ").trim()]
    .filter((part) => part !== null && part !== "")
    .join(" ");
  return line.length > REPLY_CHARACTERS_MAX ? `${line.slice(0, REPLY_CHARACTERS_MAX - 1)}…` : line;
};

const catchAllOf = (submitted: ReplyEvidence, random: ReplyEvidence | undefined): ProbeFinding["catch_all"] => {
  if (submitted.reading !== "accepted") return "skipped";
  if (random === undefined) return "unknown";
  switch (random.reading) {
    case "accepted":
      return "yes";
    case "mailbox_not_found":
    case "mailbox_disabled":
    case "ambiguous":
      return random.code >= 500 && !knowsNothing(random.rule) ? "no" : "unknown";
    default:
      return "unknown";
  }
};

/**
 * A refusal that gives no reason is about the mailbox if the random recipient was accepted; if that was refused too, it is
 * open. A refusal that gives another reason is never settled by comparison.
 */
const isSettledByContrast = ({ reading, rule, code }: ReplyEvidence, random: ReplyEvidence | undefined): boolean =>
  reading === "ambiguous" && code >= 500 && random?.reading === "accepted" && mayBeSettledByRandom(rule);

/** Another recipient of the domain that a host accepted from the same egress. */
export type PositiveControl = NonNullable<ProbeFinding["positive_control"]>;

/** Whether only an accepted other recipient can show that this refusal is about the mailbox. */
export const needsControl = ({ reading, rule, code }: ReplyEvidence): boolean =>
  reading === "ambiguous" && code >= 500 && mayBeSettledByControl(rule);

/**
 * The reading, corrected where the rules see a no that cannot be one: a temporary refusal is not, and before RCPT no reply
 * is about the mailbox (except to MAIL with SMTPUTF8, which only its address needs).
 */
const corrected = ({ stage, reading, code }: ReplyEvidence): ReplyReading => {
  if (verdictOf(reading) !== "undeliverable") return reading;
  if (code < 500) return "temporary";
  return stage === "rcpt" || (stage === "mail" && reading === "smtputf8_unsupported") ? reading : "blocked";
};

/**
 * What a host's replies say about the mailbox: the reply to the submitted recipient or, if MAIL was refused, that refusal.
 * Null when the session did not get that far: another host may know. `earlier`: a recipient that it accepted before.
 */
export const findingOfReplies = (
  host: string,
  replies: readonly ReplyEvidence[],
  earlier: PositiveControl | null = null,
): ProbeFinding | null => {
  const submitted = replies.find(({ about }) => about === "submitted");
  const randoms = replies.filter(({ about }) => about === "random");
  const random =
    randoms.find(({ reading }) => reading === "accepted" || reading === "mailbox_not_found") ?? randoms.at(-1);
  if (submitted !== undefined) {
    if (isSettledByContrast(submitted, random))
      return { ...findingOfReply(host, submitted, "mailbox_not_found"), catch_all: "yes" };
    const control = needsControl(submitted) ? (controlOf(replies) ?? earlier) : null;
    if (control !== null) return { ...findingOfReply(host, submitted, "mailbox_not_found"), positive_control: control };
    const finding = {
      ...findingOfReply(host, submitted, corrected(submitted)),
      catch_all: catchAllOf(submitted, random),
    };
    return submitted.reading === "accepted" && random !== undefined && mayBeGreylisted(random)
      ? { ...finding, retryable: true, retry_hint_s: random.retry_after_s }
      : finding;
  }
  const sender = replies.find(({ stage, code }) => stage === "mail" && code >= 400);
  return sender === undefined ? null : findingOfReply(host, sender, corrected(sender));
};

/** The control that these replies contain. */
const controlOf = (replies: readonly ReplyEvidence[]): PositiveControl | null =>
  replies.some(({ about, reading }) => about === "control" && reading === "accepted")
    ? { recipient: "postmaster", age_s: 0 }
    : null;

const findingOfReply = (host: string, reply: ReplyEvidence, reading: ReplyReading): ProbeFinding => ({
  reading,
  host,
  stage: reply.stage,
  rule: reply.rule,
  reply: quote(reply),
  catch_all: "skipped",
  catch_all_age_s: null,
  positive_control: null,
  retryable: isTemporaryRefusal(reading, reply.code),
  retry_hint_s: reply.retry_after_s,
  heard: true,
});

const readingOfFailure = (kind: SmtpFailure["kind"]): ProbeFinding["reading"] => {
  switch (kind) {
    case "refused_or_unreachable":
    case "connect_timeout":
    case "address_not_allowed":
      return "unreachable";
    // No probe was sent: it says nothing about the mail host.
    case "local_failure":
    case "proxy_failed":
      return "internal";
    case "timeout":
    case "deadline":
      return "timeout";
    case "tls_failed":
      return "tls_required";
    case "smtputf8_not_offered":
      return "smtputf8_unsupported";
    case "closed":
    case "garbage":
    case "reply":
      return "protocol_error";
    default:
      return kind satisfies never;
  }
};

/** What a session that did not get as far as the recipient says: the refusal of us, or what went wrong. */
export const findingOfFailure = (
  host: string,
  replies: readonly ReplyEvidence[],
  failure: Pick<SmtpFailure, "kind" | "stage" | "receivedAnything"> | null,
): ProbeFinding => {
  const refusal = replies.findLast(({ code }) => code >= 400);
  if (refusal !== undefined && failure?.kind !== "tls_failed") return findingOfReply(host, refusal, corrected(refusal));
  return {
    ...noFinding(host),
    reading: failure === null ? "protocol_error" : readingOfFailure(failure.kind),
    stage: failure?.stage ?? null,
    rule: failure?.kind ?? null,
    heard: failure?.receivedAnything ?? true,
  };
};

/**
 * Which finding counts when no host settled the attempt: the most informative first. Findings that may change come before final
 * ones, so that they are retried.
 */
const BY_INFORMATION: ReadonlyArray<ProbeFinding["reading"]> = [
  "greylisted",
  "rate_limited",
  "temporary",
  "blocked",
  "tls_required",
  "sender_rejected",
  "protocol_error",
  "timeout",
  "unreachable",
  "internal",
];

/** The finding of a host, or of none, that could not be probed. */
export const noFinding = (host: string | null): ProbeFinding => ({
  reading: "unreachable",
  host,
  stage: null,
  rule: null,
  reply: null,
  catch_all: "skipped",
  catch_all_age_s: null,
  positive_control: null,
  retryable: false,
  retry_hint_s: null,
  heard: false,
});

/**
 * The finding of an attempt that no host settled: the most informative of its hosts' (of equals, the first host's). That no
 * host offers SMTPUTF8 counts only when every host was probed.
 */
export const mostTelling = (findings: readonly ProbeFinding[]): ProbeFinding => {
  const byInformation = BY_INFORMATION.flatMap((reading) => findings.filter((finding) => finding.reading === reading));
  const ranked = byInformation.toSorted((a, b) => Number(b.retryable) - Number(a.retryable));
  return { ...(ranked[0] ?? findings[0] ?? noFinding(null)), heard: findings.some(({ heard }) => heard) };
};

/** Where a recipient was accepted: a host may treat each egress and each domain differently. */
export interface AcceptancePlace {
  readonly domain: string;
  readonly host: string;
  readonly egress: string;
}

interface Refusal {
  readonly atMs: number;
}

interface Acceptance extends Refusal {
  readonly mailbox: string;
}

/** Short, because a host that accepts from us now may block us soon, and because an address is kept no longer than needed. */
const KEEP_MS = 5 * 60_000;
const ENTRIES_MAX = 20_000;

const placeKey = ({ domain, host, egress }: AcceptancePlace): string => `${domain} ${host} ${egress}`;
const hostKeyOf = ({ host, egress }: Omit<AcceptancePlace, "domain">): string => `${host} ${egress}`;

/**
 * The last recipient of each domain that a mail host accepted from an egress: it shows that the host does not refuse us. A
 * host that then blocks us or limits our rate must show it anew. In memory: losing an entry costs one probe. Any use
 * removes what counts no longer.
 */
export class RecentAcceptances {
  readonly #acceptances = new BoundedMap<string, Acceptance>(ENTRIES_MAX);
  readonly #refusals = new BoundedMap<string, Refusal>(ENTRIES_MAX);

  constructor(private readonly clock: Clock) {}

  /** Another recipient than `mailbox` that was accepted there lately; null when there is none. */
  find(place: AcceptancePlace, mailbox: string): PositiveControl | null {
    this.#dropExpired();
    const known = this.#acceptances.get(placeKey(place));
    if (known === undefined || known.mailbox === mailbox) return null;
    const refused = this.#refusals.get(hostKeyOf(place));
    if (refused !== undefined && refused.atMs >= known.atMs) return null;
    const ageMs = this.clock.monotonicMs() - known.atMs;
    const recipient = known.mailbox === postmasterOf(place.domain) ? "postmaster" : "another";
    return { recipient, age_s: Math.round(ageMs / 1000) };
  }

  noteAccepted(place: AcceptancePlace, mailbox: string): void {
    this.#dropExpired();
    this.#acceptances.set(placeKey(place), { mailbox, atMs: this.clock.monotonicMs() });
  }

  /** The host refuses us: what it accepted until now proves nothing any more. */
  noteRefused(host: Omit<AcceptancePlace, "domain">): void {
    this.#dropExpired();
    this.#refusals.set(hostKeyOf(host), { atMs: this.clock.monotonicMs() });
  }

  get size(): number {
    return this.#acceptances.size + this.#refusals.size;
  }

  /** Entries are in the order of their times: the first that still counts ends the search. */
  #dropExpired(): void {
    const sinceMs = this.clock.monotonicMs() - KEEP_MS;
    for (const entries of [this.#acceptances, this.#refusals] as const)
      for (const [key, { atMs }] of entries) {
        if (atMs > sinceMs) break;
        entries.delete(key);
      }
  }
}

/** The mailbox that every domain with mail has (RFC 5321 §4.5.1). */
export const postmasterOf = (domain: string): string => `postmaster@${domain}`;

/** What a mail host replied to a random recipient of a domain, and how long ago. */
export interface CachedCatchAll {
  readonly state: "yes" | "no";
  readonly ageMs: number;
}

interface CatchAllEntry {
  readonly state: "yes" | "no";
  readonly setAtMs: number;
}

/** Long enough for the next addresses of the same domain, short enough for a mistake not to matter. */
const CATCH_ALL_KEEP_MS = 15 * 60_000;
const CATCH_ALLS_MAX = 50_000;

/**
 * Whether a domain is a catch-all at a mail host, so that not every address costs the server a second recipient. Only
 * what a server replied for certain belongs here. In memory: losing an entry costs one probe.
 */
export class CatchAllCache {
  readonly #entries = new BoundedMap<string, CatchAllEntry>(CATCH_ALLS_MAX);

  constructor(private readonly clock: Clock) {}

  find(domain: string, mailHost: string): CachedCatchAll | null {
    const key = `${domain} ${mailHost}`;
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    const ageMs = this.clock.monotonicMs() - entry.setAtMs;
    if (ageMs < CATCH_ALL_KEEP_MS) return { state: entry.state, ageMs };
    this.#entries.delete(key);
    return null;
  }

  set(domain: string, mailHost: string, state: "yes" | "no"): void {
    this.#entries.set(`${domain} ${mailHost}`, { state, setAtMs: this.clock.monotonicMs() });
  }

  get size(): number {
    return this.#entries.size;
  }
}
