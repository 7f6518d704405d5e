import type { Clock } from "../../../foundation/base/clock.ts";
import type { Log } from "../../../foundation/base/log.ts";
import { waitFor, withDeadline } from "../../../foundation/base/wait.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";
import { MESSAGE_LIMITS } from "../../../foundation/mail/message.ts";
import type { DnsResolver } from "../../../foundation/net/dns.ts";
import { createAddressPolicy } from "../../../foundation/net/public-address.ts";
import { QUERIES_MAX, discoverPolicy } from "../../records/record/discovery.ts";
import {
  concludeAuthentication,
  notAuthenticated,
  type AuthenticationResults,
  type SpfResult,
  withoutHeaderFrom,
} from "./authentication-results.ts";
import { asNodeResolver, limitQueries, verifySignatures } from "./dkim-signatures.ts";
import { HEADER_LIMITS, readSignedMail, type HeaderProblem } from "./signed-mail.ts";

/** A mail with its SMTP envelope, as far as that is known: of files and fetched mail nothing, behind a relay the relay's. */
export interface MailToAuthenticate {
  readonly bytes: Uint8Array;
  /** The IP address of the SMTP client. */
  readonly client: string | null;
  readonly helo: string | null;
  /** Null or empty for the null sender. */
  readonly mailFrom: string | null;
  /** When it was received, in milliseconds since 1970; default: now. Signatures that expired later are valid. */
  readonly receivedAtMs?: number;
}

/** Rejects for bugs only. */
export type AuthenticateMail = (mail: MailToAuthenticate) => Promise<AuthenticationResults>;

/** How long one mail may take, in milliseconds. */
export const AUTHENTICATION_DEADLINE_MS = 15_000;
/** DNS queries for one mail. Those for policy and keys are reserved, so that a long SPF record cannot use them up. */
export const AUTHENTICATION_QUERIES_MAX = 60;
const SPF_QUERIES_MAX = AUTHENTICATION_QUERIES_MAX - QUERIES_MAX - HEADER_LIMITS.signaturesMax;
/** RFC 5321 §4.5.3.1. */
const PATH_CHARACTERS_MAX = 320;

export interface MailAuthenticationParts {
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Authenticates a mail as from its header_from domain: by DKIM (RFC 6376), by SPF (RFC 7208) when a public host sent it,
 * and by the DMARC policy of the domain (RFC 9989). DNS failures and exceeded limits make it `unknown`, never `fail`. The
 * verifier is loaded at its first use.
 */
export const createMailAuthentication =
  ({ resolver, clock, log }: MailAuthenticationParts): AuthenticateMail =>
  async (mail) => {
    if (mail.bytes.byteLength > MESSAGE_LIMITS.messageBytesMax) return notAuthenticated("The mail is too large.");
    const receivedAtMs = mail.receivedAtMs ?? clock.nowMs();
    const done = await withDeadline(clock, { timeoutMs: AUTHENTICATION_DEADLINE_MS }, (signal) => {
      const work = authenticate(mail, { resolver, receivedAtMs, signal, log });
      // Work that is aborted at the deadline rejects.
      work.catch(() => undefined);
      return waitFor(clock, work, { signal });
    });
    if (done.ok) return done.value;
    const seconds = AUTHENTICATION_DEADLINE_MS / 1000;
    return notAuthenticated(`Authentication took longer than ${seconds} seconds.`, { temporary: true });
  };

interface Circumstances {
  readonly resolver: DnsResolver;
  readonly receivedAtMs: number;
  readonly signal: AbortSignal;
  readonly log: Log;
}

const HEADER_PROBLEMS: Readonly<Record<HeaderProblem, string>> = {
  header_too_large: "The header of the mail is too large.",
  line_too_long: "A line of the mail is too long.",
};

const authenticate = async (mail: MailToAuthenticate, circumstances: Circumstances): Promise<AuthenticationResults> => {
  const { resolver, receivedAtMs, signal, log } = circumstances;
  const signed = readSignedMail(mail.bytes);
  if (!signed.ok) return notAuthenticated(HEADER_PROBLEMS[signed.error]);
  const { fromFields, leftOut } = signed.value;
  if (fromFields !== 1) return withoutHeaderFrom({ kind: fromFields === 0 ? "none" : "several" });
  const keys = asNodeResolver(limitQueries(resolver, HEADER_LIMITS.signaturesMax, signal));
  const verified = await verifySignatures(signed.value, { resolve: keys.resolve, nowMs: receivedAtMs, signal });
  keys.throwBug();
  if (!verified.ok) {
    // The package is written by others, and reads what strangers send.
    log.warn("mailauth failed on a mail, which counts as not authenticated", { error: verified.error });
    return notAuthenticated("The signatures of the mail could not be read.");
  }
  const { headerFrom, signatures } = verified.value;
  if (headerFrom.kind !== "domain") return withoutHeaderFrom(headerFrom);
  const { domain, localPart } = headerFrom;
  const [discovery, spf] = await Promise.all([
    discoverPolicy(limitQueries(resolver, QUERIES_MAX, signal), domain),
    checkSpf(mail, limitQueries(resolver, SPF_QUERIES_MAX, signal)),
  ]);
  return { ...concludeAuthentication({ domain, signatures, leftOut, spf, discovery }), localPart };
};

const { isAllowed: isPublicAddress } = createAddressPolicy([]);

/** Null when the client is not known, or is not a public host. */
const checkSpf = async (
  { client, helo, mailFrom }: MailToAuthenticate,
  resolver: DnsResolver,
): Promise<SpfResult | null> => {
  if (client === null || !isPublicAddress(client)) return null;
  const sender = mailFrom ?? "";
  const hello = parseDomain(helo ?? "");
  if (sender.length > PATH_CHARACTERS_MAX || (sender === "" && !hello.ok)) return null;
  const { spf } = await import("mailauth/lib/spf/index.js");
  const { resolve, hasFailed, throwBug } = asNodeResolver(resolver);
  const { domain, status } = await spf({
    sender,
    ip: client,
    helo: hello.ok ? hello.value.ascii : "",
    // RFC 7208 §7.3: the name of this host is not disclosed.
    mta: "unknown",
    resolver: resolve,
  });
  throwBug();
  return { result: status.result !== "pass" && hasFailed() ? "temperror" : status.result, domain };
};
