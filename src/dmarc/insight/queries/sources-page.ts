import { PAGE_BYTES_MAX } from "../../../foundation/base/walk.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import { actionableFailures } from "../sources/domain-sources.ts";
import { type Source, sourceSchema } from "../sources/source-response.ts";

const CURSOR = /^(\d{1,16})\.(\d{1,16})\.(\S+)$/;

export const isSourceCursor = (text: string): boolean => CURSOR.test(text);

/** Whether a source comes after a cursor, in the order of `byWorst`. */
const isAfter = (source: Source, [, failures, messages, key = ""]: readonly string[]): boolean => {
  const moreFailures = actionableFailures(source) - Number(failures);
  if (moreFailures !== 0) return moreFailures < 0;
  const moreMessages = source.messages - Number(messages);
  return moreMessages === 0 ? source.key > key : moreMessages < 0;
};

/** A page of the sources, worst first. */
export const pageOfSources = (
  sources: readonly Source[],
  { after, limit }: { readonly after: string | null; readonly limit: number },
): { readonly page: readonly Source[]; readonly next: string | null } => {
  const cursor = after === null ? null : CURSOR.exec(after);
  const rest = cursor === null ? sources : sources.filter((source) => isAfter(source, cursor));
  const page = withinBytes(rest.slice(0, limit));
  const last = page.at(-1);
  const next =
    last === undefined || rest.length <= page.length
      ? null
      : `${actionableFailures(last)}.${last.messages}.${last.key}`;
  return { page, next };
};

/** As many of the first sources as fit in a page, but at least one. */
const withinBytes = (sources: readonly Source[]): readonly Source[] => {
  let bytes = 0;
  const over = sources.findIndex((source) => {
    bytes += JSON.stringify(source).length;
    return bytes > PAGE_BYTES_MAX;
  });
  return over === -1 ? sources : sources.slice(0, Math.max(1, over));
};

/** The columns of the CSV export. Signatures, envelope domains and addresses are in one cell each, separated by `; `. */
export const SOURCE_COLUMNS = sourceSchema.omit({ lookups_pending: true }).keyof().options;

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
