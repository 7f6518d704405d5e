import {
  parseReportUris,
  splitRecord,
  trimRecordSpace,
  type RecordPart,
  type RecordTag,
  type ReportUri,
} from "./record-tags.ts";
import {
  createWarnings,
  quote,
  readValues,
  type RecordValues,
  type RecordWarning,
  type RecordWarningCode,
  type Warn,
} from "./record-values.ts";
import { isDefinite, type DnsOutcome, type DnsResponse } from "../../../foundation/net/dns.ts";

/** A text read as a DMARC record. Receivers ignore it altogether unless it is valid. */
export type DmarcRecord = {
  readonly text: string;
  /** Every tag in the order of the text, unknown and repeated ones too. */
  readonly tags: readonly RecordTag[];
  readonly warnings: readonly RecordWarning[];
} & ({ readonly valid: true; readonly values: RecordValues } | { readonly valid: false; readonly values: null });

/** A record that receivers use. */
export type ValidRecord = Extract<DmarcRecord, { readonly valid: true }>;

/** RFC 1035 §3.2.1: the data of a record has a length of 16 bits. */
export const RECORD_OCTETS_MAX = 65_535;
/** RFC 1035 §3.3: the length of a character-string, of which a TXT record has one or more. */
export const STRING_OCTETS_MAX = 255;

const VERSION = "DMARC1";
const KNOWN_TAGS: ReadonlySet<string> = new Set("v p sp np adkim aspf fo psd rua ruf t pct rf ri".split(" "));
const HISTORIC_TAGS: ReadonlySet<string> = new Set(["pct", "rf", "ri"]);

/**
 * Reads the text of a TXT record (its strings joined) as a DMARC record, RFC 9989 §4.7 and tolerant of RFC 7489.
 *
 * It is valid when its first tag is `v` with exactly the value `DMARC1` and it has at most 65,535 octets. Of a repeated tag
 * the first counts. Warnings say what receivers ignore or may understand differently, and why a text is invalid. Never throws.
 */
export const parseRecord = (text: string): DmarcRecord => {
  const { warn, warnings } = createWarnings();
  const octets = new TextEncoder().encode(text).length;
  if (octets > RECORD_OCTETS_MAX) {
    warn("too_long", `A DNS record holds at most ${RECORD_OCTETS_MAX} octets; this has ${octets}.`);
    return { text, tags: [], warnings, valid: false, values: null };
  }
  const parts = splitRecord(text);
  const tags = parts.flatMap((part) => (part.kind === "tag" ? [part.tag] : []));
  if (!hasVersion(parts)) {
    warnOfVersion(text, tags, warn);
    return { text, tags, warnings, valid: false, values: null };
  }
  warnOfForm(text, parts, warn);
  const values = readValues(firstByName(tags, warn), warn);
  warnOfWhole(tags, values, warn);
  if (octets > STRING_OCTETS_MAX) {
    warn("over_255_octets", `The record has ${octets} octets; publish it as several strings of one TXT record.`);
  }
  return { text, tags, warnings, valid: true, values };
};

const hasVersion = ([first]: readonly RecordPart[]) =>
  first?.kind === "tag" && first.tag.name === "v" && first.tag.value === VERSION;

