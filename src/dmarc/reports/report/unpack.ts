import { gunzip, isGzip, type Inflated, inflateRaw } from "./inflate.ts";
import type { UnpackProblem } from "./report.ts";
import { nextTurn } from "../../../foundation/base/clock.ts";
import { looksLikeMessage } from "../../../foundation/mail/message.ts";
import { type Entry, fromBufferPromise } from "yauzl";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";

/**
 * What unpacking one mail, with everything in it, may cost. Bytes that are thrown away because a file is too large count as well.
 * The largest reports that reporters send unpack to a few megabytes: some 500 bytes a record.
 */
export const UNPACK_LIMITS = {
  entryBytesMax: 32 * 1024 * 1024,
  mailBytesMax: 64 * 1024 * 1024,
  entriesMax: 16,
  /** Archives in archives, and mails in mails. */
  depthMax: 3,
} as const;

/** What is left of the allowance of one mail. Shared by all of its parts, and used up as they are unpacked. */
export interface UnpackBudget {
  bytesLeft: number;
  entriesLeft: number;
}

export const createUnpackBudget = (): UnpackBudget => ({
  bytesLeft: UNPACK_LIMITS.mailBytesMax,
  entriesLeft: UNPACK_LIMITS.entriesMax,
});

/** A file that is not an archive, or why one could not be unpacked. */
export type Unpacked =
  | {
      readonly kind: "xml" | "json" | "message" | "unused" | "other";
      readonly name: string | null;
      readonly bytes: Uint8Array;
      /** The archive ended early: the bytes are incomplete. */
      readonly isTruncated: boolean;
    }
  | { readonly kind: "refused"; readonly name: string | null; readonly reason: UnpackProblem };

interface Packed {
  readonly bytes: Uint8Array;
  readonly name: string | null;
  readonly isTruncated: boolean;
  readonly depth: number;
}

/**
 * Unpacks gzip files, zip archives and base64 texts, also nested, and detects the files in them by magic bytes, never by
 * name. A file that exceeds a limit or cannot be unpacked is `refused` with the reason; the rest is still returned. Never throws.
 */
export const unpack = async (
  bytes: Uint8Array,
  name: string | null = null,
  budget: UnpackBudget = createUnpackBudget(),
): Promise<Unpacked[]> => {
  const waiting: Packed[] = [{ bytes, name, isTruncated: false, depth: 0 }];
  const found: Unpacked[] = [];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { contents, refused } = await open(next, budget);
    waiting.push(...contents.filter((content) => content.depth > next.depth));
    found.push(...contents.filter((content) => content.depth === next.depth).map(bottomOf), ...refused);
  }
  return found;
};

interface Opened {
  /** The contents, one level deeper; or the file itself, when it is not an archive. */
  readonly contents: readonly Packed[];
  readonly refused: readonly Unpacked[];
}

const open = async (packed: Packed, budget: UnpackBudget): Promise<Opened> => {
  const kind = kindOfPayload(packed.bytes);
  if (kind !== "gzip" && kind !== "zip" && kind !== "base64") return { contents: [packed], refused: [] };
  if (packed.depth >= UNPACK_LIMITS.depthMax) return refuse(packed.name, "nested_too_deep");
  if (kind === "zip") return openZip(packed, budget);
  if (kind === "base64") {
    const bytes = await decodeBase64Text(packed.bytes);
    budget.bytesLeft -= bytes?.byteLength ?? 0;
    return { contents: [bytes === null ? packed : { ...packed, bytes, depth: packed.depth + 1 }], refused: [] };
  }
  return openGzip(packed, budget);
};

const openGzip = async (packed: Packed, budget: UnpackBudget): Promise<Opened> => {
  const bytesMax = takeEntry(budget);
  const file = await gunzip(packed.bytes, bytesMax);
  if (!file.ok) {
    return refuse(packed.name, file.error === "too_large" ? payTooLarge(budget, bytesMax) : "gzip_damaged");
  }
  budget.bytesLeft -= file.value.bytes.byteLength;
  const isTruncated = packed.isTruncated || file.value.isTruncated;
  return { contents: [{ ...packed, bytes: file.value.bytes, isTruncated, depth: packed.depth + 1 }], refused: [] };
};

const openZip = async (packed: Packed, budget: UnpackBudget): Promise<Opened> => {
  const contents: Packed[] = [];
  const refused: Unpacked[] = [];
  const problem = await readZip(packed.bytes, async ({ name, open: openFile }) => {
    if (budget.entriesLeft < 1) {
      refused.push({ kind: "refused", name: packed.name, reason: "too_many_entries" });
      return "stop";
    }
    const bytesMax = takeEntry(budget);
    const file = await openFile(bytesMax);
    if (!file.ok) {
      const reason = file.error === "entry_too_large" ? payTooLarge(budget, bytesMax) : file.error;
      refused.push({ kind: "refused", name, reason });
      return "go_on";
    }
    const { bytes, isTruncated } = file.value;
    budget.bytesLeft -= bytes.byteLength;
    contents.push({ bytes, name, isTruncated, depth: packed.depth + 1 });
    return "go_on";
  });
  if (problem !== null) refused.push({ kind: "refused", name: packed.name, reason: problem });
  return { contents, refused };
};

