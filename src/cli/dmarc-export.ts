import { type Command, Option } from "commander";
import { systemClock } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { DayRange } from "../foundation/base/days.ts";
import type { Db } from "../foundation/db/open.ts";
import { parseMonitoredDomain } from "../dmarc/records/domains/domain-platform.ts";
import { DomainStore } from "../dmarc/records/domains/domain-store.ts";
import { writeNdjson, rangeOf } from "../dmarc/insight/queries/domain-query.ts";
import { parseDay } from "../foundation/http/day-range.ts";
import { RecordStore } from "../dmarc/insight/queries/record-store.ts";
import { RollupStore } from "../dmarc/insight/sources/rollup-store.ts";
import { DomainSources } from "../dmarc/insight/sources/domain-sources.ts";
import { exportRecords, RECORD_COLUMNS, recordBatches } from "../dmarc/insight/queries/records.ts";
import { csvLine } from "../foundation/http/csv.ts";
import { accountIdOf, openDatabase } from "./data-directory.ts";
import { loadConfig } from "./prepare-directory.ts";
import { addGroup } from "./command.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";

const FORMATS = ["ndjson", "csv"] as const;

interface ExportOptions {
  readonly account?: string;
  readonly from?: string;
  readonly to?: string;
  readonly format: (typeof FORMATS)[number];
}

const dayOf = (name: "from" | "to", text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const day = parseDay(text);
  if (day === null) throw new UsageError(`--${name}: "${text}" is not a date such as 2026-01-31.`, name);
  return day;
};

const readRange = ({ from, to }: ExportOptions): DayRange => {
  try {
    return rangeOf({ from: dayOf("from", from), to: dayOf("to", to) }, systemClock.nowMs());
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new UsageError("--from must not be after --to, and a range has at most 3,660 days.", "from");
  }
};

const writeRecords = async (db: Db, io: Io, name: string, options: ExportOptions): Promise<void> => {
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
  const names = new DomainSources(new RollupStore(db), domain).names(range);
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
export const addDmarcExport = (group: Command, io: Io): void => {
  addGroup(group, "export", {
    description: "Write the records of a domain to standard output, newest day first.",
    example: "dmarc export example.com --from 2026-01-01 --to 2026-01-31 > records.ndjson",
  })
    .argument("<domain>", "an enrolled domain")
    .option("--from <date>", "first day in UTC (default: 29 days before --to)")
    .option("--to <date>", "last day in UTC (default: today)")
    .addOption(new Option("--format <format>", "format of the output").choices([...FORMATS]).default("ndjson"))
    .option("--account <name>", "name of the account; required when there are several")
    .action(async (domain: string, options: ExportOptions) => {
      const db = openDatabase(io, loadConfig(io));
      try {
        await writeRecords(db, io, domain, options);
      } finally {
        db.close();
      }
    });
};
