import type { z } from "zod";
import { AppError } from "../base/errors.ts";
import { clockOf, reserveBody } from "./request-memory.ts";
import { waitFor } from "../base/wait.ts";
import { validationMessage } from "./validation-messages.ts";
import { nextTurn } from "../base/clock.ts";

/** Largest accepted JSON request body, in bytes. */
export const JSON_BODY_BYTES_MAX = 1024 * 1024;

/** Deadline for receiving a body. */
const BODY_MS_MAX = 120_000;

const tooLarge = (bytesMax: number) =>
  new AppError("payload_too_large", { message: `The request body exceeds ${bytesMax.toLocaleString("en")} bytes.` });

/**
 * Joins the pieces as they arrive: joining 64 MB at the end would hold the event loop for 80 ms. The block grows with what
 * has arrived, never with what is only declared, since just the former is counted.
 */
const readStream = async (stream: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Uint8Array> => {
  let block = new Uint8Array(0);
  let bytes = 0;
  for await (const chunk of stream) {
    const end = bytes + chunk.byteLength;
    if (end > bytesMax) throw tooLarge(bytesMax);
    if (end > block.byteLength) block = enlarged(block, Math.min(bytesMax, Math.max(end, 2 * block.byteLength)));
    block.set(chunk, bytes);
    bytes = end;
  }
  return block.subarray(0, bytes);
};

const enlarged = (block: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> => {
  const larger = new Uint8Array(bytes);
  larger.set(block);
  return larger;
};

/**
 * The body's bytes, or 413 as soon as it is known to be longer than `bytesMax`, or 415 when it is compressed. `watch`, when
 * given, has the pieces pass through it, and may throw.
 */
export const readBytes = async (
  request: Request,
  bytesMax: number,
  watch?: (body: ReadableStream<Uint8Array>) => AsyncIterable<Uint8Array>,
): Promise<Uint8Array> => {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new AppError("unsupported_media_type", {
      message: "Compressed request bodies are not supported. Send it without Content-Encoding.",
    });
  }
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > bytesMax) throw tooLarge(bytesMax);
  if (request.body === null) {
    await abortIfClientGone(request);
    return new Uint8Array();
  }
  if (watch !== undefined) return readStream(watch(request.body), bytesMax);
  if (declared !== null) reserveBody(request, Number(declared));
  const reading = declared === null ? readStream(counted(request, request.body), bytesMax) : request.bytes();
  // Most bodies have arrived by the next turn and need no timer.
  reading.catch(nothing);
  await abortIfClientGone(request);
  if (Bun.peek.status(reading) !== "pending") return reading;
  const bytes = await inTime(request, reading);
  await abortIfClientGone(request);
  return bytes;
};

const nothing = () => undefined;

async function* counted(request: Request, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of body) {
    reserveBody(request, chunk.byteLength);
    yield chunk;
  }
}

/** Settles as `reading` does, or throws 400 when the body has not arrived in time. */
const inTime = async <T>(request: Request, reading: Promise<T>): Promise<T> => {
  const clock = clockOf(request);
  if (clock === undefined) return reading;
  const waited = await waitFor(clock, reading, { timeoutMs: BODY_MS_MAX });
  if (waited.ok) return waited.value;
  const message = `The request body did not arrive within ${BODY_MS_MAX / 1000} seconds.`;
  throw new AppError("Invalid request body", { message });
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** The value in a JSON body; 400 where the text is not JSON. */
export const parseJson = (bytes: Uint8Array): unknown => {
  const excess = findExcess(bytes);
  if (excess !== null) throw new AppError("Invalid request body", { message: excess });
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError)
      throw new AppError("Request body must be valid JSON");
    throw error;
  }
};

/** A response lists at most this many validation errors: a body of 1 MB must not cause a response of 4 MB. */
const ISSUES_MAX = 20;
/** Longer paths are cut in validation errors. */
export const PATH_CHARACTERS_MAX = 100;

export const issuesOf = (error: z.ZodError, what: string) => {
  const all = error.issues.flatMap((issue) => {
    const path = issue.path.join(".");
    if (issue.code === "invalid_type" && issue.input === undefined) return [{ path, message: "Required" }];
    if (issue.code !== "unrecognized_keys") return [{ path, message: issue.message }];
    const keys = issue.keys.slice(0, ISSUES_MAX);
    return keys.map((key) => ({ path: path === "" ? key : `${path}.${key}`, message: `Unknown ${what}` }));
  });
  return all.slice(0, ISSUES_MAX).map(({ path, message }) => ({ path: path.slice(0, PATH_CHARACTERS_MAX), message }));
};

