import { parseReportUris, trimRecordSpace, type RecordTag, type ReportUri, type UriProblem } from "./record-tags.ts";

export const POLICIES = ["none", "quarantine", "reject"] as const;
export type DmarcPolicy = (typeof POLICIES)[number];
export type AlignmentMode = "r" | "s";

/** The value of every tag of a valid record, or its default (RFC 9989 §4.7). */
export interface RecordValues {
  readonly p: DmarcPolicy;
  /** For existing subdomains; default: `p`. */
  readonly sp: DmarcPolicy;
  /** For subdomains that do not exist; default: `sp`. */
  readonly np: DmarcPolicy;
  readonly adkim: AlignmentMode;
  readonly aspf: AlignmentMode;
  readonly psd: "y" | "n" | "u";
  /** Test mode: `y` asks receivers to relax the policy by one step. */
  readonly t: "y" | "n";
  readonly fo: readonly string[];
  readonly rua: readonly ReportUri[];
  readonly ruf: readonly ReportUri[];
  /** Historic (RFC 7489 §6.3): percent of failing mail that the policy is for. */
  readonly pct: number;
  /** Historic (RFC 7489 §6.3): seconds between reports. */
  readonly ri: number;
  /** Historic (RFC 7489 §6.3): formats of failure reports. */
  readonly rf: readonly string[];
}

const PERCENT_MAX = 100;
/** RFC 7489 §6.4: `ri` is a 32-bit unsigned number. */
const INTERVAL_MAX_S = 4_294_967_295;
const INTERVAL_DEFAULT_S = 86_400;
/** RFC 7489 §6.2: receivers must serve two destinations; many stop there. */
const URIS_SERVED_BY_ALL = 2;

/**
 * Reads the values of a valid record from its tags by name. An invalid value gets its default and a warning, except that
 * an invalid `p`, `sp` or `np` makes all three `none`, as receivers do (RFC 9989 §4.10.1).
 */
export const readValues = (tags: ReadonlyMap<string, RecordTag>, warn: Warn): RecordValues => {
  const textOf = (name: string) => tags.get(name)?.value;

  const oneOf = <T extends string>(name: string, allowed: readonly T[], fallback: T): T => {
    const text = textOf(name);
    const found = allowed.find((value) => value === text?.toLowerCase());
    if (found === undefined && text !== undefined) warnOfValue(warn, name, text, `${fallback} is used`);
    return found ?? fallback;
  };
  const listOf = (name: string, allowed: readonly string[], fallback: string): readonly string[] => {
    const text = textOf(name);
    if (text === undefined) return [fallback];
    const items = text.split(":").map((item) => trimRecordSpace(item).toLowerCase());
    if (items.every((item) => allowed.includes(item))) return [...new Set(items)];
    warnOfValue(warn, name, text, `${fallback} is used`);
    return [fallback];
  };
  const numberOf = (name: string, max: number, fallback: number) => {
    const text = textOf(name);
    const isNumber = text !== undefined && /^\d+$/.test(text) && Number(text) <= max;
    if (text !== undefined && !isNumber) warnOfValue(warn, name, text, `${fallback} is used`);
    return isNumber ? Number(text) : fallback;
  };
  const urisOf = (name: "rua" | "ruf"): readonly ReportUri[] => {
    const uris = parseReportUris(textOf(name) ?? "");
    warnOfUris(name, uris, warn);
    return uris;
  };

  return {
    ...readPolicies(textOf, warn),
    adkim: oneOf("adkim", ["r", "s"], "r"),
    aspf: oneOf("aspf", ["r", "s"], "r"),
    psd: oneOf("psd", ["u", "y", "n"], "u"),
    t: oneOf("t", ["n", "y"], "n"),
    fo: listOf("fo", ["0", "1", "d", "s"], "0"),
    rua: urisOf("rua"),
    ruf: urisOf("ruf"),
    pct: numberOf("pct", PERCENT_MAX, PERCENT_MAX),
    ri: numberOf("ri", INTERVAL_MAX_S, INTERVAL_DEFAULT_S),
    rf: listOf("rf", ["afrf", "iodef"], "afrf"),
  };
};

/** Where the value of a tag runs on into the next tag. */
const missingSemicolon = (value: string) => {
  const next = /\s([a-z]{1,10})=/i.exec(value)?.[1];
  return next === undefined ? "" : ` A semicolon is missing before ${next}=.`;
};

