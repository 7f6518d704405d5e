import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { parseAddress } from "../../foundation/mail/address.ts";
import type { Evidence, ProbeFinding } from "../evidence.ts";
import { inspectReply, POLICY_MARK } from "../replies.ts";

/** Who reported a bounce. */
export type BounceSource = "postfix" | "ses" | "sendgrid" | "mailgun" | "postmark" | "mailbox";

/**
 * `hard`: the address does not exist. `soft`: this message did not arrive, which says nothing about the address: a full
 * mailbox, a policy, a server that was away, or a status that nobody gave.
 */
export type BounceKind = "hard" | "soft";

/** One message that did not arrive, as its reporter tells it. */
export interface Bounce {
  readonly source: BounceSource;
  /** The same event has the same text whenever it is reported. */
  readonly eventKey: string;
  /** The recipient, normalized. */
  readonly email: string;
  readonly kind: BounceKind;
  /** The enhanced status code, such as `5.1.1` (RFC 3463); null when the reporter gave none. */
  readonly status: string | null;
  /** What the server said, in at most 500 characters. */
  readonly diagnostic: string | null;
  /** Never later than the time at which it was read. */
  readonly bouncedAtMs: number;
}

/** What became of one event of a request: a bounce, an event of another kind, or text that could not be read. */
export type EventReading =
  | { readonly outcome: "bounce"; readonly bounce: Bounce }
  | { readonly outcome: "ignored"; readonly reason: string }
  | { readonly outcome: "unreadable"; readonly reason: string };

/** An event that is not read yet: to judge the words of a reply takes time, which a thousand at once would take from others. */
export type UnreadEvent = () => EventReading;

export const ignored = (reason: string): EventReading => ({ outcome: "ignored", reason });
export const unreadable = (reason: string): EventReading => ({ outcome: "unreadable", reason });

const DIAGNOSTIC_CHARACTERS_MAX = 500;
const EVENT_ID_CHARACTERS_MAX = 500;

/**
 * The statuses that say that the mailbox does not exist: bad mailbox and bad syntax of the destination (RFC 3463 section 3.2), and a
 * domain whose null MX says that it takes no mail (RFC 7505 section 4.2).
 */
const OF_MAILBOX: ReadonlySet<string> = new Set(["5.1.1", "5.1.3", "5.1.10"]);
/** Bad system of the destination (RFC 3463 section 3.2). */
const BAD_HOST = "5.1.2";

/** "Unable to route" (RFC 3463 section 3.5) is hard only where the name is said not to exist; else routing failed. */
const UNROUTABLE = "5.4.4";
const NO_SUCH_HOST =
  /\b(?:host not found|host or domain name not found|no such (?:host|domain)|nxdomain|domain (?:does not exist|not found))\b/i;
const TRY_AGAIN = /\btry again\b/i;

/** An enhanced status code that follows the code of the reply, as in `550 5.1.1 …` or `550-5.1.1 …` (RFC 2034). */
const IN_REPLY = /(?:^|[^\d.])[245]\d\d[ -]([245]\.\d{1,3}\.\d{1,3})(?![\d.])/;
const STATUS = /^[245]\.\d{1,3}\.\d{1,3}$/;

/** `5.0.0`: the reporter knew no more than the class (RFC 3463 section 3.1). */
const IS_VAGUE = /\.0\.0$/;

/** The status that the texts give: each is an enhanced status code, or a reply with one. The first that says more than its class. */
export const findStatus = (...texts: ReadonlyArray<string | null | undefined>): string | null => {
  const found = texts.flatMap((text) => {
    const trimmed = text?.trim().slice(0, DIAGNOSTIC_CHARACTERS_MAX) ?? "";
    const status = STATUS.test(trimmed) ? trimmed : IN_REPLY.exec(trimmed)?.[1];
    return status === undefined ? [] : [status];
  });
  return found.find((status) => !IS_VAGUE.test(status)) ?? found[0] ?? null;
};

/** Where the reply of a server begins in what a reporter quotes: `smtp; 550 …`, `host mx.example said: 550-…`. */
const REPLY = /(?:^|[\s;:])([245]\d\d[ -].*)$/s;

/** The reply of the server in what a reporter quotes; null where it quotes none. */
export const replyIn = (diagnostic: string): string | null => REPLY.exec(diagnostic)?.[1] ?? null;

