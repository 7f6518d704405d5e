import { WorkbookRefused, type WorkbookParts } from "./workbook-parts.ts";

const PART = "xl/sharedStrings.xml";
const PART_BYTES_MAX = 256 * 1024 * 1024;
/** Total size in UTF-8, and number: three unique texts in each of a million rows. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024;
const STRINGS_MAX = 3_000_000;
const FIRST_BYTES = 64 * 1024;
const FIRST_STRINGS = 1024;

/** The shared strings in one buffer, which takes a fraction of the memory of JavaScript strings. */
export interface SharedStrings {
  at(index: number): string;
}

const createStrings = () => {
  let bytes = Buffer.allocUnsafe(FIRST_BYTES);
  let ends = new Uint32Array(FIRST_STRINGS);
  let used = 0;
  let count = 0;
  return {
    add(text: string): void {
      const length = Buffer.byteLength(text);
      if (used + length > TEXT_BYTES_MAX || count >= STRINGS_MAX)
        throw new WorkbookRefused("The Excel workbook has too much text. Save the list as CSV (UTF-8).");
      if (used + length > bytes.length) {
        const more = Buffer.allocUnsafe(Math.max(bytes.length * 2, used + length));
        bytes.copy(more, 0, 0, used);
        bytes = more;
      }
      if (count === ends.length) {
        const more = new Uint32Array(count * 2);
        more.set(ends);
        ends = more;
      }
      used += bytes.write(text, used);
      ends[count++] = used;
    },
    at: (index: number): string =>
      index < count ? bytes.toString("utf8", index === 0 ? 0 : ends[index - 1], ends[index]) : "",
  };
};

/** Reads the shared strings of a workbook without phonetic hints. Throws `WorkbookRefused`. */
export const readSharedStrings = async (parts: WorkbookParts): Promise<SharedStrings> => {
  const strings = createStrings();
  let text = "";
  let isText = false;
  let isPhonetic = false;
  await parts.read(PART, {
    bytesMax: PART_BYTES_MAX,
    handler: {
      open(name) {
        if (name === "si") text = "";
        else if (name === "rPh") isPhonetic = true;
        else if (name === "t") isText = !isPhonetic;
      },
      text(piece) {
        if (isText) text += piece;
      },
      close(name) {
        if (name === "si") strings.add(text);
        else if (name === "rPh") isPhonetic = false;
        else if (name === "t") isText = false;
      },
    },
  });
  return { at: strings.at };
};
