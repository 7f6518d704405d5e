import { nextTurn } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { createMessageParser } from "./message-parser.ts";
import { collectParts, type MimePart } from "./message-parts.ts";

/** Ceilings of one message. What exceeds them is refused whole, never read in part. */
export const MESSAGE_LIMITS = {
  messageBytesMax: 25 * 1024 * 1024,
  /** 25 MB of base64 have 340,000; the parser pays for each line, whatever is in it. */
  linesMax: 500_000,
  /** Lines that begin with `--`, as the boundaries of parts do; each may cost a part. */
  dashLinesMax: 10_000,
  /** Of all headers of all parts together. */
  headerBytesMax: 128 * 1024,
  /** Pieces of base64 that padding (`=`) ends: some write one a line, and each costs the parser a buffer. */
  paddingsMax: 500_000,
  /** Of a line of quoted-printable (76 by RFC 2045 §6.7), which the parser takes apart into millions of pieces. */
  quotedLineBytesMax: 64 * 1024,
  multipartDepthMax: 32,
  partsMax: 256,
} as const;

/** Why a message was not read. */
export type MimeProblem = "message_too_large" | "message_too_complex";

/**
 * What a message is for. `delivery_report`: a bounce, a delay warning or a read receipt (RFC 3464, RFC 8098, and Exim's
 * own form). `failure_report`: a message in the feedback format (RFC 5965), which DMARC failure reports use (RFC 6591).
 */
export type MessageKind = "ordinary" | "delivery_report" | "failure_report";

/** One message taken apart. */
export interface MimeMessage {
  readonly kind: MessageKind;
  /** The leaves in document order, each decoded to bytes. A message that is itself the attachment has one part. */
  readonly parts: readonly MimePart[];
  readonly subject: string | null;
  /** The address in `From`, as written, without its display name. */
  readonly from: string | null;
}

/**
 * Takes a message apart (RFC 5322, MIME). Enclosed messages (message/rfc822) stay parts: the caller decides whether to
 * read them. Whatever is not MIME is one part of text, so that any bytes up to the ceiling give a message or a problem;
 * never throws.
 */
export const readMessage = async (bytes: Uint8Array): Promise<Result<MimeMessage, MimeProblem>> => {
  if (bytes.byteLength > MESSAGE_LIMITS.messageBytesMax) return err("message_too_large");
  const message = withoutMailboxLine(bytes);
  if (hasLongHeader(message) || (await hasTooManyLines(bytes))) return err("message_too_complex");
  const parser = createMessageParser(MESSAGE_LIMITS);
  const email = await parser.parse(message).catch(() => null);
  // The parser throws for ceilings only.
  if (email === null) return err("message_too_complex");
  const parts = collectParts(parser, email.attachments);
  if (parts.length > MESSAGE_LIMITS.partsMax) return err("message_too_complex");
  const header = (key: string): string => email.headers.find((line) => line.key === key)?.value ?? "";
  return ok({
    kind: kindOf(header("content-type"), header("x-failed-recipients"), parts),
    parts,
    subject: email.subject ?? null,
    from: email.from?.address ?? null,
  });
};

/** Whether the bytes begin as a message does: with a header field, or with the `From ` line of a mailbox file. */
export const looksLikeMessage = (bytes: Uint8Array): boolean =>
  /^\s*(?:From [^\n]*\n)?[A-Za-z][\w-]{0,76}[ \t]*:/.test(latin1.decode(bytes.subarray(0, 2048)));

const latin1 = new TextDecoder("latin1");
const LINE_FEED = 10;
const SPACE = 32;
/** How far a message may begin behind blank lines. */
const BLANK_BYTES_MAX = 64 * 1024;
const DASH = 45;

/** Lines counted before others have their turn. */
const LINES_PER_TURN = 100_000;

/** Whether the first header does not end within what all headers may have: the parser would gather it before it says so. */
const hasLongHeader = (message: Uint8Array): boolean => {
  if (message.byteLength <= MESSAGE_LIMITS.headerBytesMax) return false;
  return !/\r?\n\r?\n|^\r?\n/.test(latin1.decode(message.subarray(0, MESSAGE_LIMITS.headerBytesMax + 4)));
};

const hasTooManyLines = async (bytes: Uint8Array): Promise<boolean> => {
  let lines = 0;
  let dashLines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at !== -1; at = bytes.indexOf(LINE_FEED, at + 1)) {
    lines += 1;
    if (bytes[at + 1] === DASH && bytes[at + 2] === DASH) dashLines += 1;
    if (lines > MESSAGE_LIMITS.linesMax || dashLines > MESSAGE_LIMITS.dashLinesMax) return true;
    if (lines % LINES_PER_TURN === 0) await nextTurn();
  }
  return false;
};

/** Blank lines in front would end the header before it begins. */
const withoutMailboxLine = (bytes: Uint8Array): Uint8Array => {
  const start = bytes.subarray(0, BLANK_BYTES_MAX).findIndex((byte) => byte > SPACE);
  const message = bytes.subarray(Math.max(0, start));
  const lineEnd = message.indexOf(LINE_FEED);
  const isMailbox = lineEnd !== -1 && latin1.decode(message.subarray(0, 5)) === "From ";
  return isMailbox ? message.subarray(lineEnd + 1) : message;
};

const kindOf = (contentType: string, failedRecipients: string, parts: readonly MimePart[]): MessageKind => {
  const has = (type: string): boolean => parts.some(({ contentType: own }) => own === type);
  if (has("message/feedback-report") || /report-type="?feedback-report/i.test(contentType)) return "failure_report";
  const isDelivery =
    has("message/delivery-status") ||
    has("message/disposition-notification") ||
    /report-type="?(?:delivery-status|disposition-notification)/i.test(contentType);
  return isDelivery || failedRecipients !== "" ? "delivery_report" : "ordinary";
};
