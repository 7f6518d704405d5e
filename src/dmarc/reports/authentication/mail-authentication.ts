import type { Clock } from "../../../foundation/base/clock.ts";
import type { Log } from "../../../foundation/base/log.ts";
import { waitFor, withDeadline } from "../../../foundation/base/wait.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";
import { MESSAGE_LIMITS } from "../../../foundation/mail/message.ts";
import type { DnsResolver } from "../../../foundation/net/dns.ts";
import { createAddressPolicy } from "../../../foundation/net/public-address.ts";
import { QUERIES_MAX, discoverPolicy, type PolicyDiscovery } from "../../records/record/discovery.ts";
import {
  asNodeResolver,
  limitQueries,
  verifySignatures,
  type HeaderFrom,
  type DkimSignature,
  HEADER_LIMITS,
  readSignedMail,
  type HeaderProblem,
} from "../../../foundation/dkim/signed-mail.ts";
import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import type { AlignmentMode, DmarcPolicy } from "../../records/record/record-values.ts";

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

/**
 * Authenticates a mail as from its header_from domain: by DKIM (RFC 6376), by SPF (RFC 7208) when a public host sent it,
 * and by the DMARC policy of the domain (RFC 9989). DNS failures and exceeded limits make it `unknown`, never `fail`. The
 * verifier is loaded at its first use.
 */
export const createMailAuthentication =
  ({ resolver, clock, log }: { resolver: DnsResolver; clock: Clock; log: Log }): AuthenticateMail =>
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

const HEADER_PROBLEMS: Readonly<Record<HeaderProblem, string>> = {
  header_too_large: "The header of the mail is too large.",
  line_too_long: "A line of the mail is too long.",
};

