import type { DayRange } from "../../../foundation/base/days.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { rangeOf, exportFileName, type QueryContext } from "./domain-query.ts";
import { actionableFailures, DomainSources } from "../sources/domain-sources.ts";
import type { Classification } from "../sources/rollup-store.ts";
import { type Source, sourceSchema } from "../sources/source-response.ts";
import { csvResponse } from "./row-formats.ts";
import { PAGE_BYTES_MAX } from "../../../foundation/base/walk.ts";
import type { Cell } from "../../../foundation/http/csv.ts";

/** Which sources to list. Days are UTC days since 1970. */
export interface SourceListQuery {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly classification?: Classification | undefined;
  /** Lists each network of unauthenticated mail as a source of its own. */
  readonly byNetwork?: boolean;
  /** Part of a name, a key, a domain or an address, in any case. */
  readonly text?: string | undefined;
  /** Only sources with failing messages that somebody must act on. */
  readonly isFailing?: boolean;
}

export interface FoundSources {
  readonly domain: DomainRow;
  readonly range: DayRange;
  /** Worst first. */
  readonly sources: readonly Source[];
}

/** Lists who sends in the names of the caller's domains. Throws `not_found` for a domain of another account. */
export class SourceReader {
  constructor(private readonly context: Pick<QueryContext, "db" | "clock" | "rollups" | "findDomain">) {}

  list(caller: Caller, id: string, query: SourceListQuery): FoundSources {
    const { db, clock, rollups, findDomain } = this.context;
    const domain = findDomain(caller, id);
    const { from, to, classification, byNetwork = false, text = "", isFailing = false } = query;
    const range = rangeOf({ from, to }, clock.nowMs());
    const all = db.snapshot(() => new DomainSources(rollups, domain).sources(range, { byNetwork }));
    const sources = all.filter(
      (source) =>
        (classification === undefined || source.classification === classification) &&
        (!isFailing || actionableFailures(source) > 0) &&
        hasText(source, text.trim().toLowerCase()),
    );
    return { domain, range, sources };
  }

  /** The same as a CSV file. */
  csv(request: Request, { domain, range, sources }: FoundSources): Response {
    const name = exportFileName("sources", domain, range, "csv");
    return csvResponse(request, name, { columns: SOURCE_COLUMNS, batches: exportSources(sources) });
  }
}

const hasText = ({ name, key, service, dkim, spf, addresses }: Source, text: string): boolean => {
  if (text === "") return true;
  const texts = [
    name,
    key,
    service ?? "",
    ...[...dkim, ...spf].map(({ domain }) => domain),
    ...addresses.flatMap(({ ip, reverse_name: reverse, as_name }) => [ip, reverse ?? "", as_name ?? ""]),
  ];
  return texts.some((one) => one.toLowerCase().includes(text));
};

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
async function* exportSources(sources: readonly Source[]): AsyncGenerator<ReadonlyArray<readonly Cell[]>, void> {
  for (let at = 0; at < sources.length; at += EXPORTED_AT_ONCE) {
    yield sources.slice(at, at + EXPORTED_AT_ONCE).map(sourceCells);
  }
}
