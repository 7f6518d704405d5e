import { parse } from "csv-parse/sync";
import { CsvError } from "csv-parse";
import { z } from "zod";
import { nextTurn } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { checked, JSON_BODY_BYTES_MAX, readBytes, readJson } from "../http/body.ts";
import { validationMessage } from "../http/validation-messages.ts";
import { namesOf, parametersOf, readParameters } from "../http/query.ts";
import { BATCH_TARGETS_MAX, targetBatchSchema, batchQuerySchema, batchRowSchema } from "./batch-schemas.ts";
import type { AddOutcome, NewTarget } from "./targets.ts";

/** Of a body: 10,000 rows with labels. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const TARGET_SHOWN_MAX = 320;
/** Of one row of a CSV: a webhook URL may be long. */
const RECORD_CHARACTERS_MAX = 8_192;
const CELLS_MAX = 16;
/** Of a CSV, which is parsed in one go. */
const CSV_BYTES_MAX = JSON_BODY_BYTES_MAX;
/** Rows held against their schema before others have their turn. */
const ROWS_AT_ONCE = 500;

/** A row of a batch: what was given as target, and the order that it comes to, or what is wrong with it. */
export interface BatchRow {
  readonly given: string;
  readonly order: NewTarget | null;
  readonly problem: string | null;
}

type Row = z.output<ReturnType<typeof batchRowSchema>>;

const shown = (value: unknown): string =>
  (typeof value === "string" ? value : JSON.stringify(value)).slice(0, TARGET_SHOWN_MAX);

const orderOf = (row: Row, common: Row): NewTarget => ({
  target: row.target ?? "",
  label: row.label ?? common.label ?? null,
  monitoringEnabled: row.monitoring_enabled ?? common.monitoring_enabled ?? true,
  webhookUrl: row.webhook_url ?? common.webhook_url ?? null,
  recipients: common.recipients ?? [],
  alertSeverityMin: row.alert_severity_min ?? common.alert_severity_min ?? null,
});

/** One row held against its schema: a row that does not fit is told as such, and stops no other. */
const readRow = (value: unknown, schema: ReturnType<typeof batchRowSchema>, common: Row): BatchRow => {
  const fields = typeof value === "string" ? { target: value } : value;
  const given = shown(z.object({ target: z.string() }).safeParse(fields).data?.target ?? value);
  const read = schema.safeParse(fields, { reportInput: true, error: (issue) => validationMessage(issue, false) });
  if (read.success && read.data.target !== undefined)
    return { given, order: orderOf(read.data, common), problem: null };
  const [first] = read.error?.issues ?? [];
  const path = first?.path.join(".") ?? "target";
  const message = first?.message ?? "Required";
  return { given, order: null, problem: path === "" ? message : `${path}: ${message}` };
};

const readRows = async (values: readonly unknown[], read: (value: unknown) => BatchRow): Promise<BatchRow[]> => {
  const rows: BatchRow[] = [];
  for (let from = 0; from < values.length; from += ROWS_AT_ONCE) {
    for (const value of values.slice(from, from + ROWS_AT_ONCE)) rows.push(read(value));
    await nextTurn();
  }
  return rows;
};

const COLUMNS = ["target", "label", "webhook_url", "alert_severity_min"];

const csvProblem = (message: string): AppError =>
  new AppError("Invalid request body", { issues: [{ path: "", message }] });

const hasLongLine = (text: string): boolean => {
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from);
    const to = end === -1 ? text.length : end;
    if (to - from > RECORD_CHARACTERS_MAX) return true;
    from = to + 1;
  }
  return false;
};

