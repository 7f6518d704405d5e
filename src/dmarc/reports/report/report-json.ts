import { z } from "zod";
import type { PublishedPolicy, Report } from "./report.ts";
import type { ReportRow } from "./report-row.ts";
import { AUTH_RESULTS, OVERRIDES, POLICIES } from "./report-values.ts";
import type { TlsReport } from "./tls-report.ts";

/** What the column `body` of a report holds. */
export type ReportBody = Pick<
  Report,
  "version" | "extraContactInfo" | "generator" | "errors" | "notices" | "skippedRows"
>;

/** What the column `body` of a record holds. */
export type RecordBody = Pick<ReportRow, "envelopeFrom" | "envelopeTo" | "reasons" | "dkimResults" | "spfResults">;

/** What the column `body` of a TLS report holds. */
export type TlsReportBody = Pick<TlsReport, "contact" | "policies">;

const text = z.string().nullable().default(null);
const count = z.number();
const result = z.enum([...AUTH_RESULTS, "unknown"]);
const policyKeyword = z.enum(POLICIES).nullable().default(null);
const alignment = z.enum(["r", "s"]).nullable().default(null);

const recordBodySchema: z.ZodType<RecordBody> = z.object({
  envelopeFrom: text,
  envelopeTo: text,
  reasons: z.array(z.object({ type: z.enum(OVERRIDES), comment: text })),
  dkimResults: z.array(z.object({ domain: text, selector: text, result, humanResult: text })),
  spfResults: z.array(
    z.object({ domain: text, scope: z.enum(["mfrom", "helo"]).nullable().default(null), result, humanResult: text }),
  ),
});

const reportBodySchema: z.ZodType<ReportBody> = z.object({
  version: text,
  extraContactInfo: text,
  generator: text,
  errors: z.array(z.string()),
  notices: z.array(z.custom<Report["notices"][number]>((notice) => typeof notice === "string")),
  skippedRows: z.array(
    z.object({
      reason: z.custom<Report["skippedRows"][number]["reason"]>((reason) => typeof reason === "string"),
      rows: count,
    }),
  ),
});

const publishedPolicySchema: z.ZodType<PublishedPolicy> = z.object({
  domain: z.string(),
  p: policyKeyword,
  sp: policyKeyword,
  np: policyKeyword,
  adkim: alignment,
  aspf: alignment,
  pct: count.nullable().default(null),
  fo: text,
  testing: z.boolean().nullable().default(null),
  discoveryMethod: z.enum(["psl", "treewalk"]).nullable().default(null),
});

const tlsReportBodySchema: z.ZodType<TlsReportBody> = z.object({
  contact: text,
  policies: z.array(
    z.object({
      domain: text,
      policyType: text,
      successfulSessions: count,
      failedSessions: count,
      failures: z.array(z.object({ resultType: z.string(), sessions: count, mxHost: text })),
    }),
  ),
});

/** Parses a stored JSON column. Throws when the stored text is not what this or an earlier version wrote. */
export const parseRecordBody = (body: string): RecordBody => recordBodySchema.parse(JSON.parse(body));
export const parseReportBody = (body: string): ReportBody => reportBodySchema.parse(JSON.parse(body));
export const parsePublishedPolicy = (policy: string): PublishedPolicy =>
  publishedPolicySchema.parse(JSON.parse(policy));
export const parseTlsReportBody = (body: string): TlsReportBody => tlsReportBodySchema.parse(JSON.parse(body));
