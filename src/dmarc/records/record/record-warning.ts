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
