/** What a result type of a TLS report means (RFC 8460 §4.3), and what to do about it. */
export interface TlsFailureText {
  /** A clause without a full stop, to follow "84 of 1,203 sessions with mx1.example.com failed:". */
  readonly meaning: string;
  readonly advice: string;
}

const UNKNOWN: TlsFailureText = {
  meaning: "TLS could not be negotiated",
  advice:
    "The report gives no reason. Connect to each MX host with STARTTLS (openssl s_client -starttls smtp -connect HOST:25) and check the certificate and the protocol versions.",
};

const TEXTS: Readonly<Record<string, TlsFailureText>> = {
  "starttls-not-supported": {
    meaning: "the MX host did not offer STARTTLS",
    advice:
      "Enable STARTTLS at the MX host, and make sure that no firewall or security appliance in front of port 25 removes it from the EHLO response.",
  },
  "certificate-host-mismatch": {
    meaning: "the certificate is for another name than the MX host",
    advice:
      "Install a certificate with the name of the MX host, exactly as in the MX record and in the MTA-STS policy, if there is one.",
  },
  "certificate-expired": {
    meaning: "the certificate has expired",
    advice: "Renew the certificate of the MX host, and make sure that the mail server has loaded the new one.",
  },
  "certificate-not-trusted": {
    meaning: "the certificate is not trusted",
    advice:
      "Install a certificate from a public certificate authority, with all intermediate certificates of its chain.",
  },
  "validation-failure": {
    meaning: "TLS validation failed",
    advice:
      "The report gives no detailed reason. Check the certificate, its chain and the protocol versions at each MX host.",
  },
  "tlsa-invalid": {
    meaning: "the TLSA record does not match the certificate (DANE)",
    advice:
      "Publish a TLSA record for the certificate that the MX host serves now. When you replace a certificate, publish the new TLSA record before and remove the old one after.",
  },
  "dnssec-invalid": {
    meaning: "DNSSEC validation failed (DANE)",
    advice: "Check the signatures and DS records of the zone of the MX host, and renew expired signatures.",
  },
  "dane-required": {
    meaning: "the sender requires DANE, and no valid TLSA record was found",
    advice: "Publish TLSA records for the MX hosts in a zone that is signed with DNSSEC.",
  },
  "sts-policy-fetch-error": {
    meaning: "the MTA-STS policy could not be fetched",
    advice: "Serve https://mta-sts.DOMAIN/.well-known/mta-sts.txt with status 200 and without a redirect.",
  },
  "sts-policy-invalid": {
    meaning: "the MTA-STS policy is invalid",
    advice: "Correct the policy file: version, mode, at least one mx line, and max_age, each on a line of its own.",
  },
  "sts-webpki-invalid": {
    meaning: "the web server of the MTA-STS policy has an invalid certificate",
    advice: "Install a certificate from a public certificate authority for mta-sts.DOMAIN.",
  },
};

/** The result type of failures whose own is not one of RFC 8460. */
export const UNSPECIFIED_FAILURE = "unspecified";

/** The result type if RFC 8460 defines it, else `unspecified`: reporters can make up any number of others. */
export const knownResultType = (resultType: string): string => {
  const name = resultType.toLowerCase();
  return Object.hasOwn(TEXTS, name) ? name : UNSPECIFIED_FAILURE;
};

/** What a known result type means for the policy of a domain, and what to do. */
export const tlsFailureText = (resultType: string, domain: string): TlsFailureText => {
  const { meaning, advice } = TEXTS[resultType] ?? UNKNOWN;
  return { meaning, advice: advice.replaceAll("DOMAIN", domain) };
};
