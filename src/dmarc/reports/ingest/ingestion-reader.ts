import { readWindows, type Stretch, walk } from "../../../foundation/base/walk.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import { readPlainly } from "../../../foundation/http/list-page.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import { suffixOf } from "../report/unpack.ts";
import { decidingFinding, type IngestionView, ingestionView } from "./ingestion-schemas.ts";
import type { IngestionFilters, IngestionOwner, IngestionRow } from "./ingestion-store.ts";
import type { Ingestions } from "./ingestions.ts";

/** Which ingestions to list; `domainId` is the id of a domain, perhaps of another owner's. */
export interface IngestionQuery extends Omit<IngestionFilters, "domain"> {
  readonly domainId?: string | undefined;
}

const EXPORTED_AT_ONCE = 500;

/** The columns of the CSV export of ingestions. */
export const INGESTION_COLUMNS = [
  "id",
  "received_at",
  "via",
  "name",
  "mail_from",
  "client",
  "bytes",
  "status",
  "outcome",
  "reason",
  "message",
  "domain",
  "reporter",
  "report_id",
] as const;

/** Rows looked at between two yields where few pass a filter: some milliseconds. */
const STEP = 5_000;
const ROWS_AT_ONCE = 250;

type ReadIngestions = (behind: string | null, looks: number, wanted: number) => Stretch<IngestionRow, string>;

/** Reads what arrived for an owner, with what was found in it. */
export class IngestionReader {
  constructor(
    private readonly ingestions: Pick<Ingestions, "list" | "find" | "raw">,
    private readonly domains: Pick<DomainStore, "findById" | "findByNumber">,
  ) {}

  /** What matches, newest first; nothing for the domain of another owner. */
  list(owner: IngestionOwner, { domainId, ...filters }: IngestionQuery): ReadIngestions {
    if (domainId === undefined) return readWindows(this.ingestions.list(owner, filters));
    const domain = this.domains.findById(domainId);
    const isOwn = domain?.accountId === owner.accountId && domain.mode === owner.mode;
    return isOwn
      ? readWindows(this.ingestions.list(owner, { ...filters, domain }))
      : readPlainly<IngestionRow>(() => []);
  }

  /** One page of the list; `next` continues it. A filter that few rows pass may end a page early. */
  async page(
    owner: IngestionOwner,
    query: IngestionQuery,
    { before, limit }: { readonly before: string | null; readonly limit: number },
  ): Promise<{ readonly ingestions: readonly IngestionView[]; readonly next: string | null }> {
    const { rows, next } = await walk<IngestionRow, string | null>(
      { read: this.list(owner, query), keyOf: ({ id }) => id, step: STEP, rowsAtOnce: ROWS_AT_ONCE },
      { before, limit, account: owner.accountId },
    );
    return { ingestions: rows.map((row) => this.view(row)), next };
  }

  /** All that match, as rows of CSV, newest first. */
  async *rows(owner: IngestionOwner, query: IngestionQuery): AsyncGenerator<Cell[][], void> {
    for (let before: string | null = null; ;) {
      const { ingestions, next } = await this.page(owner, query, { before, limit: EXPORTED_AT_ONCE });
      yield ingestions.map(cellsOf);
      if (next === null) return;
      before = next;
    }
  }

  /** Throws `not_found`. */
  find(owner: IngestionOwner, id: string): IngestionView {
    return this.view(this.ingestions.find(owner, id));
  }

  /** The original bytes with a content type and a file name; throws `not_found`, and `conflict` when they are no longer kept. */
  raw(
    owner: IngestionOwner,
    id: string,
  ): { readonly bytes: Uint8Array; readonly contentType: string; readonly fileName: string } {
    const bytes = this.ingestions.raw(owner, id);
    const suffix = suffixOf(bytes);
    return {
      bytes,
      contentType: suffix === ".eml" ? "message/rfc822" : "application/octet-stream",
      fileName: `${id}${suffix}`,
    };
  }

  view(row: IngestionRow): IngestionView {
    return ingestionView(row, (number) => this.domains.findByNumber(number)?.id ?? null);
  }
}

/** With what decided the outcome. */
const cellsOf = (ingestion: IngestionView): Cell[] => {
  const finding = decidingFinding(ingestion);
  return [
    ingestion.id,
    ingestion.received_at,
    ingestion.via,
    ingestion.name,
    ingestion.mail_from,
    ingestion.client,
    ingestion.bytes,
    ingestion.status,
    ingestion.outcome,
    ingestion.reason,
    finding?.message ?? null,
    finding?.domain ?? null,
    finding?.org_name ?? null,
    finding?.external_report_id ?? null,
  ];
};
