import { parseRecord } from "./record.ts";
import type { RecordWarning } from "./record-warning.ts";

/** What `postwarden inspect record` prints for one text. The field names are part of the interface. */
export interface RecordInspection {
  /** The text as given. */
  readonly input: string;
  readonly valid: boolean;
  /** The tags as written, in the order of the text, names in lower case; of a repeated tag the first. */
  readonly tags: Readonly<Record<string, string>>;
  readonly warnings: readonly RecordWarning[];
}

/** Shows how Postwarden parses a text as a DMARC record. Never throws; makes no DNS query. */
export const inspectRecord = (input: string): RecordInspection => {
  const { valid, tags, warnings } = parseRecord(input);
  const byName = new Map<string, string>();
  for (const { name, value } of tags) if (!byName.has(name)) byName.set(name, value);
  return { input, valid, tags: Object.fromEntries(byName), warnings };
};
