import { isSameOrganisation } from "../../../foundation/mail/organisational-domain.ts";
import type { HeaderFrom, DkimSignature } from "./dkim-signatures.ts";
import type { PolicyDiscovery } from "../../records/record/discovery.ts";
import type { AlignmentMode, DmarcPolicy } from "../../records/record/record-values.ts";

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

interface Doubt {
  readonly message: string;
  readonly temporary: boolean;
}

/** A check that could have passed and is not definite. Those of other domains could not. */
const findDoubt = ({ domain, signatures, leftOut, spf, discovery }: AuthenticationEvidence): Doubt | null => {
  const couldAlign = (other: string, tag: "adkim" | "aspf"): boolean =>
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

const policyOf = (discovery: PolicyDiscovery): DmarcPolicy | null =>
  discovery.kind === "own" || discovery.kind === "inherited" ? discovery.policy.p : null;

const dmarcResult = (
  { kind }: PolicyDiscovery,
  authenticity: AuthenticationVerdict,
): "pass" | "fail" | "none" | "temperror" => {
  if (kind === "none") return "none";
  if (authenticity !== "unknown") return authenticity;
  return "temperror";
};

/** RFC 9989 §4.4, with the organizational domain by the public suffix list. */
const isAligned = (from: string, other: string, mode: AlignmentMode): boolean =>
  mode === "s" ? from === other : isSameOrganisation(from, other);
