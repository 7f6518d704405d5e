import { z } from "zod";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { sumBy, sumOf } from "../../../foundation/base/sums.ts";
import { readDomain, readText, readTimeMs } from "./report-values.ts";

/** Sessions that failed in the same way (RFC 8460 §4.4). */
export interface TlsFailureDetail {
  readonly resultType: string;
  readonly sessions: number;
  /** `receiving-mx-hostname` in lower case; null when it is not stated, absent in reports stored by older versions. */
  readonly mxHost?: string | null;
}

/** The TLS sessions of mail to one domain (RFC 8460 §4.3). */
export interface TlsPolicyResult {
  readonly domain: string | null;
  /** `sts`, `tlsa`, `no-policy-found`, or what the reporter wrote. */
  readonly policyType: string | null;
  readonly successfulSessions: number;
  readonly failedSessions: number;
  /** Failures by result type, as far as the report states them. */
  readonly failures: readonly TlsFailureDetail[];
}

/** A TLS report (RFC 8460), reduced to what is used. */
export interface TlsReport {
  readonly orgName: string | null;
  readonly reportId: string | null;
  readonly contact: string | null;
  readonly beginMs: number | null;
  readonly endMs: number | null;
  readonly policies: readonly TlsPolicyResult[];
}

/** Limits of one report; a larger one is rejected, longer lists are cut. `failuresMax` is for all policies together. */
export const TLS_REPORT_LIMITS = {
  bytesMax: 2 * 1024 * 1024,
  policiesMax: 200,
  failuresMax: 500,
  /** Of each text; result types are words of RFC 8460 §4.3. */
  textCharactersMax: 255,
} as const;

const text = z
  .string()
  .transform((value) => value.slice(0, TLS_REPORT_LIMITS.textCharactersMax))
  .nullish()
  .catch(null);
const sessions = z.coerce.number().int().nonnegative().catch(0);

const policySchema = z.object({
  policy: z.object({ "policy-type": text, "policy-domain": text }).catch({}),
  summary: z
    .object({ "total-successful-session-count": sessions, "total-failure-session-count": sessions })
    .catch({ "total-successful-session-count": 0, "total-failure-session-count": 0 }),
  "failure-details": z
    .array(z.object({ "result-type": text, "failed-session-count": sessions, "receiving-mx-hostname": text }))
    .nullish()
    .catch(null),
});

const reportSchema = z.object({
  "organization-name": text,
  "report-id": text,
  "contact-info": text,
  "date-range": z.object({ "start-datetime": text, "end-datetime": text }).catch({}),
  policies: z.array(policySchema),
});

/** `not_tls_report`: JSON, but of something else. */
export type TlsReportProblem = "damaged" | "not_tls_report";

/** Parses a TLS report from its JSON; tolerates everything but the absence of `policies`. Never throws. */
export const readTlsReport = (bytes: Uint8Array): Result<TlsReport, TlsReportProblem> => {
  if (bytes.byteLength > TLS_REPORT_LIMITS.bytesMax) return err("damaged");
  const json = parseJson(new TextDecoder().decode(bytes));
  if (!json.ok) return json;
  const parsed = reportSchema.safeParse(withCutLists(json.value));
  if (!parsed.success) return err("not_tls_report");
  const report = parsed.data;
  return ok({
    orgName: readText(report["organization-name"] ?? ""),
    reportId: readText(report["report-id"] ?? ""),
    contact: readText(report["contact-info"] ?? ""),
    beginMs: readTimeMs(report["date-range"]["start-datetime"] ?? ""),
    endMs: readTimeMs(report["date-range"]["end-datetime"] ?? ""),
    policies: report.policies.map(policyResult),
  });
};

/** The JSON with its lists cut before validation, which costs a hundred times as much as parsing. */
const withCutLists = (json: unknown): unknown => {
  if (!isObject(json) || !Array.isArray(json.policies)) return json;
  let failuresLeft: number = TLS_REPORT_LIMITS.failuresMax;
  const policies = json.policies.slice(0, TLS_REPORT_LIMITS.policiesMax).map((policy: unknown) => {
    const details = isObject(policy) ? policy["failure-details"] : null;
    if (!isObject(policy) || !Array.isArray(details)) return policy;
    const kept: unknown[] = details.slice(0, failuresLeft);
    failuresLeft -= kept.length;
    return { ...policy, "failure-details": kept };
  });
  return { ...json, policies };
};

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const parseJson = (source: string): Result<unknown, TlsReportProblem> => {
  try {
    return ok(JSON.parse(source));
  } catch (error) {
    // SyntaxError for invalid JSON, RangeError for unlimited nesting: the sender's fault either way.
    if (error instanceof SyntaxError || error instanceof RangeError) return err("damaged");
    throw error;
  }
};

const policyResult = ({
  policy,
  summary,
  "failure-details": details,
}: z.infer<typeof policySchema>): TlsPolicyResult => ({
  domain: readDomain(policy["policy-domain"] ?? ""),
  policyType: readText(policy["policy-type"] ?? ""),
  successfulSessions: summary["total-successful-session-count"],
  failedSessions: summary["total-failure-session-count"],
  failures: (details ?? []).map((detail) => ({
    resultType: readText(detail["result-type"] ?? "") ?? "unknown",
    sessions: detail["failed-session-count"],
    mxHost: readDomain(detail["receiving-mx-hostname"] ?? ""),
  })),
});

/** What a result type of a TLS report means (RFC 8460 §4.3), and what to do about it. */
interface TlsFailureText {
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

/** The day that most of a report is about. A reporter cannot move it behind the day of its arrival. */
export const dayOfTlsReport = ({
  beginMs,
  endMs,
  receivedAtMs,
}: Pick<TlsReport, "beginMs" | "endMs"> & { receivedAtMs: number }): number =>
  dayOfTime(beginMs === null ? receivedAtMs : Math.min((beginMs + (endMs ?? beginMs)) / 2, receivedAtMs));

const detailedSessions = ({ failures }: TlsPolicyResult) => sumOf(failures, "sessions");

/** The sessions under policies; a reporter may give details of more failed ones than it counts. */
export const sumTlsSessions = (policies: readonly TlsPolicyResult[]) => ({
  successful: sumOf(policies, "successfulSessions"),
  failed: sumBy(policies, (policy) => Math.max(policy.failedSessions, detailedSessions(policy))),
});

/** Failed sessions by the result types of RFC 8460; those without details are unspecified. */
export const knownTlsFailures = (policy: TlsPolicyResult): TlsPolicyResult["failures"] => {
  const rest = policy.failedSessions - detailedSessions(policy);
  const known = policy.failures.map((each) => ({ ...each, resultType: knownResultType(each.resultType) }));
  return rest > 0 ? [...known, { resultType: UNSPECIFIED_FAILURE, sessions: rest, mxHost: null }] : known;
};
