import { err, ok, type Result } from "../../base/errors.ts";
import type { ReportProblem } from "./outcome.ts";
import { type PublishedPolicy, REPORT_LIMITS, type Report, type ReportNotice } from "./report.ts";
import { beginEntry, createRowDraft, finishRow, keepFirst, type ReportRow, type RowDraft } from "./report-row.ts";
import { shortenRow } from "./report-row-size.ts";
import {
  POLICIES,
  type ReportRowProblem,
  readAlignment,
  readDomain,
  readText,
  readTimeMs,
  readWord,
} from "./report-values.ts";
import type { ReportSink } from "./report-xml.ts";

/** A report as its elements come in, and at the end what they make. */
export interface ReportDraft extends ReportSink {
  /** `isLenient`: the text had to be repaired, so that an element may have been closed by guess. */
  finish(isLenient: boolean): Result<Report, ReportProblem>;
}

type Texts = Map<string, string>;

const SECTIONS: ReadonlySet<string> = new Set(["report_metadata", "policy_published", "record"]);

/**
 * Starts an empty draft for at most so many records. Elements that no report format knows are passed over, wherever they
 * stand; records in them are not, unless they are well-formed extras beside the report's own.
 */
export const createReportDraft = (recordsMax: number = REPORT_LIMITS.recordsMax): ReportDraft => {
  const head: Texts = new Map();
  const policy: Texts = new Map();
  const errors: string[] = [];
  const rows: ReportRow[] = [];
  const skipped = new Map<ReportRowProblem, number>();
  let draft = createRowDraft();
  let records = 0;
  let strayRecords = 0;
  let nestedRecords = 0;
  let policies = 0;
  let isShortened = false;

  const open = (path: readonly string[]): ReportProblem | null => {
    const [section, , third, fourth] = path;
    if (path.length === 1 && section === "policy_published") policies += 1;
    // A record inside of what should have ended before it: nothing below could be told apart.
    if (path.length > 1 && path.at(-1) === "record") {
      if (SECTIONS.has(section ?? "")) nestedRecords += 1;
      else strayRecords += 1;
    }
    if (section !== "record") return null;
    if (path.length === 1) {
      draft = createRowDraft();
      records += 1;
      return records > recordsMax ? "too_many_records" : null;
    }
    beginRecordEntry(draft, path.length, third, fourth);
    return null;
  };

  const close = (path: readonly string[], text: string): void => {
    const [section, second, third] = path;
    if (section === "record" && path.length > 1) closeInRecord(draft, path, text);
    else if (section === "record") {
      const row = finishRow(draft);
      if (typeof row === "string") skipped.set(row, (skipped.get(row) ?? 0) + 1);
      else {
        const short = shortenRow(row);
        isShortened ||= short !== row;
        rows.push(short);
      }
    } else if (section === "report_metadata") {
      if (path.length === 2 && second !== undefined) keepFirst(head, second, text);
      if (path.length === 3 && second === "date_range" && third !== undefined) keepFirst(head, third, text);
      if (path.length === 2 && (second === "error" || second === "errors")) keepError(errors, text);
    } else if (section === "policy_published") {
      // Some reporters publish the policy twice; the first is the one they applied.
      if (path.length === 2 && policies === 1 && second !== undefined) keepFirst(policy, second, text);
    } else if (path.length === 1 && section === "version") keepFirst(head, section, text);
  };

  const finish = (isLenient: boolean): Result<Report, ReportProblem> => {
    if (nestedRecords > 0) return err("malformed");
    if (strayRecords > 0 && (isLenient || records === 0)) return err("malformed");
    const published = publishedPolicy(policy);
    if (published === null) return err("domain_missing");
    const period = periodOf(head);
    if (period === null) return err("period_missing");
    const skippedRows = Array.from(skipped, ([reason, count]) => ({ reason, rows: count }));
    const metadata = metadataOf(head);
    const shortened: ReportNotice[] = isShortened ? ["records_shortened"] : [];
    const notices = [...period.notices, ...metadata.notices, ...shortened];
    const { beginMs, endMs } = period;
    return ok({ ...metadata, errors, beginMs, endMs, policy: published, rows, skippedRows, notices });
  };

  return { open, close, finish };
};

