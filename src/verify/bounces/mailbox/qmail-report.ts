import { parseAddress } from "../../../foundation/mail/address.ts";
import type { MimePart } from "../../../foundation/mail/mime-reader.ts";
import { type DeliveryReport, REPORTED_RECIPIENTS_MAX, type ReportedRecipient } from "./delivery-report.ts";

/** The text before the message; replies of servers are in it. */
const TEXT_BYTES_MAX = 64 * 1024;
const BEGINNING = "Hi. This is the";
/** A paragraph that begins so ends the report; the message that came back follows it. */
const BREAK = /\n\n-[^\n]*(?:\n[^\n]+)*\n\n/;
const RECIPIENT = /^<([^<>\n]{3,320})>:\n/;
const REPLY = "Remote host said: ";
const STATUS = /\(#([245]\.\d{1,3}\.\d{1,3})\)/;

/** Reads a report of qmail (the QSBMF format, https://cr.yp.to/proto/qsbmf.txt); null for any other message. */
export const readQmailReport = ([part, ...others]: readonly MimePart[]): DeliveryReport | null => {
  if (part === undefined || others.length > 0 || part.contentType !== "text/plain") return null;
  const text = new TextDecoder("latin1").decode(part.bytes.subarray(0, TEXT_BYTES_MAX)).trimStart();
  if (!text.startsWith(BEGINNING)) return null;
  const broken = BREAK.exec(text);
  if (broken === null) return null;
  const recipients = text.slice(0, broken.index).split("\n\n").flatMap(recipientOf);
  if (recipients.length === 0 || recipients.length > REPORTED_RECIPIENTS_MAX) return null;
  const returned = text.slice(broken.index + broken[0].length).trimStart();
  return { recipients, returned: Buffer.from(returned, "latin1") };
};

const recipientOf = (paragraph: string): ReportedRecipient[] => {
  const trimmed = paragraph.trim();
  const [begin, address = ""] = RECIPIENT.exec(trimmed) ?? [];
  if (begin === undefined) return [];
  const parsed = parseAddress(address);
  const reason = trimmed.slice(begin.length).replace(/\n/g, " ");
  const replyAt = reason.indexOf(REPLY);
  return [
    {
      action: "failed",
      final: parsed.ok ? [parsed.value.normalized] : [],
      original: [],
      status: STATUS.exec(reason)?.[1] ?? null,
      diagnostic: replyAt === -1 ? reason : reason.slice(replyAt + REPLY.length),
    },
  ];
};
