import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { HeaderFrom, DkimSignature } from "./dkim-signatures.ts";
import type { PolicyDiscovery } from "../record/discovery.ts";
import type { AlignmentMode, DmarcPolicy } from "../record/record-values.ts";

export type AuthenticationVerdict = "pass" | "fail" | "unknown";

/** Whether a mail is from whom it says, and how that was found out. */
export interface AuthenticationResults {
  readonly authenticity: AuthenticationVerdict;
  /** The domain in `From`, lower-case A-labels; null when there is not exactly one. */
  readonly from: string | null;
  /** Null when it could not be judged: nobody knows who handed the mail in. */
  readonly spf: SpfResult | null;
  readonly dkim: readonly (DkimSignature & { readonly aligned: boolean })[];
  /** Null when there is no `From` to have a policy. */
  readonly dmarc: {
    readonly result: "pass" | "fail" | "none" | "temperror";
    readonly policy: DmarcPolicy | null;
  } | null;
  /** Sentences for people. */
  readonly message: string;
  /** The DNS did not say enough: it may at another time. Only when `unknown`. */
  readonly temporary?: boolean;
}

/** `result` in the words of RFC 8601 §2.7.2; `temperror` when the DNS did not answer all questions and it is no pass. */
export interface SpfResult {
  readonly result: string;
  readonly domain: string;
}

/** What was found out about a mail with an author. */
export interface AuthenticationEvidence {
  readonly domain: string;
  readonly signatures: readonly DkimSignature[];
  /** Signatures beyond what is looked at. */
  readonly leftOut: number;
  readonly spf: SpfResult | null;
  readonly discovery: PolicyDiscovery;
}

/**
 * Concludes (pure): an aligned DKIM or SPF pass makes `pass`. `fail` needs that everything which could have made a pass
 * was answered, and that there is reason to expect one: a DMARC policy, or a signature that does not fit the mail.
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
  if (signature !== undefined) return finding("pass", `The mail is signed by ${signature.domain}, as its From says.`);
  if (spf?.result === "pass" && isAligned(domain, spf.domain, modeOf(discovery, "aspf"))) {
    return finding("pass", `The mail came from a host that may send for ${spf.domain} (SPF), as its From says.`);
  }
  const doubt = findDoubt(evidence);
  if (doubt !== null) return finding("unknown", doubt.message, doubt.temporary);
  const isBroken = signatures.some(({ result }) => result === "fail");
  if (isBroken)
    return finding("fail", `A signature does not fit the mail, and nothing else shows that ${domain} sent it.`);
  if (policy !== null) {
    return finding(
      "fail",
      `${domain} has a DMARC policy, but neither a signature nor SPF shows that it sent the mail.`,
    );
  }
  return finding(
    "unknown",
    `Nothing shows that ${domain} sent the mail, but it has no DMARC policy that says it should.`,
  );
};

/** The finding about a mail that was not judged at all. */
export const notAuthenticated = (
  message: string,
  { authenticity = "unknown", temporary = false }: { authenticity?: "fail" | "unknown"; temporary?: boolean } = {},
): AuthenticationResults => ({ authenticity, from: null, spf: null, dkim: [], dmarc: null, message, temporary });

/** The finding about a mail without exactly one domain in `From`. */
export const withoutAuthor = (author: Exclude<HeaderFrom, { kind: "domain" }>): AuthenticationResults =>
  author.kind === "several"
    ? notAuthenticated("The mail has several From fields or domains in From, so that nobody can vouch for it.", {
        authenticity: "fail",
      })
    : notAuthenticated("The mail has no usable From.");

interface Doubt {
  readonly message: string;
  readonly temporary: boolean;
}

/** What could have made a pass and was not answered. What is of another domain could not. */
const findDoubt = ({ domain, signatures, leftOut, spf, discovery }: AuthenticationEvidence): Doubt | null => {
  const couldAlign = (other: string, tag: "adkim" | "aspf"): boolean =>
    isAligned(domain, other, discovery.kind === "indefinite" ? "r" : modeOf(discovery, tag));
  if (discovery.kind === "indefinite") {
    return { message: `The DNS did not say whether ${domain} has a DMARC policy.`, temporary: true };
  }
  const open = signatures.find((one) => one.result === "temperror" && couldAlign(one.domain, "adkim"));
  if (open !== undefined) {
    return { message: `The DNS did not give the key for the signature of ${open.domain}.`, temporary: true };
  }
  if (spf?.result === "temperror" && couldAlign(spf.domain, "aspf")) {
    return { message: `The DNS did not answer all questions about the SPF of ${spf.domain}.`, temporary: true };
  }
  if (leftOut > 0) return { message: "The mail has more or longer signatures than are looked at.", temporary: false };
  if (spf !== null) return null;
  return {
    message:
      "No signature shows it, and SPF cannot be judged, because it is not known which public host sent the mail.",
    temporary: false,
  };
};

/** Without an answer about the policy only the same domain is certainly aligned, which is the strict mode. */
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

/** RFC 9989 §4.4, with the organisational domain by the public suffix list. */
const isAligned = (from: string, other: string, mode: AlignmentMode): boolean => {
  if (from === other) return true;
  if (mode === "s") return false;
  const organisation = organisationalDomain(from);
  return organisation !== null && organisation === organisationalDomain(other);
};
