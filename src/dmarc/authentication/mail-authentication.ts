import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { parseDomain } from "../../mail/domain.ts";
import { MESSAGE_LIMITS } from "../../mail/message.ts";
import type { DnsResolver } from "../../net/dns.ts";
import { createAddressPolicy } from "../../net/public-address.ts";
import { verifySignatures } from "./dkim-signatures.ts";
import { asNodeResolver, limitQueries } from "./authentication-dns.ts";
import { HEADER_LIMITS, type HeaderProblem, readSignedMail } from "./signed-mail.ts";
import {
  type AuthenticationResults,
  concludeAuthentication,
  notAuthenticated,
  type SpfResult,
  withoutAuthor,
} from "./authentication-results.ts";
import { discoverPolicy, QUERIES_MAX } from "../record/discovery.ts";
import { waitFor, withDeadline } from "../../base/wait.ts";

/** A mail, and who handed it in as far as that is known: for files nobody, in front of us perhaps our own mail host. */
export interface MailToAuthenticate {
  readonly bytes: Uint8Array;
  readonly client: string | null;
  readonly helo: string | null;
  /** Null or empty for the null sender. */
  readonly mailFrom: string | null;
  /** When it came in, in milliseconds since 1970; now when not said. Signatures that expired later were good. */
  readonly receivedAtMs?: number;
}

/** Never rejects. */
export type AuthenticateMail = (mail: MailToAuthenticate) => Promise<AuthenticationResults>;

/** How long one mail may take, in milliseconds. */
export const AUTHENTICATION_DEADLINE_MS = 15_000;
/** DNS questions about one mail. The policy and the keys have theirs set aside, so that a long SPF record cannot use them up. */
export const AUTHENTICATION_QUERIES_MAX = 60;
const SPF_QUESTIONS_MAX = AUTHENTICATION_QUERIES_MAX - QUERIES_MAX - HEADER_LIMITS.signaturesMax;
/** RFC 5321 §4.5.3.1. */
const PATH_CHARACTERS_MAX = 320;

export interface MailAuthenticationDeps {
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Finds out whether a mail is from the domain in its `From`: by its DKIM signatures (RFC 6376), by SPF (RFC 7208) when a
 * public host handed it in, and by the DMARC policy of the domain (RFC 9989). What the DNS does not answer, and what is
 * beyond the ceilings, makes it `unknown`, never `fail`. Loads the verifier at its first use.
 */
export const createMailAuthentication = ({ resolver, clock, log }: MailAuthenticationDeps): AuthenticateMail => {
  return async (mail) => {
    if (mail.bytes.byteLength > MESSAGE_LIMITS.messageBytesMax)
      return notAuthenticated("The mail is too large to be judged.");
    const receivedAtMs = mail.receivedAtMs ?? clock.nowMs();
    const judge = async (signal: AbortSignal): Promise<AuthenticationResults> => {
      try {
        return await examine(mail, { resolver, receivedAtMs, signal });
      } catch (error) {
        // After the deadline nobody waits for the outcome, and whatever was aborted rejects.
        if (!signal.aborted) log.error("a report mail could not be judged; it is judged again later", { error });
        return notAuthenticated("The mail could not be judged because of a fault in Postwarden.", { temporary: true });
      }
    };
    const waited = await withDeadline(clock, { timeoutMs: AUTHENTICATION_DEADLINE_MS }, (signal) =>
      waitFor(clock, judge(signal), { signal }),
    );
    if (waited.ok) return waited.value;
    return notAuthenticated(`The mail could not be judged within ${AUTHENTICATION_DEADLINE_MS / 1000} seconds.`, {
      temporary: true,
    });
  };
};

interface Circumstances {
  readonly resolver: DnsResolver;
  readonly receivedAtMs: number;
  readonly signal: AbortSignal;
}

const NOT_READ: Readonly<Record<HeaderProblem, string>> = {
  header_too_large: "The header of the mail is too large to be judged.",
  line_too_long: "A line of the mail is too long to be judged.",
};

const examine = async (
  mail: MailToAuthenticate,
  { resolver, receivedAtMs, signal }: Circumstances,
): Promise<AuthenticationResults> => {
  const signed = readSignedMail(mail.bytes);
  if (!signed.ok) return notAuthenticated(NOT_READ[signed.error]);
  if (signed.value.fromFields !== 1) {
    return withoutAuthor({ kind: signed.value.fromFields === 0 ? "none" : "several" });
  }
  const keys = asNodeResolver(limitQueries(resolver, HEADER_LIMITS.signaturesMax, signal));
  const { author, signatures } = await verifySignatures(signed.value, {
    resolve: keys.resolve,
    nowMs: receivedAtMs,
    signal,
  });
  if (author.kind !== "domain") return withoutAuthor(author);
  const [discovery, spf] = await Promise.all([
    discoverPolicy(limitQueries(resolver, QUERIES_MAX, signal), author.domain),
    judgeSpf(mail, limitQueries(resolver, SPF_QUESTIONS_MAX, signal)),
  ]);
  return concludeAuthentication({
    domain: author.domain,
    signatures,
    leftOut: signed.value.leftOut,
    spf,
    discovery,
  });
};

const { isAllowed: isPublicAddress } = createAddressPolicy([]);

/** Null when the host that handed the mail in is not known, or is one of our own network. */
const judgeSpf = async (
  { client, helo, mailFrom }: MailToAuthenticate,
  resolver: DnsResolver,
): Promise<SpfResult | null> => {
  if (client === null || !isPublicAddress(client)) return null;
  const sender = mailFrom ?? "";
  const hello = parseDomain(helo ?? "");
  if (sender.length > PATH_CHARACTERS_MAX || (sender === "" && !hello.ok)) return null;
  const { spf } = await import("mailauth/lib/spf/index.js");
  const { resolve, hasFailed } = asNodeResolver(resolver);
  const { domain, status } = await spf({
    sender,
    ip: client,
    helo: hello.ok ? hello.value.ascii : "",
    // RFC 7208 §7.3: the name of this host is nobody's business.
    mta: "unknown",
    resolver: resolve,
  });
  return { result: status.result !== "pass" && hasFailed() ? "temperror" : status.result, domain };
};
