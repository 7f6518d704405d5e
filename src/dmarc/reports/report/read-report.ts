import { POLICIES } from "../../records/record/record-values.ts";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import {
  type ReportFault,
  type ReportProblem,
  REPORT_LIMITS,
  type Report,
  type ReportNotice,
  type PublishedPolicy,
} from "./report.ts";
import { walkReport, type ReportSink } from "./report-xml.ts";
import { REPAIR_LIMITS, REPORT_ELEMENTS } from "./text-pre-pass.ts";
import {
  beginEntry,
  createRowDraft,
  finishRow,
  keepEntryText,
  keepText,
  type ReportRow,
  type RowDraft,
  shortenRow,
} from "./report-row.ts";
import { type ReportRowProblem, readAlignment, readDomain, readText, readTimeMs, readWord } from "./report-values.ts";

/** The remaining work that one mail, with everything in it, may cause. Used up as its reports are parsed. */
export interface ReadingBudget {
  recordsLeft: number;
  /** Characters of texts to be repaired, which takes several passes. */
  repairCharactersLeft: number;
}

/** Enough for one report of the largest size, or several smaller ones. */
export const createReadingBudget = (): ReadingBudget => ({
  recordsLeft: REPORT_LIMITS.recordsMax,
  repairCharactersLeft: 2 * REPAIR_LIMITS.charactersMax,
});

/**
 * Parses an aggregate report from the bytes of its XML.
 *
 * Values are parsed as tolerantly as real reports require (`report-values.ts`). A report without policy domain or period, or
 * of which a part is missing, is rejected: counts must be correct. Rows without a valid source IP or count are left out and
 * counted by reason. Never throws; memory is linear in the input, which the caller limits.
 */
export const readReport = async (
  bytes: Uint8Array,
  budget: ReadingBudget = createReadingBudget(),
): Promise<Result<Report, ReportFault>> => {
  const recordsMax = Math.min(REPORT_LIMITS.recordsMax, budget.recordsLeft);
  const walked = await walkReport(bytes, () => new ReportDraft(recordsMax), budget);
  if (!walked.ok) return walked;
  const { sink, wasRepaired } = walked.value;
  const report = sink.finish(wasRepaired);
  if (!report.ok) return err({ problem: report.error, line: null });
  budget.recordsLeft -= report.value.rows.length;
  const notices: ReportNotice[] = [...(wasRepaired ? (["text_repaired"] as const) : []), ...report.value.notices];
  return ok({ ...report.value, notices });
};

type Texts = Map<string, string>;

const SECTIONS: ReadonlySet<string> = new Set(["report_metadata", "policy_published", "record"]);

/**
 * Builds a report from its elements. Elements that no report format has are ignored wherever they are; records in them are
 * not, unless they are well-formed additions beside the report's own.
 */
class ReportDraft implements ReportSink {
  readonly #recordsMax: number;
  readonly #head: Texts = new Map();
  readonly #policy: Texts = new Map();
  readonly #errors: string[] = [];
  readonly #rows: ReportRow[] = [];
  readonly #skipped = new Map<ReportRowProblem, number>();
  #row = createRowDraft();
  #records = 0;
  #strayRecords = 0;
  #nestedRecords = 0;
  #policies = 0;
  #isShortened: boolean = false;

  constructor(recordsMax: number = REPORT_LIMITS.recordsMax) {
    this.#recordsMax = recordsMax;
  }