const refuse = (name: string | null, reason: UnpackProblem): Opened => ({
  contents: [],
  refused: [{ kind: "refused", name, reason }],
});

/** Uses up one entry of the budget; returns how many bytes it may have. */
const takeEntry = (budget: UnpackBudget) => {
  budget.entriesLeft -= 1;
  return budget.entriesLeft < 0 ? 0 : Math.min(UNPACK_LIMITS.entryBytesMax, budget.bytesLeft);
};

/** Charges the budget with the bytes that an entry was allowed, and returns which limit it exceeded. */
const payTooLarge = (budget: UnpackBudget, bytesMax: number): UnpackProblem => {
  if (budget.entriesLeft < 0) return "too_many_entries";
  budget.bytesLeft -= bytesMax;
  return bytesMax < UNPACK_LIMITS.entryBytesMax ? "mail_too_large" : "entry_too_large";
};

const bottomOf = ({ bytes, name, isTruncated }: Packed): Unpacked => {
  const kind = kindOfPayload(bytes);
  const isBottom = kind === "xml" || kind === "json" || kind === "message" || kind === "unused";
  return { kind: isBottom ? kind : "other", name, bytes, isTruncated };
};

/** The format of a file, detected from its bytes alone: names and content types are wrong too often. */
type PayloadKind = "gzip" | "zip" | "xml" | "json" | "message" | "base64" | "unused" | "other";

/** Bytes that are examined. */
const HEAD_BYTES = 4096;
/** Where XML may begin in a text at the latest. */
const PREAMBLE_BYTES = 64 * 1024;
/** The first base64 characters of a gzip file, a zip archive and XML. */
const BASE64_START = /^(?:H4sI|UEsDB|PD94bWw|PGZlZWRiYWNr|77u\/PD94)/;

/** How HTML begins. A report quoted in HTML is found nevertheless. */
const HTML_START = /^<(?:!doctype\s+html\b|(?:html|head|body|div|p|span|table|b|i|br|a|font|center|style|meta)\b)/i;

const latin1 = new TextDecoder("latin1");

