import { errorCode } from "../foundation/base/errors.ts";
import { readFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { UNPACK_LIMITS } from "../dmarc/reports/report/unpack.ts";

/** A file to be imported; `path` is null for standard input. */
export interface ReportPath {
  readonly path: string | null;
  readonly size: number;
}

/** A mail or file read from a path. `problem` says why there are no bytes. */
export type ReportBytes =
  | { readonly input: string; readonly bytes: Uint8Array; readonly problem: null }
  | { readonly input: string; readonly bytes: null; readonly problem: string };

/** The largest file that is read whole; mailboxes of any size are read mail by mail. */
export const FILE_BYTES_MAX = UNPACK_LIMITS.entryBytesMax;
/** Files of one import. */
export const FILES_MAX = 1_000_000;
/** Bytes kept of a mail in a mailbox: more than is accepted, so that a larger one is rejected for its size. */
const MAIL_BYTES_MAX = 26 * 1024 * 1024;
/** Files up to this size are read at once. */
const WHOLE_BYTES_MAX = 1024 * 1024;

const MAILBOX_START = Buffer.from("From ");
/** The directories of a Maildir, and those that hold mails. */
const MAILDIR = ["cur", "new", "tmp"];
const MAILDIR_MAILS = ["cur", "new"];
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** The problem of a path that does not exist. */
export const NO_SUCH_FILE = "no_such_file";

/** The problem of a file that is too large to be read. */
export const FILE_TOO_LARGE = "file_too_large";

/** The path that means standard input. */
export const STDIN = "-";

/**
 * The files at some paths. Directories are read recursively in the order of names, without hidden files and without
 * following links; of a Maildir only the mails. A path that does not exist is yielded too: reading it reports that.
 */
export async function* findFiles(paths: readonly string[]): AsyncIterable<ReportPath> {
  let seen = 0;
  for (const path of paths) {
    if (path === STDIN) {
      yield { path: null, size: 0 };
      continue;
    }
    const given = await stat(path).catch(() => null);
    for await (const found of given?.isDirectory() ? filesBelow(path) : [{ path, size: given?.size ?? 0 }]) {
      seen += 1;
      if (seen > FILES_MAX) return;
      yield found;
    }
  }
}

async function* filesBelow(directory: string): AsyncIterable<ReportPath> {
  const found = await readdir(directory, { withFileTypes: true }).catch(() => null);
  // Reading it reports why.
  if (found === null) return yield { path: directory, size: 0 };
  const all = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const isMaildir = MAILDIR.every((name) => all.some((entry) => entry.name === name && entry.isDirectory()));
  // Besides mails there are files of mail programs, and mails that are still being written.
  const entries = isMaildir ? all.filter(({ name }) => MAILDIR_MAILS.includes(name)) : all;
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path);
    else if (entry.isFile() && !entry.name.startsWith(".")) yield { path, size: Bun.file(path).size };
  }
}

/** The mails of a mailbox file, or the one file. Never throws: `problem` says why something cannot be read. */
export async function* readReportBytes(
  { path, size }: ReportPath,
  stdin: () => ReadableStream<Uint8Array>,
): AsyncIterable<ReportBytes> {
  const input = path ?? STDIN;
  try {
    const chunks = path === null ? stdin() : contentOf(path, size);
    let number = 0;
    for await (const bytes of piecesOf(chunks)) {
      number += 1;
      if (bytes === null) yield { input, bytes, problem: FILE_TOO_LARGE };
      else yield { input: number === 1 ? input : `${input}#${number}`, bytes, problem: null };
    }
    if (number === 0 && size === 0) yield { input, bytes: new Uint8Array(), problem: null };
  } catch (error) {
    const code = errorCode(error) || String(error);
    yield { input, bytes: null, problem: code === "ENOENT" ? NO_SUCH_FILE : `unreadable (${code})` };
  }
}

/** Small files are read at once, which is cheaper than a stream. */
async function* contentOf(path: string, size: number): AsyncIterable<Uint8Array> {
  if (size > WHOLE_BYTES_MAX) yield* Bun.file(path).stream();
  else yield readFileSync(path);
}

/**
 * Splits a mailbox (mbox: `From ` at the start of a line after an empty line begins a mail) into its mails; yields
 * anything else whole. Null for a file that is larger than `FILE_BYTES_MAX` and not a mailbox.
 */
export async function* piecesOf(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array | null> {
  let held = Buffer.alloc(0);
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let isMailbox: boolean | null = null;
  for await (const chunk of chunks) {
    if (isMailbox !== true) {
      parts.push(chunk);
      bytes += chunk.byteLength;
      if (isMailbox === null && bytes >= MAILBOX_START.length) {
        held = Buffer.concat(parts);
        isMailbox = held.subarray(0, MAILBOX_START.length).equals(MAILBOX_START);
        if (isMailbox) parts = [];
      }
      if (isMailbox !== true) {
        if (bytes > FILE_BYTES_MAX) return yield null;
        continue;
      }
    } else held = Buffer.concat([held, chunk]);
    for (let at = mailStart(held); at !== -1; at = mailStart(held)) {
      yield held.subarray(0, at);
      held = held.subarray(at);
    }
    // Keep the end: the next mail may begin there.
    if (held.length > MAIL_BYTES_MAX) held = Buffer.concat([held.subarray(0, MAIL_BYTES_MAX), held.subarray(-8)]);
  }
  if (isMailbox) yield held;
  else if (bytes > 0) yield Buffer.concat(parts);
}

/** Where the second mail of a mailbox begins; -1 when it is not there yet. */
const mailStart = (mailbox: Buffer): number => {
  for (let at = mailbox.indexOf("\nFrom ", 1); at !== -1; at = mailbox.indexOf("\nFrom ", at + 1)) {
    const before = mailbox[at - 1] === CARRIAGE_RETURN ? at - 2 : at - 1;
    if (mailbox[before] === LINE_FEED) return at + 1;
  }
  return -1;
};
