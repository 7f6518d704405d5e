import { parse } from "csv-parse/sync";
import { CsvError } from "csv-parse";
import { z } from "zod";
import { nextTurn } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { checked, JSON_BODY_BYTES_MAX, readBytes, readJson } from "../foundation/http/body.ts";
import { validationMessage } from "../foundation/http/validation-messages.ts";
import { BATCH_TARGETS_MAX, batchRowSchema, targetBatchSchema } from "./batch-schemas.ts";
import type { AddOutcome, NewTarget } from "./targets.ts";

/** Enough for 10,000 rows with labels. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const TARGET_SHOWN_MAX = 320;
/** Characters of one CSV row: a webhook URL may be long. */
const RECORD_CHARACTERS_MAX = 8_192;
const CELLS_MAX = 16;
/** CSV is parsed in one go. */
const CSV_BYTES_MAX = JSON_BODY_BYTES_MAX;
/** Rows that are validated in one step. */
const ROWS_AT_ONCE = 500;

/** A row of a batch: the target as given, and either the target to add or a problem. */
export interface BatchRow {
  readonly given: string;
  readonly target: NewTarget | null;
  readonly problem: string | null;
}

type Row = z.output<ReturnType<typeof batchRowSchema>>;

const shown = (value: unknown): string =>
  (typeof value === "string" ? value : JSON.stringify(value)).slice(0, TARGET_SHOWN_MAX);

const newTargetOf = (row: Row, common: Row): NewTarget => ({
  target: row.target ?? "",
  label: row.label ?? common.label ?? null,
  monitoringEnabled: row.monitoring_enabled ?? common.monitoring_enabled ?? true,
  webhookUrl: row.webhook_url ?? common.webhook_url ?? null,
  recipients: common.recipients ?? [],
  alertSeverityMin: row.alert_severity_min ?? common.alert_severity_min ?? null,
});

/** Validates one row. An invalid row affects no other. */
const readRow = (value: unknown, schema: ReturnType<typeof batchRowSchema>, common: Row): BatchRow => {
  const fields = typeof value === "string" ? { target: value } : value;
  const given = shown(z.object({ target: z.string() }).safeParse(fields).data?.target ?? value);
  const read = schema.safeParse(fields, { reportInput: true, error: (issue) => validationMessage(issue, false) });
  if (read.success && read.data.target !== undefined)
    return { given, target: newTargetOf(read.data, common), problem: null };
  const [first] = read.error?.issues ?? [];
  const path = first?.path.join(".") ?? "target";
  const message = first?.message ?? "Required";
  return { given, target: null, problem: path === "" ? message : `${path}: ${message}` };
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

/** Rows as objects, by the header; without a header, the columns are target and label. */
const rowsOfCsv = (text: string): unknown[] => {
  // `max_record_size` does not count empty cells.
  if (hasLongLine(text)) throw csvProblem(`A line has more than ${RECORD_CHARACTERS_MAX} characters.`);
  let records: string[][];
  try {
    records = parse(text, {
      ...{ bom: true, relax_column_count: true, skip_empty_lines: true, trim: true },
      // A header and one row more than allowed; what follows is not parsed.
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
  if (unknown !== undefined) throw csvProblem(`Unknown column "${shown(unknown)}". Allowed: ${COLUMNS.join(", ")}.`);
  const names = hasHeader ? header : COLUMNS.slice(0, 2);
  return records
    .slice(hasHeader ? 1 : 0)
    .map((cells) => Object.fromEntries(names.map((name, at) => [name, cells[at]]).filter(([, cell]) => cell)));
};

const isCsv = (request: Request): boolean =>
  ((request.headers.get("content-type") ?? "").split(";")[0] ?? "").trim().toLowerCase() === "text/csv";

/** Reads a batch: JSON, or CSV with its shared settings in the query. Throws 400 if the body as a whole is invalid. */
export const readBatch = async (
  request: Request,
  query: Row,
  webhookUrl: z.ZodType<string, string>,
): Promise<BatchRow[]> => {
  const schema = batchRowSchema(webhookUrl);
  if (!isCsv(request)) {
    const { targets, ...common } = await readJson(request, targetBatchSchema(webhookUrl), BODY_BYTES_MAX);
    return readRows(targets, (value) => readRow(value, schema, common));
  }
  return readCsvBatch(new TextDecoder().decode(await readBytes(request, CSV_BYTES_MAX)), query, webhookUrl);
};

/** Reads a batch as CSV; `common`: settings that rows leave out. Throws `Invalid request body` if the text as a whole is invalid. */
export const readCsvBatch = (text: string, common: Row, webhookUrl: z.ZodType<string, string>): Promise<BatchRow[]> => {
  const schema = batchRowSchema(webhookUrl);
  const { targets } = checked(targetBatchSchema(webhookUrl), { targets: rowsOfCsv(text) }, "Invalid request body");
  return readRows(targets, (value) => readRow(value, schema, common));
};

/** The targets of the valid rows. */
export const newTargetsOf = (rows: readonly BatchRow[]): NewTarget[] => rows.flatMap(({ target }) => target ?? []);

/** The result of a batch as the API returns it, one result per row. `outcomes`: of the valid rows, in their order. */
export const batchView = (rows: readonly BatchRow[], outcomes: readonly AddOutcome[]) => {
  const next = outcomes.values();
  const results = rows.map((row, at) => {
    const invalid = { status: "invalid", problem: row.problem ?? "" } as const;
    const outcome = row.target === null ? invalid : (next.next().value ?? invalid);
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
