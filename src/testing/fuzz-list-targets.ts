import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { AppError } from "../foundation/base/errors.ts";
import type { ByteSource } from "../bulk/reading/csv-records.ts";
import { inspectList, readRows } from "../bulk/reading/csv.ts";
import { readForm } from "../bulk/arrival/upload.ts";
import { WorkbookRefused } from "../bulk/reading/workbook-parts.ts";
import { writeWorkbookAsCsv } from "../bulk/reading/workbook.ts";
import { readEmbeddedCatalogue } from "../blocklist/lists/catalogue.ts";
import { decodeResponse } from "../blocklist/lists/decode.ts";
import { readJson } from "../foundation/http/body.ts";
import { retryAfterMs } from "../notifications/webhooks/send.ts";
import { createTestClock } from "./clock.ts";
import { type FuzzTarget, must } from "./fuzz-target.ts";
import { workbookWith } from "./workbook.ts";

const utf8 = new TextEncoder();
const textOf = (input: Uint8Array): string => new TextDecoder().decode(input);
const DAY_MS = 24 * 60 * 60 * 1000;
const CSV_BYTES_MAX = 1024 * 1024;
const PIECE_BYTES = 7;

const pieces = (input: Uint8Array, bytes: number): ByteSource =>
  async function* source() {
    for (let at = 0; at < input.length; at += bytes) yield input.subarray(at, at + bytes);
  };

const checkCsv = async (input: Uint8Array): Promise<void> => {
  const source = pieces(input, Math.max(1, input.length));
  const inspected = await inspectList(source, { header: "auto" });
  const split = await inspectList(pieces(input, PIECE_BYTES), { header: "auto" });
  must(JSON.stringify(inspected) === JSON.stringify(split), "splitting the input changed how it is read");
  if (!inspected.ok) return must(inspected.error.reason !== "", "refused without a reason");
  const { shape } = inspected.value;
  let rows = 0;
  for await (const batch of readRows(source, shape))
    for (const { rowIndex } of batch) must(rowIndex === rows++, "the rows are not numbered in order");
  must(rows === shape.rows, "not as many rows as were counted");
};

const checkWorkbook = async (input: Uint8Array): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-fuzz-"));
  try {
    const [path, target] = [join(folder, "in.xlsx"), join(folder, "out.csv")];
    await Bun.write(path, input);
    await writeWorkbookAsCsv(path, target, { bytesMax: CSV_BYTES_MAX });
    await checkCsv(await Bun.file(target).bytes());
  } catch (error) {
    if (!(error instanceof WorkbookRefused)) throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const checkForm = async (input: Uint8Array): Promise<void> => {
  let bytes = 0;
  const onFileBytes = async (part: Uint8Array): Promise<void> => {
    bytes += part.length;
  };
  const chunks = pieces(input, 1024)();
  const form = { contentType: "multipart/form-data; boundary=b", chunks, clock: createTestClock(), onFileBytes };
  try {
    await readForm(form);
    must(bytes <= input.length, "more bytes than were sent");
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
};

const bodySchema = z.strictObject({ emails: z.array(z.string()).max(10), name: z.string().optional() });

const checkJsonBody = async (input: Uint8Array): Promise<void> => {
  const request = new Request("http://localhost/", { method: "POST", body: new Uint8Array(input) });
  try {
    const { emails } = await readJson(request, bodySchema);
    must(emails.length <= 10, "the schema was not applied");
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    must(JSON.stringify(error.details).length < 20_000, "the error repeats the body");
  }
};

const LISTS = readEmbeddedCatalogue().lists;

/** The lines of the input are the A records of a response. */
const checkListResponse = (input: Uint8Array): void => {
  const records = textOf(input).split("\n");
  for (const list of LISTS) {
    const decoded = decodeResponse(list, { outcome: "response", records });
    if (decoded.outcome === "listed")
      must(
        records.some((text) => text.startsWith("127.")),
        "listed without an address in 127.0.0.0/8",
      );
  }
};

const checkRetryAfter = (input: Uint8Array): void => {
  const waitMs = retryAfterMs(textOf(input), 0);
  must(waitMs === null || (waitMs >= 0 && waitMs <= DAY_MS), "a wait that is negative, unlimited or no number");
};

const FORM =
  '--b\r\nContent-Disposition: form-data; name="column"\r\n\r\nemail\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv\r\n\r\nemail\r\na@example.com\r\n--b--\r\n';
const ROW =
  '<row r="1"><c t="inlineStr"><is><t>email</t></is></c></row><row r="2"><c t="s"><v>0</v></c><c><v>5000</v></c></row>';

/** The parsers of lists, request bodies, blocklist responses and responses of webhook receivers. */
export const LIST_FUZZ_TARGETS: readonly FuzzTarget[] = [
  {
    name: "csv",
    seeds: [
      "email\na@example.com\n",
      'sep=;\r\nTitle\r\nName;E-Mail\r\n"A ""x""\r\n";a@example.com;\r\n',
      "\ufeffname\temail\nA\ta@example.com\n\nB\tb@example.com",
    ].map((text) => utf8.encode(text)),
    check: checkCsv,
  },
  {
    name: "workbook",
    seeds: [workbookWith({ rows: ROW, strings: "<si><t>a@example.com</t></si>" })],
    check: checkWorkbook,
  },
  { name: "form", seeds: [utf8.encode(FORM)], check: checkForm },
  {
    name: "json-body",
    seeds: ['{"emails":["a@example.com"],"name":"x"}', '{"emails":[1,{"a":[[]]},"\\ud800"]}'].map((text) =>
      utf8.encode(text),
    ),
    check: checkJsonBody,
  },
  {
    name: "blocklist-response",
    seeds: ["127.0.0.2\n127.0.0.10", "127.255.255.254", "203.0.113.1", "127.0.1.2\n127.0.0.1"].map((text) =>
      utf8.encode(text),
    ),
    check: checkListResponse,
  },
  {
    name: "retry-after",
    seeds: ["120", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1e9", "99999999999999999999"].map((text) =>
      utf8.encode(text),
    ),
    check: checkRetryAfter,
  },
];