/** Whether a text, where there is one, reads as a server's reply does that denies a mailbox: many say `5.1.1` to a sender that they block. */
const deniesMailbox = (
  status: string,
  { recipient, diagnostic }: Pick<ReportedBounce, "recipient" | "diagnostic">,
): boolean => {
  if (diagnostic === null) return true;
  if (diagnostic.includes(POLICY_MARK)) return false;
  const reply = replyIn(diagnostic) ?? `550 ${status} ${diagnostic}`;
  return inspectReply(reply.replaceAll(/[\r\n]+/g, " "), "rcpt", { recipient }).reading === "mailbox_not_found";
};

/** The kind that a status has, with the words beside it. No status is no proof: unknown is not no. */
const kindOf = (status: string | null, reported: Pick<ReportedBounce, "recipient" | "diagnostic">): BounceKind => {
  if (status === null) return "soft";
  const text = reported.diagnostic ?? "";
  if (OF_MAILBOX.has(status)) return deniesMailbox(status, reported) ? "hard" : "soft";
  const isNoHost = status === UNROUTABLE && NO_SUCH_HOST.test(text) && !TRY_AGAIN.test(text);
  return status === BAD_HOST || isNoHost ? "hard" : "soft";
};

/** What the reader of a format found. */
export interface ReportedBounce extends Pick<Bounce, "source" | "status"> {
  /** What tells the event from others of its source. */
  readonly eventId: string;
  readonly recipient: string;
  readonly diagnostic: string | null;
  /** Milliseconds since 1970; NaN when the event does not say when it was. */
  readonly atMs: number;
  /** The reporter's own word counts less than the status: it may soften a bounce, never harden it. */
  readonly isTemporary?: boolean;
}

const readRecipient = (text: string): Result<string, string> => {
  const address = parseAddress(text.trim());
  return address.ok ? ok(address.value.normalized) : err("the recipient is not an address");
};

/** The bounce that an event reports. A time that is missing or in the future is the time of reading. */
export const readBounce = (reported: ReportedBounce, nowMs: number): EventReading => {
  const { source, eventId, status } = reported;
  if (eventId.length > EVENT_ID_CHARACTERS_MAX) return unreadable("the id of the event is too long");
  const email = readRecipient(reported.recipient);
  if (!email.ok) return unreadable(email.error);
  const diagnostic = reported.diagnostic?.trim().slice(0, DIAGNOSTIC_CHARACTERS_MAX) ?? "";
  const kind =
    reported.isTemporary === true
      ? "soft"
      : kindOf(status, { recipient: email.value, diagnostic: diagnostic === "" ? null : diagnostic });
  return {
    outcome: "bounce",
    bounce: {
      source,
      eventKey: `${source}:${eventId}:${email.value}`,
      email: email.value,
      kind,
      status,
      diagnostic: diagnostic === "" ? null : diagnostic,
      bouncedAtMs: reported.atMs >= 0 && reported.atMs <= nowMs ? Math.floor(reported.atMs) : nowMs,
    },
  };
};

/** Whether the server showed in this verification that the mailbox exists: no report of others counts more. */
const isProven = ({ domain }: Evidence, finding: ProbeFinding): boolean =>
  domain?.unverifiable_provider == null &&
  (finding.reading === "mailbox_full" || (finding.reading === "accepted" && finding.catch_all === "no"));

/** How a sentence names a source that is not a name. */
const REPORTERS: Readonly<Record<string, string>> = { mailbox: "a mail in the bounce mailbox" };

/**
 * What a reported hard bounce decides: that the mailbox does not exist, where the mail host of today neither proves nor denies
 * it. Null when there is no bounce, or when the host proves the mailbox.
 */
export const bounceDecision = (evidence: Evidence, finding: ProbeFinding | null) => {
  const { bounce } = evidence;
  if (bounce === null || (finding !== null && isProven(evidence, finding))) return null;
  const said = bounce.diagnostic === null ? "" : `: "${bounce.diagnostic}"`;
  const because = `A message to the address bounced on ${bounce.bounced_at.slice(0, 10)} with ${bounce.status}, as ${REPORTERS[bounce.source] ?? bounce.source} reported${said}.`;
  return { subStatus: "mailbox_not_found" as const, because };
};