const authenticate = async (
  mail: MailToAuthenticate,
  circumstances: {
    resolver: DnsResolver;
    receivedAtMs: number;
    signal: AbortSignal;
    log: Log;
  },
): Promise<AuthenticationResults> => {
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

export type AuthenticationVerdict = "pass" | "fail" | "unknown";

/** Whether a mail is authenticated as its header_from domain, and by what. */
export interface AuthenticationResults {
  readonly authenticity: AuthenticationVerdict;
  /** The header_from domain in lower-case A-labels; null when there is not exactly one. */
  readonly from: string | null;
  /** The local part of the one address in From, in lower case; null or absent when it is not known. */
  readonly localPart?: string | null;
  /** Null when SPF could not be checked, because the client is not known. */
  readonly spf: SpfResult | null;
  readonly dkim: readonly (DkimSignature & { readonly aligned: boolean })[];
  /** Null without a header_from domain. */
  readonly dmarc: {
    readonly result: "pass" | "fail" | "none" | "temperror";
    readonly policy: DmarcPolicy | null;
  } | null;
  /** The result in a sentence. */
  readonly message: string;
  /** A DNS failure: another attempt may succeed. Only with `unknown`. */
  readonly temporary?: boolean;
}

/** `result` is one of RFC 8601 §2.7.2; `temperror` when a DNS query failed and it is not a pass. */
export interface SpfResult {
  readonly result: string;
  readonly domain: string;
}

/** The evidence about a mail with a header_from domain. */
export interface AuthenticationEvidence {
  readonly domain: string;
  readonly signatures: readonly DkimSignature[];
  /** Signatures beyond the limits, which were not verified. */
  readonly leftOut: number;
  readonly spf: SpfResult | null;
  readonly discovery: PolicyDiscovery;
}

/**
 * `pass`: an aligned DKIM or SPF pass. `fail`: every check that could have passed is definite, and a pass was to be expected:
 * there is a DMARC policy, or a signature that does not verify. Otherwise `unknown`. Pure.
 */
export const concludeAuthentication = (evidence: AuthenticationEvidence): AuthenticationResults => {
  const { domain, signatures, spf, discovery } = evidence;
  const dkim = signatures.map((signature) => ({
    ...signature,
    aligned: isAligned(domain, signature.domain, modeOf(discovery, "adkim")),
  }));
  const policy = policyOf(discovery);
  const finding = (authenticity: AuthenticationVerdict, message: string, temporary = false): AuthenticationResults => ({
    authenticity,
    from: domain,
    spf,
    dkim,
    dmarc: { result: dmarcResult(discovery, authenticity), policy },
    message,
    temporary,
  });

  const signature = dkim.find(({ result, aligned }) => result === "pass" && aligned);
  if (signature !== undefined)
    return finding("pass", `DKIM passed for ${signature.domain}, aligned with the From domain.`);
  if (spf?.result === "pass" && isAligned(domain, spf.domain, modeOf(discovery, "aspf"))) {
    return finding("pass", `SPF passed for ${spf.domain}, aligned with the From domain.`);
  }
  const doubt = findDoubt(evidence);
  if (doubt !== null) return finding("unknown", doubt.message, doubt.temporary);
  const isBroken = signatures.some(({ result }) => result === "fail");
  if (isBroken) return finding("fail", `A DKIM signature does not verify, and no other check passed for ${domain}.`);
  if (policy !== null) {
    return finding("fail", `${domain} has a DMARC policy, but neither DKIM nor SPF passed.`);
  }
  return finding("unknown", `Neither DKIM nor SPF passed, but ${domain} has no DMARC policy.`);
};

/** The results for a mail that could not be checked. */
export const notAuthenticated = (
  message: string,
  { authenticity = "unknown", temporary = false }: { authenticity?: "fail" | "unknown"; temporary?: boolean } = {},
): AuthenticationResults => ({ authenticity, from: null, spf: null, dkim: [], dmarc: null, message, temporary });

/** The results for a mail without exactly one header_from domain. */
export const withoutHeaderFrom = (headerFrom: Exclude<HeaderFrom, { kind: "domain" }>): AuthenticationResults =>
  headerFrom.kind === "several"
    ? notAuthenticated("The mail has several From fields or From domains.", {
        authenticity: "fail",
      })
    : notAuthenticated("The mail has no valid From field.");

/** A check that could have passed and is not definite. Those of other domains could not. */
const findDoubt = ({ domain, signatures, leftOut, spf, discovery }: AuthenticationEvidence) => {
  const couldAlign = (other: string, tag: "adkim" | "aspf") =>
    isAligned(domain, other, discovery.kind === "indefinite" ? "r" : modeOf(discovery, tag));
  if (discovery.kind === "indefinite") {
    return { message: `The DNS query for the DMARC policy of ${domain} failed.`, temporary: true };
  }
  const open = signatures.find((one) => one.result === "temperror" && couldAlign(one.domain, "adkim"));
  if (open !== undefined) {
    return { message: `The DNS query for the DKIM key of ${open.domain} failed.`, temporary: true };
  }
  if (spf?.result === "temperror" && couldAlign(spf.domain, "aspf")) {
    return { message: `A DNS query for the SPF record of ${spf.domain} failed.`, temporary: true };
  }
  if (leftOut > 0) return { message: "The mail has too many or too long DKIM signatures.", temporary: false };
  if (spf !== null) return null;
  return {
    message: "DKIM did not pass, and SPF cannot be checked, because the host that sent the mail is not known.",
    temporary: false,
  };
};

/** While the policy is not known, only the same domain is certainly aligned: the strict mode. */
const modeOf = (discovery: PolicyDiscovery, tag: "adkim" | "aspf"): AlignmentMode => {
  if (discovery.kind === "indefinite") return "s";
  return discovery.kind === "none" ? "r" : discovery.policy[tag];
};

const policyOf = (discovery: PolicyDiscovery) =>
  discovery.kind === "own" || discovery.kind === "inherited" ? discovery.policy.p : null;

const dmarcResult = ({ kind }: PolicyDiscovery, authenticity: AuthenticationVerdict) => {
  if (kind === "none") return "none";
  if (authenticity !== "unknown") return authenticity;
  return "temperror";
};

/** RFC 9989 §4.4, with the organizational domain by the public suffix list. */
const isAligned = (from: string, other: string, mode: AlignmentMode) =>
  mode === "s" ? from === other : isSameOrganisation(from, other);
