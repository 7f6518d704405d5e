import {
  type AuthResult,
  DISPOSITIONS,
  type Disposition,
  OVERRIDES,
  type OverrideType,
  type ReportRowProblem,
  readAlignedResult,
  readAuthResult,
  readCount,
  readDomain,
  readSourceIp,
  readText,
  readWord,
} from "./report-values.ts";
import { REPORT_ELEMENTS } from "./text-pre-pass.ts";

/** Why the receiver did not apply the policy. An unknown type is `other`, with the type before the comment. */
export interface OverrideReason {
  readonly type: OverrideType;
  readonly comment: string | null;
}

/** The result of one DKIM signature. */
export interface DkimAuthResult {
  readonly domain: string | null;
  readonly selector: string | null;
  readonly result: AuthResult;
  readonly humanResult: string | null;
}

/** The result of one SPF check. */
export interface SpfAuthResult {
  readonly domain: string | null;
  readonly scope: "mfrom" | "helo" | null;
  readonly result: AuthResult;
  readonly humanResult: string | null;
}

/** One record of a report: messages from one source with the same results. */
export interface ReportRow {
  /** Canonical; may be private, as the reporter saw it. */
  readonly sourceIp: string;
  /** 1 to `COUNT_MAX`. */
  readonly count: number;
  /** Null when the report does not state it. `pass`: a message that passed (RFC 9990). */
  readonly disposition: Disposition | null;
  /** The aligned results; null when the report does not state them. */
  readonly dkim: "pass" | "fail" | null;
  readonly spf: "pass" | "fail" | null;
  readonly reasons: readonly OverrideReason[];
  /** Domains, lower case A-labels; null for none, and for the null sender. */
  readonly headerFrom: string | null;
  readonly envelopeFrom: string | null;
  readonly envelopeTo: string | null;
  readonly dkimResults: readonly DkimAuthResult[];
  readonly spfResults: readonly SpfAuthResult[];
}

/** Entries kept of each list of a record; real records have a dozen signatures at most. */
export const ROW_ENTRIES_MAX = 100;

/** The texts of the elements of one entry, by name. */
type Texts = Map<string, string>;

/** The texts of one record as they come in. */
export interface RowDraft {
  /** `source_ip`, `count`; `disposition`, `dkim`, `spf`; `header_from`, `envelope_from`, `envelope_to`. The first counts. */
  readonly texts: Texts;
  readonly reasons: Texts[];
  readonly dkim: Texts[];
  readonly spf: Texts[];
  /** The entry of a list that is being read. */
  entry: Texts;
}

export const createRowDraft = (): RowDraft => ({
  texts: new Map(),
  reasons: [],
  dkim: [],
  spf: [],
  entry: new Map(),
});

/** Keeps a text of an element that reports have, unless one of that name is there already. */
export const keepFirst = (texts: Texts, name: string, text: string): void => {
  if (text !== "" && REPORT_ELEMENTS.has(name) && !texts.has(name)) texts.set(name, text);
};

/** Begins an entry of a list of a record. Entries beyond the limit are dropped. */
export const beginEntry = (draft: RowDraft, list: "reasons" | "dkim" | "spf"): void => {
  draft.entry = new Map();
  if (draft[list].length < ROW_ENTRIES_MAX) draft[list].push(draft.entry);
};

/** Builds a row from a record's texts, or returns why it cannot be counted. */
export const finishRow = ({ texts, reasons, dkim, spf }: RowDraft): ReportRow | ReportRowProblem => {
  const text = (name: string): string => texts.get(name) ?? "";
  const source = readSourceIp(text("source_ip"));
  if (typeof source === "string") return source;
  const count = readCount(text("count"));
  if (typeof count === "string") return count;
  return {
    sourceIp: source.ip,
    count,
    disposition: readWord(text("disposition"), DISPOSITIONS),
    dkim: readAlignedResult(text("dkim")),
    spf: readAlignedResult(text("spf")),
    reasons: reasons.filter(isSaid).map(overrideOf),
    headerFrom: readDomain(text("header_from")),
    envelopeFrom: readDomain(text("envelope_from")),
    envelopeTo: readDomain(text("envelope_to")),
    dkimResults: dkim.filter(isSaid).map(dkimOf),
    spfResults: spf.filter(isSaid).map(spfOf),
  };
};

/**
 * Whether the receiver recognized the message as forwarded: by the reason it gave, or by a verified ARC chain (`arc=pass` in
 * the comment of a local policy, as Google and Microsoft write it).
 */
export const isForwarded = ({ reasons }: Pick<ReportRow, "reasons">): boolean =>
  reasons.some(
    ({ type, comment }) =>
      ["forwarded", "mailing_list", "trusted_forwarder"].includes(type) || /\barc\s*=\s*pass\b/i.test(comment ?? ""),
  );

const isSaid = (texts: Texts): boolean => texts.size > 0;

const overrideOf = (texts: Texts): OverrideReason => {
  const word = readText(texts.get("type") ?? "");
  const comment = readText(texts.get("comment") ?? "");
  const type = readWord(word ?? "", OVERRIDES);
  if (type !== null || word === null) return { type: type ?? "other", comment };
  return { type: "other", comment: comment === null ? word : `${word}: ${comment}` };
};

const dkimOf = (texts: Texts): DkimAuthResult => ({
  domain: readDomain(texts.get("domain") ?? ""),
  selector: readText(texts.get("selector") ?? ""),
  result: readAuthResult(texts.get("result") ?? ""),
  humanResult: readText(texts.get("human_result") ?? ""),
});

const spfOf = (texts: Texts): SpfAuthResult => ({
  domain: readDomain(texts.get("domain") ?? ""),
  scope: readWord(texts.get("scope") ?? "", ["mfrom", "helo"]),
  result: readAuthResult(texts.get("result") ?? ""),
  humanResult: readText(texts.get("human_result") ?? ""),
});
