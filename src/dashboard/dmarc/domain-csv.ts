import type { DomainList, DomainListItem } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import { csvResponse } from "../../dmarc/insight/queries/domain-query.ts";
import { percentOf } from "../../dmarc/insight/sources/rollup-rows.ts";
import { readState } from "../../dmarc/records/domains/domain-state.ts";
import { isoTime } from "../../foundation/base/clock.ts";
import type { Cell } from "../../foundation/http/csv.ts";
import { policyWords, stepWords } from "./dmarc-words.ts";

const CSV_AT_ONCE = 500;

const CSV_COLUMNS = [
  "domain",
  "label",
  "status",
  "attention",
  "policy",
  "messages_7_days",
  "aligned_percent_7_days",
  "messages_30_days",
  "aligned_percent_30_days",
  "last_report",
  "next_step",
  "next_step_reason",
  "computed_at",
  "tags",
];

/** The domains of a list as a CSV file. `read` returns some of them. */
export const domainCsv = (request: Request, read: (limit: number, offset: number) => DomainList): Response =>
  csvResponse(request, "domains.csv", { columns: CSV_COLUMNS, batches: batchesOf(read) });

async function* batchesOf(read: (limit: number, offset: number) => DomainList): AsyncGenerator<Cell[][], void> {
  for (let offset = 0; ; offset += CSV_AT_ONCE) {
    const { domains, hasMore } = read(CSV_AT_ONCE, offset);
    yield domains.map(cellsOf);
    if (!hasMore) return;
  }
}

const cellsOf = ({ row, status, overview, attention }: DomainListItem): Cell[] => {
  const counts = overview ?? null;
  return [
    row.domain,
    row.label,
    status,
    attention.map(({ title }) => title).join("; "),
    policyWords(readState(row.state)?.believed.policy),
    ...(counts === null
      ? [null, null, null, null]
      : [
          counts.messages7,
          percentOf(counts.aligned7, counts.messages7),
          counts.messages30,
          percentOf(counts.aligned30, counts.messages30),
        ]),
    row.lastReportAtMs === null ? null : isoTime(row.lastReportAtMs),
    ...(counts?.next == null ? [null, null] : [stepWords(counts.next), counts.next.why]),
    counts === null ? null : isoTime(counts.computedAtMs),
    row.tags.join(" "),
  ];
};
