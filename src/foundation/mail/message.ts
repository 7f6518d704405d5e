import { err, ok, type Result } from "../base/errors.ts";
import { decodeEncodedWords, firstAddress } from "./mime-header.ts";
import { type MimePart, readMimeTree } from "./mime-reader.ts";

/** Ceilings of one message (`MimeLimits`). A message that exceeds one is refused whole, never read in part. */
export const MESSAGE_LIMITS = {
  messageBytesMax: 25 * 1024 * 1024,
  /** 25 MB of base64 have 340,000. */
  linesMax: 500_000,
  dashLinesMax: 10_000,
  headerBytesMax: 128 * 1024,
  multipartDepthMax: 32,
  partsMax: 256,
} as const;

/** Why a message was not read. */
type MimeProblem = "message_too_large" | "message_too_complex";

/**
 * What a message is for. `delivery_report`: a bounce, a delay warning or a read receipt (RFC 3464, RFC 8098, and Exim's
 * own form). `failure_report`: a message in the feedback format (RFC 5965), which DMARC failure reports use (RFC 6591).
 */
type MessageKind = "ordinary" | "delivery_report" | "failure_report";

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
 * read them. A message without MIME is one part of text, so that any bytes up to the ceiling give a message or a problem;
 * never throws.
 */
export const readMessage = async (bytes: Uint8Array): Promise<Result<MimeMessage, MimeProblem>> => {
  if (bytes.byteLength > MESSAGE_LIMITS.messageBytesMax) return err("message_too_large");
  const tree = await readMimeTree(withoutMailboxLine(bytes), MESSAGE_LIMITS);
  if (tree === null) return err("message_too_complex");
  const { header, parts } = tree;
  const subject = header.get("subject");
  return ok({
    kind: kindOf(header.get("content-type") ?? "", header.get("x-failed-recipients") ?? "", parts),
    parts,
    subject: subject ? decodeEncodedWords(subject) : null,
    from: firstAddress(header.get("from") ?? ""),
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
/** Blank lines in front would end the header before it begins. */
const withoutMailboxLine = (bytes: Uint8Array): Uint8Array => {
  const start = bytes.subarray(0, BLANK_BYTES_MAX).findIndex((byte) => byte > SPACE);
  const message = bytes.subarray(Math.max(0, start));
  const lineEnd = message.indexOf(LINE_FEED);
  const isMailbox = lineEnd !== -1 && latin1.decode(message.subarray(0, 5)) === "From ";
  return isMailbox ? message.subarray(lineEnd + 1) : message;
};

const kindOf = (contentType: string, failedRecipients: string, parts: readonly MimePart[]): MessageKind => {
  const has = (type: string) => parts.some(({ contentType: own }) => own === type);
  if (has("message/feedback-report") || /report-type="?feedback-report/i.test(contentType)) return "failure_report";
  const isDelivery =
    has("message/delivery-status") ||
    has("message/disposition-notification") ||
    /report-type="?(?:delivery-status|disposition-notification)/i.test(contentType);
  return isDelivery || failedRecipients !== "" ? "delivery_report" : "ordinary";
};
