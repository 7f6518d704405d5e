import { systemClock } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { DayRange } from "../foundation/base/days.ts";
import type { Db } from "../foundation/db/open.ts";
import { parseMonitoredDomain } from "../dmarc/records/domains/domain-platform.ts";
import { DomainStore } from "../dmarc/records/domains/domain-store.ts";
import { writeNdjson, rangeOf } from "../dmarc/insight/queries/domain-query.ts";
import { RecordStore } from "../dmarc/insight/queries/record-store.ts";
import { RollupStore } from "../dmarc/insight/sources/rollup-store.ts";
import { DomainSources } from "../dmarc/insight/sources/domain-sources.ts";
import { exportRecords, RECORD_COLUMNS, recordBatches } from "../dmarc/insight/queries/records.ts";
import { csvLine } from "../foundation/http/csv.ts";
import { accountIdOf, inDatabase } from "./data-directory.ts";
import { accountOption, argument, choice, command, day, type Values, withDefault } from "./command.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";

const readRange = (requested: Parameters<typeof rangeOf>[0]): DayRange => {
  try {
    return rangeOf(requested, systemClock.nowMs());
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new UsageError("--from must not be after --to, and a range has at most 3,660 days.", "from");
  }
};

const EXPORTED = {
  from: day("first day in UTC (default: 29 days before --to)"),
  to: day("last day in UTC (default: today)"),
  format: withDefault(choice("<format>", ["ndjson", "csv"], "format of the output"), "ndjson"),
  account: accountOption,
};

const writeRecords = async (db: Db, io: Io, name: string, options: Values<typeof EXPORTED>): Promise<void> => {
  const range = readRange(options);
  const owner = { accountId: accountIdOf(db, options.account), mode: "live" } as const;
  const parsed = parseMonitoredDomain(name, "live");
  if (!parsed.ok) throw new UsageError(parsed.error, "domain");
  const domain = new DomainStore(db).findSame(owner, parsed.value);
  if (domain === undefined)
    throw new CommandFailed(
      `${parsed.value} is not enrolled in this account. \`postwarden dmarc domains add ${parsed.value}\` enrolls it.`,
      "unknown_domain",
    );
  const records = new RecordStore(db);
  const names = await DomainSources.read(new RollupStore(db), domain, (all) => all.names(range));
  const query = { scope: { domain: domain.number }, range, filters: {}, names };
  if (options.format === "ndjson") {
    for await (const piece of writeNdjson(recordBatches(records, query, null))) await io.write(piece);
    return;
  }
  await io.write(Buffer.from(csvLine(RECORD_COLUMNS)));
  for await (const rows of exportRecords(records, query, null)) {
    await io.write(Buffer.from(rows.map((cells) => csvLine(cells)).join("")));
  }
};

/** `dmarc export`: the records of a domain, with or without a running server. */
export const DMARC_EXPORT = command({
  description: "Write the records of a domain to standard output, newest day first.",
  example: "dmarc export example.com --from 2026-01-01 --to 2026-01-31 > records.ndjson",
  json: null,
  on: inDatabase,
  args: { domain: argument("<domain>", "an enrolled domain") },
  options: EXPORTED,
  run: ({ db, io }, { domain, ...options }) => writeRecords(db, io, domain, options),
});
