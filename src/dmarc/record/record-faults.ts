import type { ValidRecord } from "./record.ts";
import type { RecordWarningCode } from "./record-warning.ts";
import { parseReportUris, type ReportUri } from "./rua.ts";

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