const readPolicies = (
  textOf: (name: string) => string | undefined,
  warn: Warn,
): Pick<RecordValues, "p" | "sp" | "np"> => {
  const read = (name: "p" | "sp" | "np"): DmarcPolicy | "bad" | undefined => {
    const text = textOf(name);
    if (text === undefined) return undefined;
    return POLICIES.find((policy) => policy === text.toLowerCase()) ?? "bad";
  };
  const [p, sp, np] = [read("p"), read("sp"), read("np")];
  if (p === undefined) warn("p_missing", "p is missing: receivers use none, and older ones may ignore the record.");
  if (p === "bad") {
    const text = textOf("p") ?? "";
    const rest = `receivers use none.${missingSemicolon(text)}`;
    warn("p_invalid", `p is ${quote(text)}, which is not none, quarantine or reject; ${rest}`);
  }
  for (const [name, value] of [
    ["sp", sp],
    ["np", np],
  ] as const) {
    if (value !== "bad") continue;
    const text = textOf(name) ?? "";
    const rest = `receivers use p=none instead.${missingSemicolon(text)}`;
    warn("policy_void", `${name} is ${quote(text)}, which is not none, quarantine or reject; ${rest}`);
  }
  if (p === "bad" || sp === "bad" || np === "bad") return { p: "none", sp: "none", np: "none" };
  const own = p ?? "none";
  return { p: own, sp: sp ?? own, np: np ?? sp ?? own };
};

const warnOfValue = (warn: Warn, name: string, text: string, consequence: string) =>
  warn("value_invalid", `${name} cannot be ${quote(text)}; ${consequence}.`);

const warnOfUris = (name: "rua" | "ruf", uris: readonly ReportUri[], warn: Warn) => {
  const addresses = new Set<string>();
  for (const { text, address, sizeSuffix, problem } of uris) {
    if (problem !== null) warn(problem, describeProblem(name, text, problem));
    if (sizeSuffix !== null)
      warn("size_suffix", `${name}: the size limit ${quote(sizeSuffix)} is ignored since RFC 9989.`);
    if (address === null) continue;
    if (addresses.has(address)) warn("uri_duplicate", `${name} names ${address} more than once.`);
    addresses.add(address);
  }
  if (uris.length > URIS_SERVED_BY_ALL) {
    warn("too_many_uris", `${name} has ${uris.length} destinations; some receivers report only to the first two.`);
  }
};

const describeProblem = (name: string, text: string, problem: UriProblem) => {
  switch (problem) {
    case "uri_empty":
      return `${name} has an empty destination between commas.`;
    case "uri_without_mailto":
      return `${name}: ${quote(text)} is ignored because it does not begin with mailto:.`;
    case "uri_not_mailto":
      return `${name}: receivers may not support the scheme of ${quote(text)}; only mailto: is certain to work.`;
    case "uri_invalid":
      return `${name}: ${quote(text)} is not a valid address.`;
    default:
      return problem satisfies never;
  }
};

/** The codes are part of the interface; the sentences may change. */
export type RecordWarningCode =
  | "character"
  | "duplicate_tag"
  | "empty_tag"
  | "fo_without_ruf"
  | "historic_tag"
  | "leading_white_space"
  | "not_a_tag"
  | "over_255_octets"
  | "p_invalid"
  | "p_missing"
  | "p_not_second"
  | "policy_void"
  | "psd_y"
  | "quoted"
  | "rua_missing"
  | "size_suffix"
  | "too_long"
  | "too_many_uris"
  | "unknown_tag"
  | "uri_duplicate"
  | "uri_empty"
  | "uri_invalid"
  | "uri_not_mailto"
  | "uri_without_mailto"
  | "value_invalid"
  | "version_missing"
  | "version_not_first"
  | "version_value";

/** A warning about a record: a stable code and a sentence. */
export interface RecordWarning {
  readonly code: RecordWarningCode;
  readonly message: string;
}

/** Adds a warning. */
export type Warn = (code: RecordWarningCode, message: string) => void;

/** Longer quotations are shortened. */
const QUOTED_CHARACTERS_MAX = 60;

/** Collects warnings in order, each distinct one once. */
export const createWarnings = (): { readonly warn: Warn; readonly warnings: readonly RecordWarning[] } => {
  const warnings: RecordWarning[] = [];
  const seen = new Set<string>();
  const warn: Warn = (code, message) => {
    const key = `${code} ${message}`;
    if (seen.has(key)) return;
    seen.add(key);
    warnings.push({ code, message });
  };
  return { warn, warnings };
};

/** A part of a record in quotation marks, shortened when it is long. */
export const quote = (text: string): string => {
  const shown = text.length > QUOTED_CHARACTERS_MAX ? `${text.slice(0, QUOTED_CHARACTERS_MAX)}…` : text;
  return `"${shown.toWellFormed()}"`;
};
