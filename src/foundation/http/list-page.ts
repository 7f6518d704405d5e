import { type ReadRows, walk } from "../base/walk.ts";
import { TextResponse } from "./response.ts";
import { accountOfRequest } from "./request-memory.ts";
import { encodeCursor, type PageQuery } from "./route-input.ts";

const JSON_HEADERS = { "content-type": "application/json" };
/** Rows read between two yields where few pass a filter: some milliseconds. */
const STEP = 5_000;
const ROWS_AT_ONCE = 250;

/** The source of a list's rows. */
export interface ListSource<R> {
  /** Reads rows after a cursor; null: from the start. */
  readonly read: ReadRows<R, string | null>;
  /** The cursor after a row. */
  readonly keyOf: (row: R) => string;
  /** The row in the response, as JSON. */
  readonly json: (row: R) => string;
  /** Fewer for rows that can be large. */
  readonly rowsAtOnce?: number;
}

/**
 * Sends one page of a list as JSON, `{ [name]: [...], next_cursor }`. A page ends before `limit` rows at `PAGE_BYTES_MAX` bytes, or
 * if almost no row among a million passes the filters; `next_cursor` then continues. Yields to other requests while reading.
 */
export const sendPage = async <R>(
  request: Request,
  { name, page }: { readonly name: string; readonly page: PageQuery },
  { read, keyOf, json, rowsAtOnce = ROWS_AT_ONCE }: ListSource<R>,
): Promise<Response> => {
  const response = new TextResponse(request);
  try {
    const { rows, next } = await walk<{ readonly key: string; readonly text: string }, string | null>(
      {
        read(behind, looks, wanted) {
          const found = read(behind, looks, wanted);
          return { rows: found.rows.map((row) => ({ key: keyOf(row), text: json(row) })), next: found.next };
        },
        keyOf: ({ key }) => key,
        step: STEP,
        rowsAtOnce,
        weigh({ text }) {
          const bytes = Buffer.byteLength(text);
          response.reserve(bytes);
          return bytes;
        },
      },
      { before: page.cursor, limit: page.limit, account: accountOfRequest(request) },
    );
    response.write(`{${JSON.stringify(name)}:[`);
    for (const [at, { text }] of rows.entries()) response.write(at === 0 ? text : `,${text}`);
    response.write(`],"next_cursor":${JSON.stringify(next === null ? null : encodeCursor(next))}}`);
    return response.send(JSON_HEADERS);
  } catch (error) {
    response.abandon();
    throw error;
  }
};

/** The source of a list whose cursor is the id of a row. */
export const rowsById = <R extends { readonly id: string }>(
  read: ListSource<R>["read"],
  view: (row: R) => unknown,
): ListSource<R> => ({ read, keyOf: ({ id }) => id, json: (row) => JSON.stringify(view(row)) });