const beginRecordEntry = (draft: RowDraft, depth: number, third: string | undefined, fourth: string | undefined) => {
  if (depth === 3 && third === "dkim") beginEntry(draft, "dkim");
  else if (depth === 3 && third === "spf") beginEntry(draft, "spf");
  else if (depth === 4 && fourth === "reason") beginEntry(draft, "reasons");
};

const closeInRecord = (draft: RowDraft, path: readonly string[], text: string): void => {
  const [, second, third, fourth, fifth] = path;
  if (second === "row") {
    if (path.length === 3 && (third === "source_ip" || third === "count")) keepFirst(draft.texts, third, text);
    if (third !== "policy_evaluated") return;
    if (path.length === 4 && fourth !== undefined) keepFirst(draft.texts, fourth, text);
    // Some write the type straight into the reason.
    if (path.length === 4 && fourth === "reason") keepFirst(draft.entry, "type", text);
    if (path.length === 5 && fourth === "reason" && fifth !== undefined) keepFirst(draft.entry, fifth, text);
  } else if (second === "identifiers" || second === "identities") {
    if (path.length === 3 && third !== undefined) keepFirst(draft.texts, third, text);
  } else if (second === "auth_results" && path.length === 4 && fourth !== undefined) {
    if (third === "dkim" || third === "spf") keepFirst(draft.entry, fourth, text);
  }
};

const keepError = (errors: string[], text: string): void => {
  const error = readText(text);
  if (error !== null && errors.length < REPORT_LIMITS.errorsMax)
    errors.push(error.slice(0, REPORT_LIMITS.errorCharactersMax));
};

const periodOf = (head: Texts): { beginMs: number; endMs: number; notices: ReportNotice[] } | null => {
  const begin = readTimeMs(head.get("begin") ?? "");
  const end = readTimeMs(head.get("end") ?? "");
  const either = begin ?? end;
  if (either === null) return null;
  if (begin === null || end === null) return { beginMs: either, endMs: either, notices: ["period_incomplete"] };
  if (begin > end) return { beginMs: end, endMs: begin, notices: ["period_reversed"] };
  return { beginMs: begin, endMs: end, notices: [] };
};

const metadataOf = (head: Texts) => {
  const text = (name: string): string | null => readText(head.get(name) ?? "");
  const email = text("email");
  const orgName = text("org_name");
  const reportId = text("report_id");
  const notices: ReportNotice[] = [
    ...(orgName === null ? (["org_name_missing"] as const) : []),
    ...(reportId === null ? (["report_id_missing"] as const) : []),
  ];
  return {
    version: text("version"),
    orgName: orgName ?? readDomain(email?.includes("@") ? email : ""),
    email,
    extraContactInfo: text("extra_contact_info"),
    reportId,
    generator: text("generator"),
    notices,
  };
};

const PCT_MAX = 100;

const publishedPolicy = (texts: Texts): PublishedPolicy | null => {
  const text = (name: string): string => texts.get(name) ?? "";
  const domain = readDomain(text("domain"));
  if (domain === null) return null;
  const pct = /^\d{1,3}$/.test(text("pct")) ? Number(text("pct")) : null;
  const testing = readWord(text("testing"), ["y", "n", "true", "false"]);
  return {
    domain,
    p: readWord(text("p"), POLICIES),
    sp: readWord(text("sp"), POLICIES),
    np: readWord(text("np"), POLICIES),
    adkim: readAlignment(text("adkim")),
    aspf: readAlignment(text("aspf")),
    pct: pct !== null && pct <= PCT_MAX ? pct : null,
    fo: readText(text("fo")),
    testing: testing === null ? null : testing === "y" || testing === "true",
    discoveryMethod: readWord(text("discovery_method"), ["psl", "treewalk"]),
  };
};
