import { PAGE_BYTES_MAX } from "../../base/walk.ts";
import type { Cell } from "../../http/csv.ts";
import { actionableFailures } from "../sources/domain-sources.ts";
import type { Source } from "../sources/source-response.ts";

const CURSOR = /^(\d{1,16})\.(\d{1,16})\.(\S+)$/;

export const isSourceCursor = (text: string): boolean => CURSOR.test(text);

/** Whether a source stands behind a cursor, in the order of `byWorst`. */
const isBehind = (source: Source, [, trouble, messages, key = ""]: readonly string[]): boolean => {
  const moreTrouble = actionableFailures(source) - Number(trouble);
  if (moreTrouble !== 0) return moreTrouble < 0;
  const moreMessages = source.messages - Number(messages);
  return moreMessages === 0 ? source.key > key : moreMessages < 0;
};

/** The sources of one page out of all, worst first. */
export const pageOfSources = (
  sources: readonly Source[],
  { after, limit }: { readonly after: string | null; readonly limit: number },
): { readonly page: readonly Source[]; readonly next: string | null } => {
  const cursor = after === null ? null : CURSOR.exec(after);
  const rest = cursor === null ? sources : sources.filter((source) => isBehind(source, cursor));
  const page = withinBytes(rest.slice(0, limit));
  const last = page.at(-1);
  const next =
    last === undefined || rest.length <= page.length
      ? null
      : `${actionableFailures(last)}.${last.messages}.${last.key}`;
  return { page, next };
};

/** The first of some sources, as many as a page may hold, but one at least. */
const withinBytes = (sources: readonly Source[]): readonly Source[] => {
  let bytes = 0;
  const over = sources.findIndex((source) => {
    bytes += JSON.stringify(source).length;
    return bytes > PAGE_BYTES_MAX;
  });
  return over === -1 ? sources : sources.slice(0, Math.max(1, over));
};

/** The columns of the export. Signatures, envelope domains and addresses stand in one cell each, separated by `; `. */
export const SOURCE_COLUMNS = [
  "key",
  "kind",
  "name",
  "service",
  "service_id",
  "classification",
  "classified_by",
  "messages",
  "aligned",
  "failing",
  "aligned_percent",
  "dkim_aligned",
  "spf_aligned",
  "forwarded",
  "authenticated_unaligned",
  "quarantined",
  "rejected",
  "first_day",
  "last_day",
  "dkim",
  "spf",
  "network_count",
  "address_count",
  "addresses",
] as const;

const EXPORTED_AT_ONCE = 1_000;

const sourceCells = (source: Source): Cell[] => {
  const addresses = source.addresses.map(({ ip, reverse_name, confirmed }) =>
    reverse_name !== null && confirmed ? `${ip} (${reverse_name})` : ip,
  );
  const flat: Record<(typeof SOURCE_COLUMNS)[number], Cell> = {
    ...source,
    dkim: source.dkim
      .map(({ domain, selector }) => (selector === null ? domain : `${selector}._domainkey.${domain}`))
      .join("; "),
    spf: source.spf.map(({ domain }) => domain).join("; "),
    addresses: addresses.join("; "),
  };
  return SOURCE_COLUMNS.map((column) => flat[column]);
};

/** All sources as rows of CSV, in batches. */
export async function* exportSources(sources: readonly Source[]): AsyncGenerator<ReadonlyArray<readonly Cell[]>, void> {
  for (let at = 0; at < sources.length; at += EXPORTED_AT_ONCE) {
    yield sources.slice(at, at + EXPORTED_AT_ONCE).map(sourceCells);
  }
}