/** Validates data from outside by a schema. Throws a 400 with `code` and the issues. */
export const checked = <S extends z.ZodType>(
  schema: S,
  data: unknown,
  code: "Invalid request body" | "Invalid query",
): z.output<S> => {
  const isQuery = code === "Invalid query";
  // Messages of the schema itself take precedence.
  const read = schema.safeParse(data, { reportInput: true, error: (issue) => validationMessage(issue, isQuery) });
  if (read.success) return read.data;
  throw new AppError(code, { issues: issuesOf(read.error, isQuery ? "parameter" : "field") });
};

/**
 * Reads the request body as JSON, whatever its Content-Type, and validates it.
 * 400 `Request body must be valid JSON`, 400 `Invalid request body` with `issues`, 413.
 */
export const readJson = async <S extends z.ZodType>(
  request: Request,
  schema: S,
  bytesMax = JSON_BODY_BYTES_MAX,
): Promise<z.output<S>> => checked(schema, parseJson(await readBytes(request, bytesMax)), "Invalid request body");

/** The same for an optional body: without one, `{}`. */
export const readOptionalJson = async <S extends z.ZodType>(request: Request, schema: S): Promise<z.output<S>> => {
  const bytes = await readBytes(request, JSON_BODY_BYTES_MAX);
  return checked(schema, bytes.byteLength === 0 ? {} : parseJson(bytes), "Invalid request body");
};

/** Limits of a whole body, far above what any client needs to send. */
const MEMBERS_MAX = 10_000;
const CONTAINERS_MAX = 10_000;
const VALUES_MAX = 200_000;
const STRING_BYTES_MAX = 1024 * 1024;

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_ARRAY, OPEN_OBJECT] = [0x5b, 0x7b];

/** Where the string that begins at `from` ends: the index of its closing quote, or the length where there is none. */
const endOfString = (bytes: Uint8Array, from: number) => {
  let at = from + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return Math.min(at, bytes.length);
};

/**
 * Checks JSON text against the limits before it is parsed: hundreds of thousands of members would block the event loop for
 * a second. Returns the limit that it exceeds as a sentence, or null. Does not check that it is valid JSON.
 */
export const findExcess = (bytes: Uint8Array): string | null => {
  let [members, containers, values] = [0, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE: {
        const end = endOfString(bytes, at);
        if (end - at > STRING_BYTES_MAX) return "The body contains a string of more than 1 MiB.";
        at = end;
        break;
      }
      case COMMA:
        if (++values > VALUES_MAX) return `The body has more than ${VALUES_MAX.toLocaleString("en")} values.`;
        break;
      case COLON:
        if (++members > MEMBERS_MAX) return `The body has more than ${MEMBERS_MAX.toLocaleString("en")} fields.`;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        if (++containers > CONTAINERS_MAX)
          return `The body has more than ${CONTAINERS_MAX.toLocaleString("en")} objects and arrays.`;
        break;
      default:
    }
  }
  return null;
};

/** The query parameters of a request. */
export const parametersOf = (request: Request): URLSearchParams => {
  const at = request.url.indexOf("?");
  return new URLSearchParams(at === -1 ? "" : request.url.slice(at + 1));
};

/** Query parameters as an object. One that is repeated becomes an array, which no schema accepts. */
export const queryOf = (request: Request): Readonly<Record<string, unknown>> => {
  const parameters = parametersOf(request);
  // Not by assignment: a parameter called __proto__ is an unknown one like any other.
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
};

/** The query of a route whose parameters depend on its body; 400 `Invalid query` with the issues. */
export const readQuery = <S extends z.ZodType>(request: Request, schema: S): z.output<S> =>
  checked(schema, queryOf(request), "Invalid query");

/**
 * Throws an `AbortError` if the client has disconnected one turn of the event loop later.
 *
 * The runtime does not support pipelining (RFC 9112 §9.3.2): it closes a connection on which a second request arrives before the
 * response to the first, but only after it has passed the first one on. Requests that change something wait for that turn, so that a request
 * that can get no response is not executed and not charged.
 */
export const abortIfClientGone = async ({ signal }: Request): Promise<void> => {
  await nextTurn();
  if (signal.aborted) throw new DOMException("The client disconnected", "AbortError");
};