/** The format of some bytes. `other` is everything that should contain no report: images, HTML, text. */
export const kindOfPayload = (bytes: Uint8Array): PayloadKind => {
  if (isGzip(bytes)) return "gzip";
  if (isZip(bytes)) return "zip";
  // UTF-16 without its zeros is ASCII, which is enough for detection.
  const head = latin1.decode(bytes.subarray(0, HEAD_BYTES)).replace(/\0/g, "");
  const start = head.replace(/^(?:\u00ef\u00bb\u00bf|\u00ff\u00fe|\u00fe\u00ff)?\s*/, "");
  if (start.startsWith("<")) return HTML_START.test(start) ? "other" : "xml";
  if (start.startsWith("{")) return "json";
  if (/^["']?unused["']?\s*$/i.test(start) && bytes.byteLength < HEAD_BYTES) return "unused";
  if (BASE64_START.test(start)) return "base64";
  if (looksLikeMessage(bytes)) return "message";
  return "other";
};

/** The XML in a text after other words, from its first `<` on; null when there is none. */
export const findXmlInText = (bytes: Uint8Array): Uint8Array | null => {
  const at = latin1.decode(bytes.subarray(0, PREAMBLE_BYTES)).search(/<\?xml\s|<(?:[\w.-]+:)?feedback[\s>]/i);
  return at === -1 ? null : bytes.subarray(at);
};

/** Characters of base64 decoded at a time. */
const BASE64_STEP = 256 * 1024;

/** Decodes base64 text with line breaks anywhere; null when it has other characters. */
export const decodeBase64Text = async (bytes: Uint8Array): Promise<Uint8Array | null> => {
  const decoded = Buffer.alloc(Math.ceil(bytes.byteLength * 0.75));
  let length = 0;
  let rest = "";
  let isPadded = false;
  for (let at = 0; at < bytes.byteLength; at += BASE64_STEP) {
    if (at > 0) await nextTurn();
    const text = latin1.decode(bytes.subarray(at, at + BASE64_STEP)).replace(/\s+/g, "");
    if (!(isPadded ? /^=*$/ : /^[A-Za-z0-9+/]*=*$/).test(text)) return null;
    isPadded ||= text.endsWith("=");
    const whole = rest + text;
    // Four characters are three bytes; the rest is decoded in the next step.
    const end = whole.length - (whole.length % 4);
    length += decoded.write(whole.slice(0, end), length, "base64");
    rest = whole.slice(end);
  }
  length += decoded.write(rest, length, "base64");
  return decoded.subarray(0, length);
};

const SUFFIXES: Readonly<Record<PayloadKind, string>> = {
  gzip: ".xml.gz",
  zip: ".zip",
  xml: ".xml",
  json: ".json",
  message: ".eml",
  base64: ".txt",
  unused: ".bin",
  other: ".bin",
};

/** The file name extension for a download of these bytes. */
export const suffixOf = (bytes: Uint8Array): string => SUFFIXES[kindOfPayload(bytes)];

/** Entries of a directory, folders included; an archive with more is rejected. */
export const ZIP_DIRECTORY_ENTRIES_MAX = 64;

/** One file of an archive, not yet inflated. */
interface ZipFile {
  readonly name: string;
  /** The bytes of the file, at most `bytesMax`; or why they could not be unpacked. */
  open(bytesMax: number): Promise<Result<Inflated, UnpackProblem>>;
}

/** Whether the bytes begin like a zip archive: a file, an empty archive, or the marker of a split one. */
const isZip = (bytes: Uint8Array) => {
  const [p, k, third, fourth] = bytes;
  if (p !== 0x50 || k !== 0x4b) return false;
  return (third === 3 && fourth === 4) || (third === 5 && fourth === 6) || (third === 7 && fourth === 8);
};

/**
 * Calls `visit` with the files of a zip archive in memory, in the order of its directory, without folders. The visitor opens
 * the files it needs and may stop. Returns null, or what is wrong with the archive as a whole, perhaps after some files.
 *
 * Sizes in the directory are not trusted. Opening an encrypted file, or one with another method than "stored" and "deflated",
 * fails. Never throws.
 */
const readZip = async (
  bytes: Uint8Array,
  visit: (file: ZipFile) => Promise<"go_on" | "stop">,
): Promise<UnpackProblem | null> => {
  const archive = withoutTail(bytes);
  if (archive === null) return "zip_damaged";
  try {
    // Names are never used as paths, so they need not be safe; undecoded names are not validated.
    const zip = await fromBufferPromise(archive, { decodeStrings: false, validateEntrySizes: false });
    if (zip.entryCount > ZIP_DIRECTORY_ENTRIES_MAX) return "too_many_entries";
    for await (const entry of zip.eachEntry()) {
      const name = nameOf(entry);
      if (name.endsWith("/")) continue;
      const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true });
      const data = archive.subarray(fileDataStart, fileDataStart + entry.compressedSize);
      if ((await visit({ name, open: (bytesMax) => openFile(entry, data, bytesMax) })) === "stop") return null;
    }
  } catch (error) {
    // The library throws plain errors for damaged archives; anything else is a bug.
    if (!(error instanceof Error) || error instanceof TypeError) throw error;
    return "zip_damaged";
  }
  return null;
};

const METHOD = { stored: 0, deflated: 8 } as const;

const openFile = async (entry: Entry, data: Uint8Array, bytesMax: number): Promise<Result<Inflated, UnpackProblem>> => {
  if (entry.isEncrypted()) return err("zip_encrypted");
  if (entry.compressionMethod === METHOD.stored) {
    if (data.byteLength > bytesMax) return err("entry_too_large");
    const isTruncated = data.byteLength < entry.compressedSize;
    return ok({ bytes: data, isTruncated, consumedBytes: data.byteLength });
  }
  if (entry.compressionMethod !== METHOD.deflated) return err("zip_method_unsupported");
  const inflated = await inflateRaw(data, bytesMax);
  if (inflated.ok) return inflated;
  return err(inflated.error === "too_large" ? "entry_too_large" : "zip_damaged");
};

/** Names are undecoded, in spite of the type declarations; report names are ASCII, and others are only displayed. */
const nameOf = ({ fileNameRaw }: Entry) => new TextDecoder().decode(fileNameRaw).slice(0, 255);

const END_RECORD_BYTES = 22;
const COMMENT_BYTES_MAX = 0xffff;

/**
 * The archive up to the end of its end-of-directory record: the library rejects trailing bytes, but in mail a line end or a
 * signature may follow. Null when there is no such record.
 */
const withoutTail = (bytes: Uint8Array): Buffer | null => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const at = buffer.lastIndexOf("PK\u0005\u0006");
  if (at === -1 || at + END_RECORD_BYTES > buffer.byteLength) return null;
  if (buffer.byteLength - at > END_RECORD_BYTES + 2 * COMMENT_BYTES_MAX) return null;
  const end = at + END_RECORD_BYTES + buffer.readUInt16LE(at + END_RECORD_BYTES - 2);
  if (end <= buffer.byteLength) return buffer.subarray(0, end);
  // The comment is truncated: the archive is complete without it.
  const repaired = Buffer.from(buffer.subarray(0, at + END_RECORD_BYTES));
  repaired.writeUInt16LE(0, at + END_RECORD_BYTES - 2);
  return repaired;
};
