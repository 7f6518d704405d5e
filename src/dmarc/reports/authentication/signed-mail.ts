import { err, ok, type Result } from "../../../foundation/base/errors.ts";

/** Limits of what the verifier gets, whose cost is quadratic in some of them. */
export const HEADER_LIMITS = {
  headerBytesMax: 128 * 1024,
  linesMax: 2_000,
  fieldBytesMax: 16 * 1024,
  fromBytesMax: 8 * 1024,
  signatureBytesMax: 8 * 1024,
  /** Consecutive white space in a signature. */
  signatureSpaceMax: 256,
  /** Signatures that are verified (RFC 6376 §6.1 allows a limit). */
  signaturesMax: 10,
  /** Of those: signatures over a part of the body (`l=`), each of which needs another hash. */
  partialSignaturesMax: 2,
  /** Of one line of the body, which the verifier buffers. RFC 5322 §2.1.1 allows 998. */
  lineBytesMax: 256 * 1024,
} as const;

/** The header of a mail, or a line of its body, exceeds the limits. */
export type HeaderProblem = "header_too_large" | "line_too_long";

/** A mail as the verifier gets it. */
export interface SignedMail {
  /** The fields in their order, with CRLF, and the empty line; without ARC fields and the signatures left out. */
  readonly header: Buffer;
  /** As it came; lines may end in LF alone. */
  readonly body: Uint8Array;
  readonly signatures: number;
  /** Signatures beyond the limits. */
  readonly leftOut: number;
  /** `From` fields; more than one is never right (RFC 5322 §3.6). */
  readonly fromFields: number;
}

/**
 * Splits a mail into header and body. Lines before the first field (blank ones, the `From ` line of an mbox) are dropped, and
 * so are ARC fields (RFC 8617), which do not concern header_from.
 */
export const readSignedMail = (bytes: Uint8Array): Result<SignedMail, HeaderProblem> => {
  const message = bytes.subarray(messageStart(bytes));
  const bodyAt = findBody(message.subarray(0, HEADER_LIMITS.headerBytesMax));
  if (bodyAt === null && message.length > HEADER_LIMITS.headerBytesMax) return err("header_too_large");
  const text = latin1(message.subarray(0, bodyAt ?? message.length));
  const lines = text.replace(/(?<!\n\r?)(?:\r?\n)+$/, "").split(/\r?\n/);
  // Consecutive bare CRs occur in no legitimate mail and are expensive to scan.
  if (lines.length > HEADER_LIMITS.linesMax || text.includes("\r".repeat(9))) return err("header_too_large");
  const fields = foldFields(lines);
  if (fields.some(isTooLong)) return err("header_too_large");

  const body = bodyAt === null ? new Uint8Array() : message.subarray(bodyAt);
  if (hasLongLine(body)) return err("line_too_long");

  const kept: string[] = [];
  const count = { signatures: 0, partial: 0, leftOut: 0 };
  for (const { name, text: field } of fields) {
    if (name.startsWith("arc-")) continue;
    if (name === "dkim-signature" && !takeSignature(field, count)) continue;
    kept.push(field);
  }
  return ok({
    header: Buffer.from(`${kept.join("\r\n")}\r\n\r\n`, "latin1"),
    body,
    signatures: count.signatures,
    leftOut: count.leftOut,
    fromFields: fields.filter(({ name }) => name === "from").length,
  });
};

interface Field {
  /** Lower case. */
  readonly name: string;
  /** All its lines, joined by CRLF. */
  readonly text: string;
}

const LINE_FEED = 10;
const RETURN = 13;
const SPACE = 32;
/** RFC 5322 §3.6.8 and §4.5.8: white space and even a fold may stand before the colon. The verifier uses the same rule. */
const FIELD_START = /^[\x21-\x39\x3b-\x7e]+[ \t\r\n]*:/;

// input ≤ 262,144 characters
const LONG_SPACE = new RegExp(`[ \\t\\r\\n]{${HEADER_LIMITS.signatureSpaceMax + 1}}`);

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");

const messageStart = (bytes: Uint8Array): number => {
  const start = bytes.findIndex((byte) => byte > SPACE);
  if (start === -1) return bytes.length;
  const lineEnd = bytes.indexOf(LINE_FEED, start);
  const isMailboxLine = lineEnd !== -1 && latin1(bytes.subarray(start, start + 5)) === "From ";
  return isMailboxLine ? lineEnd + 1 : start;
};

/** Whether a line is longer than `lineBytesMax`: searches for a line end backwards from each such length. */
const hasLongLine = (body: Uint8Array): boolean => {
  for (let at = 0; body.length - at > HEADER_LIMITS.lineBytesMax;) {
    const end = body.lastIndexOf(LINE_FEED, at + HEADER_LIMITS.lineBytesMax);
    if (end < at) return true;
    at = end + 1;
  }
  return false;
};

/** Where the body begins: behind the first empty line; null when there is none. */
const findBody = (message: Uint8Array): number | null => {
  let lineStart = 0;
  for (let at = message.indexOf(LINE_FEED); at !== -1; at = message.indexOf(LINE_FEED, at + 1)) {
    const length = at - lineStart;
    if (length === 0 || (length === 1 && message[lineStart] === RETURN)) return at + 1;
    lineStart = at + 1;
  }
  return null;
};

/** Lines that begin no field belong to the field above them; those above the first field to none. */
const foldFields = (lines: readonly string[]): readonly Field[] => {
  const starts = lines.flatMap((line, index) =>
    FIELD_START.test(`${line}\r\n${lines[index + 1] ?? ""}`) ? [index] : [],
  );
  return starts.map((start, index) => {
    const text = lines.slice(start, starts[index + 1] ?? lines.length).join("\r\n");
    return { name: text.slice(0, text.indexOf(":")).trim().toLowerCase(), text };
  });
};

const isTooLong = ({ name, text }: Field): boolean =>
  text.length > (name === "from" ? HEADER_LIMITS.fromBytesMax : HEADER_LIMITS.fieldBytesMax);

const takeSignature = (field: string, count: { signatures: number; partial: number; leftOut: number }): boolean => {
  const isPartial = /[:;]\s*l\s*=/i.test(field);
  const fits =
    field.length <= HEADER_LIMITS.signatureBytesMax &&
    !LONG_SPACE.test(field) &&
    count.signatures < HEADER_LIMITS.signaturesMax &&
    !(isPartial && count.partial === HEADER_LIMITS.partialSignaturesMax);
  if (!fits) count.leftOut += 1;
  else {
    count.signatures += 1;
    if (isPartial) count.partial += 1;
  }
  return fits;
};
