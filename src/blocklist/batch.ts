import { parse } from "csv-parse/sync";
import { CsvError } from "csv-parse";
import { z } from "zod";
import {
  nullableText,
  textField,
  labelSchema,
  enumField,
  integerField,
  listField,
  namedBody,
  namedResponse,
  nullableId,
  optionalFlag,
  textsField,
} from "../foundation/http/schema-fields.ts";
import { nextTurn } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { checked, JSON_BODY_BYTES_MAX, readBytes, readJson } from "../foundation/http/body.ts";
import { validationMessage } from "../foundation/http/validation-messages.ts";
import type { AddOutcome, NewTarget } from "./targets.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { recipientsSchema } from "../foundation/mail/recipients.ts";

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

const shown = (value: unknown) =>
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

const csvProblem = (message: string) => new AppError("Invalid request body", { issues: [{ path: "", message }] });

const hasLongLine = (text: string) => {
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
      bom: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
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

const isCsv = (request: Request) =>
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

/** Targets of one request. */
const BATCH_TARGETS_MAX = 10_000;
const TARGET_CHARACTERS_MAX = 320;
const RECIPIENTS_MAX = 10;

const label = labelSchema("outbound 1");
const severity = z.enum(SEVERITIES);
const SEVERITY_MIN = { description: "Listings of a lower severity are not sent." };

/** The settings that all rows of a batch share. */
const sharedFields = (webhookUrl: z.ZodType<string, string>) => ({
  label: label.nullable().optional(),
  webhook_url: webhookUrl.nullable().optional().meta({ description: "Receives the events of these targets." }),
  alert_severity_min: severity.nullable().optional().meta(SEVERITY_MIN),
});

const MONITORING = { description: "Whether scheduled checks run. Default: true." };

/** One row of a batch. Missing fields are those of the batch; recipients are always those of the batch. */
const batchRowSchema = (webhookUrl: z.ZodType<string, string>) =>
  z.strictObject({
    target: z.string().trim().min(1, "A domain or an IP address is needed").max(TARGET_CHARACTERS_MAX).optional(),
    monitoring_enabled: z.boolean().optional(),
    recipients: z.array(z.string()).max(0, "Set recipients for the whole batch").optional(),
    ...sharedFields(webhookUrl),
  });

/** Body of `POST /v1/blacklist/targets/batch` as JSON. Rows are validated one by one: an invalid row affects no other. */
export const targetBatchSchema = (webhookUrl: z.ZodType<string, string>) =>
  namedBody("BlacklistBatch", {
    targets: z.array(z.unknown()).min(1).max(BATCH_TARGETS_MAX).meta({
      description:
        "Domains, addresses and ranges, as texts, or as objects with `target` and the settings that differ from the batch (`label`, `monitoring_enabled`, `webhook_url`, `alert_severity_min`).",
    }),
    monitoring_enabled: z.boolean().optional().meta(MONITORING),
    recipients: recipientsSchema({ most: RECIPIENTS_MAX, description: "Recipients of alert mail." }).optional(),
    ...sharedFields(webhookUrl),
  });

/** Query of a batch as CSV: the settings of all rows. */
export const batchQuerySchema = (webhookUrl: z.ZodType<string, string>) =>
  z.strictObject({
    label: label.optional().meta({ description: "CSV only: the label of rows without one." }),
    webhook_url: webhookUrl.optional().meta({ description: "CSV only: the webhook of rows without one." }),
    alert_severity_min: severity.optional().meta({ description: "CSV only: the threshold of rows without one." }),
  });

const problem = nullableText("Why the target is invalid, as a sentence.");
const id = nullableId("The id of the target.");
const count = (description: string) => integerField(description);

export const batchResultSchema = namedResponse("BlacklistBatchResult", {
  created: count("How many targets were added."),
  exists: count("How many targets existed; they are unchanged."),
  invalid: count("How many rows are invalid."),
  results: listField(
    z.object({
      row: count("The number of the row, from 1, without the header."),
      given: textField("The target as given."),
      status: enumField(["created", "exists", "invalid"], "What happened."),
      id,
      value: nullableText("The normalized target."),
      problem,
    }),
    "One result per row.",
  ),
});

export const BATCH_EXAMPLE = {
  created: 1,
  exists: 0,
  invalid: 1,
  results: [
    {
      row: 1,
      given: "192.0.2.1",
      status: "created",
      id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
      value: "192.0.2.1",
      problem: null,
    },
    {
      row: 2,
      given: "10.0.0.1",
      status: "invalid",
      id: null,
      value: null,
      problem: "10.0.0.1 is not a public address; no list has entries for it.",
    },
  ],
};

/** Body of `POST /v1/blacklist/targets/discover`. */
export const discoverRequestSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      domain: z.string().trim().min(1).max(TARGET_CHARACTERS_MAX).optional().meta({
        description: "Add this domain, the addresses of its mail hosts and those in its SPF record.",
      }),
      dmarc_domain: z.string().trim().min(1).max(TARGET_CHARACTERS_MAX).optional().meta({
        description:
          "Add the addresses of the own servers that the DMARC reports about this domain name in the last 30 days, those with the most messages first. Needs the scope `dmarc:read`.",
      }),
      egress: optionalFlag("Add the addresses from which this service sends."),
      dry_run: optionalFlag("Only return what was found; add nothing."),
      ...sharedFields(webhookUrl),
    })
    .refine(
      ({ domain, dmarc_domain, egress }) => (domain ?? dmarc_domain) !== undefined || egress === true,
      "Give a domain, dmarc_domain, or egress: true",
    )
    .meta({ title: "BlacklistDiscovery" });

export const discoveredSchema = namedResponse("BlacklistDiscovered", {
  found: listField(
    z.object({
      target: textField("The normalized target."),
      source: textField("Where it was found, such as `MX mx1.example.com`."),
      status: enumField(["found", "created", "exists", "invalid"], "What happened; `found` with `dry_run`."),
      id,
      problem,
    }),
    "What was found.",
  ),
  unknown: textsField("What could not be found out, as sentences."),
});
