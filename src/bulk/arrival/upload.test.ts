import { afterEach, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppError } from "../../foundation/base/errors.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { LIST_BYTES_MAX, receiveUpload, uploadBytesMax, FIELDS_MAX, FIELD_BYTES_MAX, STALL_MS_MAX } from "./upload.ts";

const LIST = "email\r\nada@example.org\r\n\r\n--b\r\nnot a boundary\r\n";
const folders: string[] = [];

const newFolder = async (): Promise<string> => {
  const folder = join(await mkdtemp(join(tmpdir(), "postwarden-upload-")), "lists");
  folders.push(folder);
  return folder;
};

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(join(folder, ".."), { recursive: true, force: true });
});

type Body = string | readonly Uint8Array[] | ReadableStream<Uint8Array>;

const streamOf = (chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

const requestOf = (contentType: string, body: Body, headers: Record<string, string> = {}): Request =>
  new Request("http://localhost/v1/bulk-verifications", {
    method: "POST",
    headers: { "content-type": contentType, ...headers },
    body: typeof body === "string" || body instanceof ReadableStream ? body : streamOf(body),
  });

const receive = async (request: Request, bytesMax = 1000) => {
  const folder = await newFolder();
  const upload = await receiveUpload(request, { folder, bytesMax, clock: createTestClock(), account: "a" });
  return { ...upload, text: await Bun.file(upload.path).text(), names: await readdir(folder) };
};

/** The code and message of the refusal; fails when there is none, or when a file is left behind. */
const refusal = async (request: Request, bytesMax = 1000) => {
  const folder = await newFolder();
  const error = await receiveUpload(request, { folder, bytesMax, clock: createTestClock(), account: "a" }).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(await readdir(folder).catch(() => [])).toEqual([]);
  if (!(error instanceof AppError)) throw error ?? new Error("The upload was taken");
  return `${error.code}: ${error.details.message}`;
};

const part = (name: string, value: string, fileName?: string): string =>
  `--b0undary\r\nContent-Disposition: form-data; name="${name}"${
    fileName === undefined ? "" : `; filename="${fileName}"\r\nContent-Type: text/csv`
  }\r\n\r\n${value}\r\n`;
const form = (...parts: string[]): string => `${parts.join("")}--b0undary--\r\n`;
const FORM_TYPE = "multipart/form-data; boundary=b0undary";
const FILE = part("file", LIST, "list.csv");

describe("a list as the body", () => {
  test.each([
    "text/csv",
    "Text/CSV; charset=utf-8",
    "text/plain",
    "text/tab-separated-values",
    "application/octet-stream",
  ])("of type %s is stored unchanged in a file that only the owner may read", async (type) => {
    const upload = await receive(requestOf(type, LIST));
    expect(upload).toMatchObject({ text: LIST, bytes: LIST.length, fileName: null, fields: {} });
    expect(upload.names).toHaveLength(1);
  });

  test("is readable for its owner only", async () => {
    const folder = await newFolder();
    const { path } = await receiveUpload(requestOf("text/csv", LIST), {
      folder,
      clock: createTestClock(),
      account: "a",
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
  });

  test("arrives in chunks of any size", async () => {
    const chunks = Array.from(Buffer.from(LIST), (byte) => Uint8Array.of(byte));
    expect((await receive(requestOf("text/csv", chunks))).text).toBe(LIST);
  });

  test.each(["application/json", "application/x-www-form-urlencoded", "image/png", ""])(
    "of type %p is refused with 415",
    async (type) => {
      const message = await refusal(requestOf(type, LIST));
      expect(message).toStartWith("unsupported_media_type: Send the list as text/csv");
      expect(message).toEndWith(type === "" ? "multipart/form-data." : `, not ${type}.`);
    },
  );

  test("compressed is refused with 415", async () => {
    const request = requestOf("text/csv", LIST, { "content-encoding": "gzip" });
    expect(await refusal(request)).toContain("Content-Encoding");
  });

  test("may have exactly as many bytes as allowed", async () => {
    expect((await receive(requestOf("text/csv", LIST), LIST.length)).text).toBe(LIST);
    const announced = { "content-length": String(LIST.length) };
    expect((await receive(requestOf("text/csv", LIST, announced), LIST.length)).text).toBe(LIST);
    expect(await refusal(requestOf("text/csv", LIST), LIST.length - 1)).toStartWith("payload_too_large");
  });

  test("with a too large Content-Length is refused before it is read", async () => {
    let isRead = false;
    const pull = (): void => {
      isRead = true;
    };
    const stream = new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
    const request = requestOf("text/csv", stream, { "content-length": "1001" });
    expect(await refusal(request)).toStartWith("payload_too_large");
    expect(isRead).toBe(false);
  });

  test("without a Content-Length is refused as soon as it is too long", async () => {
    let pulls = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulls += 1;
        controller.enqueue(new Uint8Array(100));
      },
    });
    expect(await refusal(requestOf("text/csv", stream))).toStartWith("payload_too_large");
    expect(pulls).toBeLessThan(20);
  });

  test("that is empty or truncated is refused", async () => {
    expect(await refusal(requestOf("text/csv", ""))).toContain("empty");
    const short = requestOf("text/csv", [Buffer.from(LIST)], { "content-length": String(LIST.length + 1) });
    expect(await refusal(short)).toContain("ended prematurely");
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new DOMException("The connection was closed.", "AbortError")),
    });
    expect(await refusal(requestOf("text/csv", broken))).toBe("Invalid request body: The upload ended prematurely.");
  });

  test("that stalls is refused", async () => {
    const clock = createTestClock();
    const folder = await newFolder();
    const silent = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from("email\n")),
    });
    const upload = receiveUpload(requestOf("text/csv", silent), { folder, clock, account: "a" });
    const outcome = upload.then(
      () => "taken",
      (error: Error) => error.message,
    );
    while (clock.pending() === 0) await settle();
    await settle();
    await clock.advance(STALL_MS_MAX);
    expect(await outcome).toContain("no data for 30 s");
    expect(await readdir(folder)).toEqual([]);
  });
});

