import type { DayRange } from "../../../foundation/base/days.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { rangeOf } from "../sources/day-range.ts";
import { actionableFailures, DomainSources } from "../sources/domain-sources.ts";
import type { Classification } from "../sources/rollup-store.ts";
import type { Source } from "../sources/source-response.ts";
import { csvResponse } from "./csv.ts";
import { exportFileName, type QueryContext } from "./domain-query.ts";
import { exportSources, SOURCE_COLUMNS } from "./sources-page.ts";

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
  readonly #context: Pick<QueryContext, "db" | "clock" | "rollups" | "findDomain">;

  constructor(context: Pick<QueryContext, "db" | "clock" | "rollups" | "findDomain">) {
    this.#context = context;
  }

  list(caller: Caller, id: string, query: SourceListQuery): FoundSources {
    const { db, clock, rollups, findDomain } = this.#context;
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
    ...[name, key, service ?? ""],
    ...[...dkim, ...spf].map(({ domain }) => domain),
    ...addresses.flatMap(({ ip, reverse_name: reverse, as_name }) => [ip, reverse ?? "", as_name ?? ""]),
  ];
  return texts.some((one) => one.toLowerCase().includes(text));
};
