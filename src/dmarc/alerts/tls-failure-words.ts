/** What a result type of a TLS report means (RFC 8460 §4.3), and what to do about it. */
export interface TlsFailureWords {
  /** Fits behind "of 1,203 sessions with mx1.example.com": a clause without a full stop. */
  readonly meaning: string;
  readonly advice: string;
}

const UNKNOWN: TlsFailureWords = {
  meaning: "TLS could not be negotiated",
  advice:
    "The reporter does not say why. Connect to each MX host with STARTTLS (openssl s_client -starttls smtp -connect HOST:25) and look at the certificate and the protocol versions.",
};

const WORDS: Readonly<Record<string, TlsFailureWords>> = {
  "starttls-not-supported": {
    meaning: "the MX host did not offer STARTTLS",
    advice:
      "Turn STARTTLS on at the MX host, and see that no firewall or security appliance in front of port 25 removes it from the EHLO response.",
  },
  "certificate-host-mismatch": {
    meaning: "the certificate is for another name than the MX host",
    advice:
      "Install a certificate that names the MX host as the MX record (and the MTA-STS policy, where there is one) writes it.",
  },
  "certificate-expired": {
    meaning: "the certificate has expired",
    advice: "Renew the certificate of the MX host, and make sure that the mail server has loaded the new one.",
  },
  "certificate-not-trusted": {
    meaning: "the certificate is not trusted",
    advice: "Install a certificate of a public certificate authority, with all intermediate certificates of its chain.",
  },
  "validation-failure": {
    meaning: "TLS validation failed",
    advice:
      "The reporter gives no closer reason. Look at the certificate and its chain at each MX host, and at the protocol versions that it allows.",
  },
  "tlsa-invalid": {
    meaning: "the TLSA record does not match the certificate (DANE)",
    advice:
      "Publish a TLSA record for the certificate that the MX host serves now. When you change certificates, publish the new record before you change and remove the old one after.",
  },
  "dnssec-invalid": {
    meaning: "DNSSEC validation failed (DANE)",
    advice: "Check the signatures and DS records of the zone of the MX host, and renew what has expired.",
  },
  "dane-required": {
    meaning: "the sender requires DANE, and no valid TLSA record was found",
    advice: "Publish TLSA records for the MX hosts in a zone that is signed with DNSSEC.",
  },
  "sts-policy-fetch-error": {
    meaning: "the MTA-STS policy could not be fetched",
    advice:
      "See that https://mta-sts.DOMAIN/.well-known/mta-sts.txt answers with status 200 and without a redirection.",
  },
  "sts-policy-invalid": {
    meaning: "the MTA-STS policy is invalid",
    advice: "Correct the policy file: version, mode, at least one mx line, and max_age, each on a line of its own.",
  },
  "sts-webpki-invalid": {
    meaning: "the web server of the MTA-STS policy has an invalid certificate",
    advice: "Install a certificate of a public certificate authority for mta-sts.DOMAIN.",
  },
};

/** What failures without a result type that RFC 8460 has are counted under. */
export const UNSPECIFIED_FAILURE = "unspecified";

/** The result type where RFC 8460 has it, else `unspecified`: reporters can make up any number of others. */
export const knownResultType = (resultType: string): string => {
  const name = resultType.toLowerCase();
  return Object.hasOwn(WORDS, name) ? name : UNSPECIFIED_FAILURE;
};

/** Plain words for a known result type, about the policy of a domain. */
export const tlsFailureWords = (resultType: string, domain: string): TlsFailureWords => {
  const { meaning, advice } = WORDS[resultType] ?? UNKNOWN;
  return { meaning, advice: advice.replaceAll("DOMAIN", domain) };
};
