import { DELIMITERS, type Delimiter } from "./csv-records.ts";

/** Longer than any such line. */
const HEAD_BYTES = 16;
const SEPARATOR_LINE = /^"?sep=(.)"?(?:\r\n|\n|\r)/i;

export interface SeparatorLine {
  readonly delimiter: Delimiter | undefined;
  /** How many bytes of the text it takes, its line end included. */
  readonly bytes: number;
}

/**
 * The line `sep=;` with which spreadsheets name the delimiter, when a text (UTF-8) begins with one. A character that no
 * list is separated with is not believed, but the line is no row either way.
 */
export const readSeparatorLine = async (text: AsyncIterable<Uint8Array>): Promise<SeparatorLine> => {
  let head = Buffer.alloc(0);
  for await (const chunk of text) {
    head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES)]);
    if (head.length >= HEAD_BYTES) break;
  }
  const [line, sign] = SEPARATOR_LINE.exec(head.toString()) ?? [];
  if (line === undefined) return { delimiter: undefined, bytes: 0 };
  return { delimiter: DELIMITERS.find((delimiter) => delimiter === sign), bytes: Buffer.byteLength(line) };
};
