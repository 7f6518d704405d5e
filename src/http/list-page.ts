import { type Stretch, walk } from "../base/walk.ts";
import { TextResponse } from "./response.ts";
import { accountOfRequest } from "./request-memory.ts";
import { writeCursor } from "./query.ts";
import type { PageQuery } from "./route-input.ts";

const JSON_HEADERS = { "content-type": "application/json" };
/** Rows looked at in one go where a filter passes few: some milliseconds. */
const STEP = 5_000;
const ROWS_AT_ONCE = 250;

/** Where the rows of a list come from. */
export interface ListSource<R> {
  /** Rows behind a cursor (null: from the start): looks at about `looks`, gives at most `wanted`, and says where it ended. */
  readonly read: (behind: string | null, looks: number, wanted: number) => Stretch<R, string>;
  /** The cursor behind a row. */
  readonly keyOf: (row: R) => string;
  /** What the interface shows of a row, as JSON. */
  readonly json: (row: R) => string;
  /** Fewer, where a row may be large. */
  readonly rowsAtOnce?: number;
}

/**
 * One page of a list as JSON, `{ [name]: [...], next_cursor }`. It ends before `limit` rows when it has `PAGE_BYTES_MAX` bytes, or when
 * a filter passed next to nothing among a million rows: then it has a `next_cursor`. It is read in steps between which others
 * have their turn.
 */
export const sendPage = async <R>(
  request: Request,
  { name, page }: { readonly name: string; readonly page: PageQuery },
  { read, keyOf, json, rowsAtOnce = ROWS_AT_ONCE }: ListSource<R>,
): Promise<Response> => {
  const answer = new TextResponse(request);
  try {
    const { rows, next } = await walk<{ readonly key: string; readonly text: string }, string | null>(
      {
        read(behind, looks, wanted) {
          const { rows: found, end } = read(behind, looks, wanted);
          return { rows: found.map((row) => ({ key: keyOf(row), text: json(row) })), end };
        },
        keyOf: ({ key }) => key,
        step: STEP,
        rowsAtOnce,
        weigh({ text }) {
          const bytes = Buffer.byteLength(text);
          answer.reserve(bytes);
          return bytes;
        },
      },
      { before: page.cursor, limit: page.limit, account: accountOfRequest(request) },
    );
    answer.write(`{${JSON.stringify(name)}:[`);
    for (const [at, { text }] of rows.entries()) answer.write(at === 0 ? text : `,${text}`);
    answer.write(`],"next_cursor":${JSON.stringify(next === null ? null : writeCursor(next))}}`);
    return answer.send(JSON_HEADERS);
  } catch (error) {
    answer.abandon();
    throw error;
  }
};

/** Rows in the order of their ids that are few, or that no filter is held against. */
export const readPlainly =
  <R extends { readonly id: string }>(list: (page: { before: string | null; limit: number }) => readonly R[]) =>
  (before: string | null, _looks: number, wanted: number): Stretch<R, string> => {
    const rows = list({ before, limit: wanted });
    return { rows, end: rows.length < wanted ? null : (rows.at(-1)?.id ?? null) };
  };

/** Lists of rows that have an id for a cursor. */
export const rowsById = <R extends { readonly id: string }>(
  read: ListSource<R>["read"],
  view: (row: R) => unknown,
): ListSource<R> => ({ read, keyOf: ({ id }) => id, json: (row) => JSON.stringify(view(row)) });
