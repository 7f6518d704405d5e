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

/** The texts of one record's own elements; empty for those that are missing. */
const noTexts = () => ({
  source_ip: "",
  count: "",
  disposition: "",
  dkim: "",
  spf: "",
  header_from: "",
  envelope_from: "",
  envelope_to: "",
});

/** The texts of the elements of one entry, likewise. `isSaid`: at least one element of a report has a text in it. */
const noEntry = () => ({
  type: "",
  comment: "",
  domain: "",
  selector: "",
  scope: "",
  result: "",
  human_result: "",
  isSaid: false as boolean,
});

type EntryTexts = ReturnType<typeof noEntry>;

/** The texts of one record as they come in. */
export interface RowDraft {
  readonly texts: ReturnType<typeof noTexts>;
  readonly reasons: EntryTexts[];
  readonly dkim: EntryTexts[];
  readonly spf: EntryTexts[];
  /** The entry of a list that is being read. */
  entry: EntryTexts;
}

export const createRowDraft = (): RowDraft => ({
  texts: noTexts(),
  reasons: [],
  dkim: [],
  spf: [],
  entry: noEntry(),
});

/** Keeps a text of a record's own element, unless it has one of that name already. */
export const keepText = ({ texts }: RowDraft, name: string, text: string): void => keepIn(texts, name, text);

/** Keeps a text of the entry that is being read, unless it has one of that name already. */
export const keepEntryText = ({ entry }: RowDraft, name: string, text: string): void => {
  keepIn(entry, name, text);
  entry.isSaid ||= text !== "" && REPORT_ELEMENTS.has(name);
};

/** A missing text is empty; every other name is none of these, or has its text. */
const keepIn = (texts: Record<string, unknown>, name: string, text: string) => {
  if (texts[name] === "") texts[name] = text;
};

/** Begins an entry of a list of a record. Entries beyond the limit are dropped. */
export const beginEntry = (draft: RowDraft, list: "reasons" | "dkim" | "spf"): void => {
  draft.entry = noEntry();
  if (draft[list].length < ROW_ENTRIES_MAX) draft[list].push(draft.entry);
};

/** Builds a row from a record's texts, or returns why it cannot be counted. */
export const finishRow = ({ texts, reasons, dkim, spf }: RowDraft): ReportRow | ReportRowProblem => {
  const source = readSourceIp(texts.source_ip);
  if (typeof source === "string") return source;
  const count = readCount(texts.count);
  if (typeof count === "string") return count;
  return {
    sourceIp: source.ip,
    count,
    disposition: readWord(texts.disposition, DISPOSITIONS),
    dkim: readAlignedResult(texts.dkim),
    spf: readAlignedResult(texts.spf),
    reasons: saidIn(reasons).map(overrideOf),
    headerFrom: readDomain(texts.header_from),
    envelopeFrom: readDomain(texts.envelope_from),
    envelopeTo: readDomain(texts.envelope_to),
    dkimResults: saidIn(dkim).map(dkimOf),
    spfResults: saidIn(spf).map(spfOf),
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

const saidIn = (entries: readonly EntryTexts[]) => entries.filter(({ isSaid }) => isSaid);

const overrideOf = (texts: EntryTexts): OverrideReason => {
  const word = readText(texts.type);
  const comment = readText(texts.comment);
  const type = readWord(word ?? "", OVERRIDES);
  if (type !== null || word === null) return { type: type ?? "other", comment };
  return { type: "other", comment: comment === null ? word : `${word}: ${comment}` };
};

const dkimOf = (texts: EntryTexts): DkimAuthResult => ({
  domain: readDomain(texts.domain),
  selector: readText(texts.selector),
  result: readAuthResult(texts.result),
  humanResult: readText(texts.human_result),
});

const spfOf = (texts: EntryTexts): SpfAuthResult => ({
  domain: readDomain(texts.domain),
  scope: readWord(texts.scope, ["mfrom", "helo"]),
  result: readAuthResult(texts.result),
  humanResult: readText(texts.human_result),
});

/** JSON bytes of the lists of one record as stored. A record of a real report has less than 3,000. */
export const REPORT_ROW_BYTES_MAX = 16 * 1024;

/** The steps by which a record that is too large is shortened: characters kept of each text, entries of each list. */
const STEPS = [
  { characters: 200, entries: 100 },
  { characters: 60, entries: 40 },
  { characters: 0, entries: 10 },
] as const;

/** Upper bounds of the JSON bytes of an entry without its texts, and of a character (`\u001f`). */
const ENTRY_BYTES = 120;
const CHARACTER_BYTES_MAX = 6;

/**
 * The same row, or a shorter one when its lists take more than `REPORT_ROW_BYTES_MAX`: with shorter texts and fewer entries,
 * or without texts. The counted fields (address, count, results, domains) do not change; the first entries of lists are kept.
 */
export const shortenRow = (row: ReportRow): ReportRow => {
  let short = row;
  for (const step of STEPS) {
    if (isWithin(short)) return short;
    short = shortenedTo(row, step);
  }
  return short;
};

const isWithin = (row: ReportRow) => {
  const { reasons, dkimResults, spfResults, envelopeFrom, envelopeTo } = row;
  let [entries, characters] = [0, 0];
  for (const list of [reasons, dkimResults, spfResults]) {
    entries += list.length;
    for (const entry of list) characters += charactersOf(entry);
  }
  if (entries * ENTRY_BYTES + characters * CHARACTER_BYTES_MAX <= REPORT_ROW_BYTES_MAX) return true;
  const lists = { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults };
  return Buffer.byteLength(JSON.stringify(lists)) <= REPORT_ROW_BYTES_MAX;
};

type RowEntry = ReportRow["reasons" | "dkimResults" | "spfResults"][number];

const charactersOf = (entry: RowEntry) => {
  if ("type" in entry) return entry.type.length + (entry.comment?.length ?? 0);
  const { domain, result, humanResult } = entry;
  const detail = "selector" in entry ? entry.selector : entry.scope;
  return (domain?.length ?? 0) + result.length + (humanResult?.length ?? 0) + (detail?.length ?? 0);
};

const shortenedTo = (row: ReportRow, { characters, entries }: (typeof STEPS)[number]): ReportRow => {
  const cut = (text: string | null) => text?.slice(0, characters) || null;
  return {
    ...row,
    reasons: row.reasons.slice(0, entries).map((reason) => ({ ...reason, comment: cut(reason.comment) })),
    dkimResults: row.dkimResults
      .slice(0, entries)
      .map((entry) => ({ ...entry, selector: cut(entry.selector), humanResult: cut(entry.humanResult) })),
    spfResults: row.spfResults.slice(0, entries).map((entry) => ({ ...entry, humanResult: cut(entry.humanResult) })),
  };
};

/** Entries that cost as much to write as a plain record. */
const ENTRIES_PER_WEIGHT = 8;

/** The relative cost of writing a row: 1 for a plain one, some 40 for the largest. */
export const weightOf = ({ reasons, dkimResults, spfResults }: ReportRow): number =>
  1 + Math.floor((reasons.length + dkimResults.length + spfResults.length) / ENTRIES_PER_WEIGHT);

/** Approximately the bytes that a stored row takes. */
export const storedBytesOf = ({ reasons, dkimResults, spfResults }: ReportRow): number =>
  [...reasons, ...dkimResults, ...spfResults].reduce(
    (sum, entry) => sum + ENTRY_BYTES + charactersOf(entry),
    RECORD_BYTES,
  );

/** A record without its lists, in the table and its indexes. */
const RECORD_BYTES = 400;