/** Rows of cells as objects, by the header, or where the first row is none, as target and label. */
const rowsOfCsv = (text: string): unknown[] => {
  // Empty cells do not count towards the size of a record.
  if (hasLongLine(text)) throw csvProblem(`A line has more than ${RECORD_CHARACTERS_MAX} characters.`);
  let records: string[][];
  try {
    records = parse(text, {
      ...{ bom: true, relax_column_count: true, skip_empty_lines: true, trim: true },
      // A header, and one row more than there may be: what is behind them is not read.
      to: BATCH_TARGETS_MAX + 2,
      max_record_size: RECORD_CHARACTERS_MAX,
      on_record(record: string[]) {
        if (record.length > CELLS_MAX) throw csvProblem(`A row has more than ${CELLS_MAX} cells.`);
        return record;
      },
    });
  } catch (error) {
    if (error instanceof CsvError) throw csvProblem(`Not CSV: ${error.message}`);
    throw error;
  }
  const [first = []] = records;
  const header = first.map((cell) => cell.toLowerCase());
  const hasHeader = header.includes("target");
  const unknown = hasHeader ? header.find((name) => !COLUMNS.includes(name)) : undefined;
  if (unknown !== undefined)
    throw csvProblem(`Unknown column "${shown(unknown)}"; there may be ${COLUMNS.join(", ")}.`);
  const names = hasHeader ? header : COLUMNS.slice(0, 2);
  return records
    .slice(hasHeader ? 1 : 0)
    .map((cells) => Object.fromEntries(names.map((name, at) => [name, cells[at]]).filter(([, cell]) => cell)));
};

const isCsv = (request: Request): boolean =>
  ((request.headers.get("content-type") ?? "").split(";")[0] ?? "").trim().toLowerCase() === "text/csv";

/** The rows of a batch, from JSON or from CSV with the common fields in the query. 400 when the whole of it does not fit. */
export const readBatch = async (request: Request, webhookUrl: z.ZodType<string, string>): Promise<BatchRow[]> => {
  const schema = batchRowSchema(webhookUrl);
  if (!isCsv(request)) {
    const { targets, ...common } = await readJson(request, targetBatchSchema(webhookUrl), BODY_BYTES_MAX);
    return readRows(targets, (value) => readRow(value, schema, common));
  }
  const common = readParameters(parametersOf(request), batchQuerySchema(webhookUrl));
  return readCsvBatch(new TextDecoder().decode(await readBytes(request, CSV_BYTES_MAX)), common, webhookUrl);
};

/** The rows of a batch that is CSV; `common` is what they leave out. Throws `Invalid request body` when the whole of it does not fit. */
export const readCsvBatch = (text: string, common: Row, webhookUrl: z.ZodType<string, string>): Promise<BatchRow[]> => {
  const schema = batchRowSchema(webhookUrl);
  const { targets } = checked(targetBatchSchema(webhookUrl), { targets: rowsOfCsv(text) }, "Invalid request body");
  return readRows(targets, (value) => readRow(value, schema, common));
};

/** The orders of those rows that have one. */
export const ordersOf = (rows: readonly BatchRow[]): NewTarget[] =>
  rows.flatMap(({ order }) => (order === null ? [] : [order]));

/** Query parameters of a batch. */
export const BATCH_PARAMETERS = namesOf(batchQuerySchema(z.string()));

/** The outcomes of the orders of a batch as the interface shows them: a result for each row, in their order. */
export const batchView = (rows: readonly BatchRow[], outcomes: readonly AddOutcome[]) => {
  const next = outcomes.values();
  const results = rows.map((row, at) => {
    const invalid = { status: "invalid", problem: row.problem ?? "" } as const;
    const outcome = row.order === null ? invalid : (next.next().value ?? invalid);
    const target = outcome.status === "invalid" ? null : outcome.target;
    return {
      row: at + 1,
      given: row.given,
      status: outcome.status,
      id: target?.id ?? null,
      value: target?.value ?? null,
      problem: outcome.status === "invalid" ? outcome.problem : null,
    };
  });
  const count = (wanted: AddOutcome["status"]) => results.filter(({ status }) => status === wanted).length;
  return { created: count("created"), exists: count("exists"), invalid: count("invalid"), results };
};
