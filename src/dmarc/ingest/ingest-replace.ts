import type { Tx } from "../../db/open.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { otherNamesOf } from "./row-counter.ts";
import { ingestionConclusion, type IngestionFinding } from "./ingestion-finding.ts";
import { rowFacts } from "./row-facts.ts";
import type { CountStore } from "./count-store.ts";
import type { Batch, Work } from "./ingest-work.ts";
import { isPastRetention } from "./report-period.ts";
import type { SameReport } from "./report-store.ts";
import { addReport, addRow, dayIn, type DayRollup, entryOf, nameOf, type Rollup } from "./rollup.ts";

/** A report with more rows is taken out of the counts at once, and its rows are removed afterwards. */
const ROWS_AT_ONCE = 1_000;

/** More twins than anybody has domains to sign for; what is left over goes with the next one that comes. */
const TWINS_MAX = 100;

interface Taken {
  readonly same: SameReport;
  readonly domain: DomainRow;
}

/**
 * Takes back what others say under the name of a report that comes from its reporter now, or from the owner. What retention is
 * about to remove, perhaps half of it already, is left to that.
 */
export const takeBackTwins = (
  batch: Batch,
  work: Work,
  { sameness, domain }: { readonly sameness: string; readonly domain: DomainRow },
): void => {
  for (const same of batch.stores.reports.findTwins(domain.number, sameness, TWINS_MAX)) {
    if (!isPastRetention(same.day, domain, batch.nowMs)) takeBackReport(batch, work, { same, domain });
  }
};

/** Takes a report back: its counts, what only it told of, and its place in what was found in its mail. */
const takeBackReport = (batch: Batch, work: Work, { same, domain }: Taken): void => {
  const { stores, tx, counting, rollup } = batch;
  // The report may have come in this very transaction.
  counting.flush(rollup);
  rollup.clear();
  const told = countsOf(batch, same, domain);
  for (const counts of told.get(domain.number)?.values() ?? []) takeBack(stores.counts, tx, { domain, counts });
  const staged = new Set([...work.staged.values()].flatMap(({ placed }) => placed.map(({ name }) => name)));
  stores.reports.takeBack(tx, same.number);
  for (const { sources, names } of told.get(domain.number)?.values() ?? []) {
    for (const number of sources.keys()) forgetSource(stores.counts, tx, { number, report: same });
    for (const name of names.keys()) {
      if (name !== "" && !staged.has(name)) stores.counts.removeUncountedName(tx, domain.number, name);
    }
  }
  const isGone = same.rows <= ROWS_AT_ONCE && stores.reports.removeIncomplete(tx, same.number, same.rows + 1);
  if (!isGone) batch.replaced.push(same.number);
  noteReplaced(batch, same);
};

/** What a stored report was counted as. */
const countsOf = ({ stores }: Batch, same: SameReport, domain: DomainRow): Rollup => {
  const rollup: Rollup = new Map();
  const report = stores.reports.findCounted(same.number);
  if (report === null) return rollup;
  // Only those are taken back that are not trusted.
  const day = dayIn(rollup, domain.number, { day: same.day, isTrusted: false });
  const reporter = addReport(day, { reporter: report.org?.toLowerCase() ?? "", author: same.author });
  const counted = new Map<string, string>();
  const countedNameOf = (name: string): string =>
    entryOf(counted, name, () => {
      const isItself = stores.counts.isNameCountedOn({ domain: domain.number, day: same.day, key: name });
      return isItself ? name : otherNamesOf(domain.domain);
    });
  for (const { row, source } of stores.reports.records(same.number)) {
    const facts = rowFacts(row, domain.domain, report.policy);
    const name = countedNameOf(nameOf(row.headerFrom, domain.domain));
    addRow(day, reporter, { row, facts, source, name });
  }
  return rollup;
};

interface Told {
  readonly domain: DomainRow;
  readonly counts: DayRollup;
}

/** Reports that came before trusted ones were counted apart were all counted with those. */
const takeBack = (store: CountStore, tx: Tx, { domain, counts }: Told): void => {
  const where = { domain: domain.number, day: counts.day };
  const reporters = [...counts.reporters.values()];
  const isApart = reporters.every((key) => store.isCountedApart({ ...where, key }, key.messages));
  const place = { ...where, isTrusted: !isApart };
  for (const [key, some] of counts.sources) store.takeBack(tx, { ...place, key }, some);
  for (const some of reporters) {
    const key = isApart ? some : { reporter: some.reporter, author: "" };
    store.takeBackReporter(tx, { ...place, key }, some);
  }
  for (const [key, some] of counts.names) store.takeBackName(tx, { ...place, key }, some);
};

/** Removes a source that no other report tells of; of others the days are put right. */
const forgetSource = (
  store: CountStore,
  tx: Tx,
  { number, report }: { readonly number: number; readonly report: SameReport },
): void => {
  const source = store.findSourceByNumber(number);
  if (source === null) return;
  const days = store.daysElsewhere(number, report.number);
  if (days === null) {
    store.removeSource(tx, number);
    return;
  }
  // A day before all records that are kept was told of by reports that retention has removed.
  const firstDay = source.firstDay === report.day ? days.firstDay : source.firstDay;
  const lastDay = source.lastDay === report.day ? days.lastDay : source.lastDay;
  store.extendSource(tx, { number, firstDay, lastDay });
};

const noteReplaced = ({ stores, tx }: Batch, { id, ingestion }: SameReport): void => {
  const before = stores.ingestions.findingsOf(ingestion);
  if (before === undefined) return;
  const findings = before.map((finding): IngestionFinding => {
    const isIt = finding.report_id === id && finding.outcome === "stored";
    return isIt ? { ...finding, outcome: "quarantined", reason: "replaced", report_id: null } : finding;
  });
  stores.ingestions.conclude(tx, ingestion, { ...ingestionConclusion(findings), findings });
};
