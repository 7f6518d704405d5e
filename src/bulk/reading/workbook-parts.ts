import { SaxesParser, type SaxesTagPlain } from "saxes";
import { type Entry, openPromise, type ZipFile } from "yauzl";
import { nextTurn } from "../../foundation/base/clock.ts";
import { CHUNK_BYTES } from "./csv-records.ts";
import { ROWS_MAX } from "./csv.ts";

/** A workbook that is refused; the message is a sentence for people. */
export class WorkbookRefused extends Error {}

/** Entries of the archive; a workbook has some dozens. */
const ENTRIES_MAX = 2_000;
/** Maximum length of XML without a tag; a cell of Excel has at most 32,767 characters. */
const TOKEN_BYTES_MAX = 1024 * 1024;
/** No attribute that is read is longer: the longest is the target of a relationship. */
const ATTRIBUTE_CHARACTERS_MAX = 2_048;

const DAMAGED = "The Excel workbook is damaged. Save it again, or as CSV (UTF-8).";

/** Receives the tags and texts of a part. Names have no namespace prefix; attributes of more than 2,048 characters are left out. */
export interface PartHandler {
  open?(name: string, attributes: Readonly<Record<string, string>>): void;
  text?(text: string): void;
  close?(name: string): void;
}

export interface ReadPartOptions {
  readonly handler: PartHandler;
  /** Maximum inflated size. */
  readonly bytesMax: number;
  /** Looked at while the part is read: once true, the rest is not read. */
  readonly isEnough?: () => boolean;
}

const localName = (name: string): string => name.slice(name.indexOf(":") + 1);

const localAttributes = (tag: SaxesTagPlain): Record<string, string> =>
  Object.fromEntries(
    Object.entries(tag.attributes)
      .filter(([, value]) => value.length <= ATTRIBUTE_CHARACTERS_MAX)
      .map(([name, value]) => [localName(name), value]),
  );

/**
 * A parser that refuses a DOCTYPE and expands only the five entities of XML. A token without an end is refused before it
 * fills the memory.
 */
const createPartParser = ({ open, text, close }: PartHandler) => {
  const parser = new SaxesParser({ xmlns: false, position: false });
  const state = { bytesSinceTag: 0 };
  parser.on("doctype", () => {
    throw new WorkbookRefused("The Excel workbook contains a DOCTYPE; rejected.");
  });
  parser.on("error", () => {
    throw new WorkbookRefused(DAMAGED);
  });
  parser.on("opentag", (tag) => {
    state.bytesSinceTag = 0;
    open?.(localName(tag.name), localAttributes(tag));
  });
  parser.on("closetag", (tag) => {
    state.bytesSinceTag = 0;
    close?.(localName(tag.name));
  });
  if (text !== undefined) parser.on("text", text);
  return {
    feed(piece: string): void {
      state.bytesSinceTag += piece.length;
      if (state.bytesSinceTag > TOKEN_BYTES_MAX) throw new WorkbookRefused(DAMAGED);
      parser.write(piece);
    },
    end: (): void => void parser.close(),
  };
};

/** The parts of a workbook (.xlsx: a ZIP archive of XML, ECMA-376), read one at a time. */
export interface WorkbookParts {
  has(name: string): boolean;
  /** Streams a part; a missing one is empty. Throws `WorkbookRefused`. */
  read(name: string, options: ReadPartOptions): Promise<void>;
  close(): void;
}

const asRefusal = (error: unknown): unknown =>
  // The library reports invalid archives as plain errors; anything else is a bug.
  !(error instanceof Error) || error instanceof TypeError || error instanceof WorkbookRefused
    ? error
    : new WorkbookRefused(DAMAGED);

const readEntry = async (
  zip: ZipFile,
  entry: Entry,
  { handler, bytesMax, isEnough }: ReadPartOptions,
): Promise<void> => {
  if (entry.isEncrypted()) throw new WorkbookRefused("The Excel workbook is encrypted. Save it without a password.");
  const stream = await zip.openReadStreamPromise(entry);
  const parser = createPartParser(handler);
  const decoder = new TextDecoder();
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > bytesMax) throw new WorkbookRefused("The Excel workbook is too large. Save the list as CSV (UTF-8).");
      for (let at = 0; at < chunk.length; at += CHUNK_BYTES) {
        parser.feed(decoder.decode(chunk.subarray(at, at + CHUNK_BYTES), { stream: true }));
        if (isEnough?.() === true) return;
        await nextTurn();
      }
    }
    parser.feed(decoder.decode());
    parser.end();
  } finally {
    stream.destroy();
  }
};

/** Opens a workbook. Throws `WorkbookRefused` when it is not a ZIP archive or has too many entries. */
export const openWorkbook = async (path: string): Promise<WorkbookParts> => {
  const entries = new Map<string, Entry>();
  let zip: ZipFile | null = null;
  try {
    zip = await openPromise(path, { autoClose: false });
    if (zip.entryCount > ENTRIES_MAX) throw new WorkbookRefused(DAMAGED);
    for await (const entry of zip.eachEntry()) entries.set(entry.fileName.toLowerCase(), entry);
  } catch (error) {
    zip?.close();
    throw asRefusal(error);
  }
  const archive = zip;
  return {
    has: (name) => entries.has(name.toLowerCase()),
    async read(name, options) {
      const entry = entries.get(name.toLowerCase());
      if (entry === undefined) return;
      try {
        await readEntry(archive, entry, options);
      } catch (error) {
        throw asRefusal(error);
      }
    },
    close: () => archive.close(),
  };
};

const PART = "xl/sharedStrings.xml";
const PART_BYTES_MAX = 256 * 1024 * 1024;
/** What a workbook may have. Texts: total size in UTF-8, and number, which is three unique texts in each of a million rows. */
export const WORKBOOK_LIMITS = { rows: ROWS_MAX, textBytes: 64 * 1024 * 1024, texts: 3_000_000 };
export type WorkbookLimits = typeof WORKBOOK_LIMITS;
const FIRST_BYTES = 64 * 1024;
const FIRST_STRINGS = 1024;

/** The shared strings in one buffer, which takes a fraction of the memory of JavaScript strings. */
export interface SharedStrings {
  at(index: number): string;
}

const createStrings = ({ textBytes, texts }: WorkbookLimits) => {
  let bytes = Buffer.allocUnsafe(FIRST_BYTES);
  let ends = new Uint32Array(FIRST_STRINGS);
  let used = 0;
  let count = 0;
  return {
    add(text: string): void {
      const length = Buffer.byteLength(text);
      if (used + length > textBytes || count >= texts)
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
export const readSharedStrings = async (parts: WorkbookParts, limits: WorkbookLimits): Promise<SharedStrings> => {
  const strings = createStrings(limits);
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
