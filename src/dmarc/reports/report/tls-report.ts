import { z } from "zod";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
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