describe("a list in a form", () => {
  test("is stored unchanged, with its name and the fields before and after it", async () => {
    const body = form(part("column", "E-Mail"), FILE, part("webhook_url", "https://example.org/?a=b"));
    expect(await receive(requestOf(FORM_TYPE, body))).toMatchObject({
      text: LIST,
      bytes: LIST.length,
      fileName: "list.csv",
      fields: { column: "E-Mail", webhook_url: "https://example.org/?a=b" },
    });
  });

  test("arrives in chunks cut anywhere, with or without an epilogue", async () => {
    for (const epilogue of ["", "epilogue\r\n"]) {
      const bytes = Buffer.from(form(part("name", "Ünal"), FILE, part("source", "x")) + epilogue);
      const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
      const cuts = Array.from({ length: bytes.length - 1 }, (_, at) => [
        bytes.subarray(0, at + 1),
        bytes.subarray(at + 1),
      ]);
      for (const chunks of [pieces, ...cuts.filter((_, at) => at % 5 === 0)]) {
        const upload = await receive(requestOf(FORM_TYPE, chunks));
        expect(upload).toMatchObject({ text: LIST, fields: { name: "Ünal", source: "x" } });
      }
    }
  });

  test("may be a part without a file name", async () => {
    expect(await receive(requestOf(FORM_TYPE, form(part("file", LIST))))).toMatchObject({ text: LIST, fileName: null });
  });

  test("has a name without a path", async () => {
    const upload = await receive(requestOf(FORM_TYPE, form(part("file", LIST, "../../etc/list.csv"))));
    expect(upload.fileName).toBe("list.csv");
  });

  test("may be larger than a field", async () => {
    const long = "a@example.org\n".repeat(FIELD_BYTES_MAX);
    const upload = await receive(requestOf(FORM_TYPE, form(part("file", long, "list.csv"))), long.length);
    expect(upload.bytes).toBe(long.length);
  });

  test.each([
    ["no file", form(part("column", "email")), 'no part "file"'],
    ["nothing", "--b0undary--\r\n", 'no part "file"'],
    ["an empty file", form(part("file", "", "list.csv")), "empty"],
    ["two files", form(FILE, FILE), "more than one file"],
    ["a file by another name", form(part("list", LIST, "list.csv")), 'in the part "file"'],
    ["a field twice", form(FILE, part("name", "x"), part("name", "y")), '"name" must not be repeated'],
    ["a field that is too long", form(FILE, part("name", "x".repeat(FIELD_BYTES_MAX + 1))), "too long"],
    [
      "too many fields",
      form(FILE, ...Array.from({ length: FIELDS_MAX + 1 }, (_, index) => part(`f${index}`, "x"))),
      `at most ${FIELDS_MAX} fields`,
    ],
    ["no boundary", "email\nada@example.org\n", "truncated"],
    ["too large a file", form(part("file", "x".repeat(1001), "list.csv")), "at most 1,000 bytes"],
  ])("with %s is refused", async (_what, body, message) => {
    expect(await refusal(requestOf(FORM_TYPE, body))).toContain(message);
  });

  test("with too many bytes around the file is refused", async () => {
    expect(await refusal(requestOf(FORM_TYPE, `${"x".repeat(300 * 1024)}\r\n${form(FILE)}`))).toStartWith(
      "payload_too_large",
    );
  });

  test("without a boundary in its type is refused", async () => {
    expect(await refusal(requestOf("multipart/form-data", form(FILE)))).toContain("no boundary");
  });

  test("that is truncated at any byte is refused, unless only the final bytes are missing", async () => {
    const bytes = Buffer.from(form(part("column", "email"), FILE));
    const complete = bytes.length - "\r\n".length;
    for (let length = 1; length < complete; length += length > 280 ? 1 : 7) {
      expect(await refusal(requestOf(FORM_TYPE, [bytes.subarray(0, length)]))).toStartWith("Invalid request body");
    }
    expect((await receive(requestOf(FORM_TYPE, [bytes.subarray(0, complete)]))).text).toBe(LIST);
  });
});

test("a client that disconnects during an upload leaves nothing behind", async () => {
  const folder = await newFolder();
  const outcome = Promise.withResolvers<string>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      await receiveUpload(request, { folder, clock: createTestClock(), account: "a" }).then(
        () => outcome.resolve("taken"),
        (error: Error) => outcome.resolve(error.message),
      );
      return new Response();
    },
  });
  const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nemail\r\n";
  const ignore = { data: () => undefined };
  const socket = await Bun.connect({ hostname: "127.0.0.1", port: server.port ?? 0, socket: ignore });
  socket.write(head);
  socket.flush();
  while ((await readdir(folder).catch(() => [])).length === 0) await settle();
  socket.end();
  expect(await outcome.promise).toBe("The upload ended prematurely.");
  expect(await readdir(folder)).toEqual([]);
  await server.stop(true);
});

test.each([
  ["12", 12],
  ["0", 0],
  ["-1", LIST_BYTES_MAX],
  [null, LIST_BYTES_MAX],
  ["nonsense", LIST_BYTES_MAX],
  [String(LIST_BYTES_MAX + 1), LIST_BYTES_MAX],
] as const)("a list with a Content-Length of %p has at most %i bytes on the disk", (length, bytes) => {
  const headers = length === null ? {} : { "content-length": length };
  expect(uploadBytesMax(requestOf("text/csv", streamOf([]), headers))).toBe(bytes);
});