const warnOfVersion = (text: string, tags: readonly RecordTag[], warn: Warn) => {
  const version = tags.find(({ name }) => name === "v");
  if (/^\s*["'“”]/u.test(text)) {
    warn(
      "quoted",
      "The text begins with a quotation mark. In a zone file the quotes surround the text; they are not part of it.",
    );
  } else if (version === undefined) {
    warn("version_missing", "Not a DMARC record: it must begin with v=DMARC1.");
  } else if (version.value !== VERSION) {
    warn(
      "version_value",
      `v is ${quote(version.value)}; it must be exactly DMARC1, in capitals, followed by a semicolon.`,
    );
  } else {
    warn("version_not_first", "v=DMARC1 must be the first tag; receivers ignore the record.");
  }
};

/** The form of the text as a whole, and what is not a tag. */
const warnOfForm = (text: string, parts: readonly RecordPart[], warn: Warn) => {
  const bare = trimRecordSpace(text);
  if (!text.startsWith(bare))
    warn("leading_white_space", "White space before v=DMARC1 makes some receivers ignore the record.");
  const odd = /[^\x20-\x7e\t\r\n]/u.exec(bare)?.[0];
  if (odd !== undefined) {
    const codePoint = (odd.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
    warn("character", `The record holds the character U+${codePoint}; only printable ASCII is allowed.`);
  }
  for (const part of parts) {
    if (part.kind === "empty") warn("empty_tag", "There is an empty tag before a semicolon.");
    if (part.kind === "other") warn("not_a_tag", `${quote(part.text)} is not name=value and is ignored.`);
  }
};

const firstByName = (tags: readonly RecordTag[], warn: Warn): ReadonlyMap<string, RecordTag> => {
  const byName = new Map<string, RecordTag>();
  for (const tag of tags) {
    if (byName.has(tag.name)) {
      warn("duplicate_tag", `${tag.name} is repeated; some receivers use the first one, others ignore the record.`);
    } else {
      byName.set(tag.name, tag);
    }
    if (!KNOWN_TAGS.has(tag.name)) warn("unknown_tag", `${quote(tag.name)} is not a DMARC tag and is ignored.`);
    if (HISTORIC_TAGS.has(tag.name)) warn("historic_tag", `${tag.name} is historic; RFC 9989 ignores it.`);
  }
  return byName;
};

/** Warnings about several tags together. */
const warnOfWhole = (tags: readonly RecordTag[], values: RecordValues, warn: Warn) => {
  const has = (name: string) => tags.some((tag) => tag.name === name);
  if (has("p") && tags[1]?.name !== "p") {
    warn("p_not_second", "p is not the second tag; receivers that follow RFC 7489 may ignore the record.");
  }
  if (has("fo") && !has("ruf"))
    warn("fo_without_ruf", "fo says when to send failure reports, but without ruf none are sent.");
  if (!values.rua.some(({ problem }) => problem === null || problem === "uri_not_mailto")) {
    warn("rua_missing", "rua has no address for aggregate reports.");
  }
  if (values.psd === "y") warn("psd_y", "psd=y is for the registries of public suffixes only.");
};

/** With these receivers apply no policy (RFC 9989 §4.10.1). */
const POLICY_FAULTS: ReadonlySet<RecordWarningCode> = new Set(["p_invalid", "p_missing", "policy_void"]);
const SEVERAL_RUA =
  "The record has several rua tags: some receivers use the first, others ignore the record. Put all destinations into one.";

/** What has to be fixed in a valid record, a sentence each: receivers understand it in another way than its owner may expect. */
export const recordFaults = (record: ValidRecord): readonly string[] => [
  ...record.warnings.filter(({ code }) => POLICY_FAULTS.has(code)).map(({ message }) => message),
  ...(ruaTags(record).length > 1 ? [SEVERAL_RUA] : []),
];

/** The destinations of each `rua` tag, in the order of the text. Receivers that accept several of them use the first. */
export const ruaTags = ({ tags }: ValidRecord): ReadonlyArray<readonly ReportUri[]> =>
  tags.filter(({ name }) => name === "rua").map(({ value }) => parseReportUris(value));

/**
 * What `postwarden inspect record` prints for one text; the field names are part of the interface. `tags` are as written, in
 * the order of the text, names in lower case; of a repeated tag the first. Never throws; makes no DNS query.
 */
export const inspectRecord = (input: string) => {
  const { valid, tags, warnings } = parseRecord(input);
  const byName = new Map<string, string>();
  for (const { name, value } of tags) if (!byName.has(name)) byName.set(name, value);
  return { input, valid, tags: Object.fromEntries(byName), warnings };
};

/** What the DNS says about the TXT records at one `_dmarc` name. */
export type Published =
  /** The texts at the name itself; none when it does not exist or has no TXT. */
  | { readonly kind: "texts"; readonly texts: readonly string[] }
  /** The name is an alias (CNAME) of `target`; `texts` are those at the end of the aliases. */
  | { readonly kind: "alias"; readonly target: string; readonly texts: readonly string[] }
  /** The DNS query failed. Never means "none". */
  | { readonly kind: "failure"; readonly outcome: DnsOutcome };

/** The name of the DMARC record of a domain (lower-case A-labels; RFC 9989 §4.5). */
export const recordHost = (domain: string): string => `_dmarc.${domain}`;

/** Interprets the response to a TXT query for a `_dmarc` name. */
export const readPublished = ({ outcome, records, cnames }: DnsResponse<"TXT">): Published => {
  if (!isDefinite(outcome)) return { kind: "failure", outcome };
  const [target] = cnames;
  return target === undefined ? { kind: "texts", texts: records } : { kind: "alias", target, texts: records };
};

/** The DMARC records among the texts; all others at the name are ignored (RFC 9989 §4.10). */
export const dmarcRecordsIn = (texts: readonly string[]): readonly ValidRecord[] =>
  texts.map(parseRecord).filter((record): record is ValidRecord => record.valid);

/** Splits a text into the strings of one TXT record, each at most 255 octets of UTF-8; no character is cut. At least one string. */
export const splitStrings = (text: string): readonly string[] => {
  const strings: string[] = [];
  let current = "";
  let octets = 0;
  for (const character of text) {
    const size = new TextEncoder().encode(character).length;
    if (octets + size > STRING_OCTETS_MAX) {
      strings.push(current);
      current = "";
      octets = 0;
    }
    current += character;
    octets += size;
  }
  return [...strings, current];
};