  open(path: readonly string[]): ReportProblem | null {
    const [section, , third, fourth] = path;
    if (path.length === 1 && section === "policy_published") this.#policies += 1;
    // A record within an element that should have ended before it: the parts below cannot be told apart.
    if (path.length > 1 && path.at(-1) === "record") {
      if (SECTIONS.has(section ?? "")) this.#nestedRecords += 1;
      else this.#strayRecords += 1;
    }
    if (section !== "record") return null;
    if (path.length === 1) {
      this.#row = createRowDraft();
      this.#records += 1;
      return this.#records > this.#recordsMax ? "too_many_records" : null;
    }
    beginRecordEntry(this.#row, path.length, third, fourth);
    return null;
  }

  close(path: readonly string[], text: string): void {
    const [section, second, third] = path;
    const depth = path.length;
    if (section === "record") {
      if (depth > 1) closeInRecord(this.#row, path, text);
      else this.#finishRow();
    } else if (section === "report_metadata") {
      if (depth === 2 && second !== undefined) keepFirst(this.#head, second, text);
      if (depth === 3 && second === "date_range" && third !== undefined) keepFirst(this.#head, third, text);
      if (depth === 2 && (second === "error" || second === "errors")) keepError(this.#errors, text);
    } else if (section === "policy_published") {
      // Some reporters write the policy twice; the first one is the one applied.
      if (depth === 2 && this.#policies === 1 && second !== undefined) keepFirst(this.#policy, second, text);
    } else if (depth === 1 && section === "version") keepFirst(this.#head, section, text);
  }

  /** `isLenient`: the text was repaired, so that an element may have been closed by a guess. */
  finish(isLenient: boolean): Result<Report, ReportProblem> {
    if (this.#nestedRecords > 0) return err("malformed");
    if (this.#strayRecords > 0 && (isLenient || this.#records === 0)) return err("malformed");
    const policy = publishedPolicy(this.#policy);
    if (policy === null) return err("domain_missing");
    const period = periodOf(this.#head);
    if (period === null) return err("period_missing");
    const metadata = metadataOf(this.#head);
    const shortened: ReportNotice[] = this.#isShortened ? ["records_shortened"] : [];
    return ok({
      ...metadata,
      errors: this.#errors,
      beginMs: period.beginMs,
      endMs: period.endMs,
      policy,
      rows: this.#rows,
      skippedRows: Array.from(this.#skipped, ([reason, rows]) => ({ reason, rows })),
      notices: [...period.notices, ...metadata.notices, ...shortened],
    });
  }

  #finishRow() {
    const row = finishRow(this.#row);
    if (typeof row === "string") {
      this.#skipped.set(row, (this.#skipped.get(row) ?? 0) + 1);
      return;
    }
    const short = shortenRow(row);
    this.#isShortened ||= short !== row;
    this.#rows.push(short);
  }
}

const beginRecordEntry = (draft: RowDraft, depth: number, third: string | undefined, fourth: string | undefined) => {
  if (depth === 3 && third === "dkim") beginEntry(draft, "dkim");
  else if (depth === 3 && third === "spf") beginEntry(draft, "spf");
  else if (depth === 4 && fourth === "reason") beginEntry(draft, "reasons");
};

const closeInRecord = (draft: RowDraft, path: readonly string[], text: string) => {
  const [, second, third, fourth, fifth] = path;
  if (second === "row") {
    if (path.length === 3 && (third === "source_ip" || third === "count")) keepText(draft, third, text);
    if (third !== "policy_evaluated") return;
    if (path.length === 4 && fourth !== undefined) keepText(draft, fourth, text);
    // Some write the type straight into the reason.
    if (path.length === 4 && fourth === "reason") keepEntryText(draft, "type", text);
    if (path.length === 5 && fourth === "reason" && fifth !== undefined) keepEntryText(draft, fifth, text);
  } else if (second === "identifiers" || second === "identities") {
    if (path.length === 3 && third !== undefined) keepText(draft, third, text);
  } else if (second === "auth_results" && path.length === 4 && fourth !== undefined) {
    if (third === "dkim" || third === "spf") keepEntryText(draft, fourth, text);
  }
};

/** Keeps a text of an element that reports have, unless one of that name is there already. */
const keepFirst = (texts: Texts, name: string, text: string) => {
  if (text !== "" && REPORT_ELEMENTS.has(name) && !texts.has(name)) texts.set(name, text);
};

const keepError = (errors: string[], text: string) => {
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
  const text = (name: string) => readText(head.get(name) ?? "");
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
  const text = (name: string) => texts.get(name) ?? "";
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
