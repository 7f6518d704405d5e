import { decodeMessage, type DnsMessage, type EncodedQuery, HEADER_BYTES, RCODES, uint16At } from "./dns-message.ts";
import { MalformedMessage, readName } from "./dns-name.ts";

/**
 * What a packet is to the query it came in for.
 *
 * - `foreign`: not a response to this query (id, direction, question): to another one, or forged.
 * - `noise`: carries our id, but its question cannot be read.
 * - `case_changed`: our question, its letters in another case than we sent: forged, or by a server that rewrites names.
 * - `truncated`: ours, to be queried again over TCP (RFC 1035 §4.2.1).
 * - `malformed`: ours, but not a valid message.
 */
export type DnsPacketMatch =
  | { readonly kind: "foreign" | "noise" | "case_changed" | "truncated" | "malformed" }
  | { readonly kind: "message"; readonly message: DnsMessage };

/** Matches a packet with the query (RFC 5452 §3) and decodes it. Never throws, whatever the bytes. */
export const matchPacket = (bytes: Uint8Array, query: EncodedQuery): DnsPacketMatch => {
  if (bytes.length < HEADER_BYTES) return { kind: "foreign" };
  const flags = uint16At(bytes, 2);
  const isResponse = (flags & 0x8000) !== 0;
  const opcode = (flags >> 11) & 0x0f;
  if (uint16At(bytes, 0) !== query.id || !isResponse || opcode !== 0) return { kind: "foreign" };

  const questions = uint16At(bytes, 4);
  const mayOmitQuestion = ERRORS_WITHOUT_QUESTION.has(flags & 0x0f);
  if (questions === 0 && mayOmitQuestion) return decode(bytes, HEADER_BYTES);
  if (questions !== 1) return { kind: "noise" };

  const question = compareQuestion(bytes, query);
  if (question !== "same") return { kind: question };
  if ((flags & 0x0200) !== 0) return { kind: "truncated" };
  return decode(bytes, query.questionEnd);
};

/** Servers that do not understand a query cannot always repeat its question. None of these is a statement about the name. */
const ERRORS_WITHOUT_QUESTION: ReadonlySet<number> = new Set([
  RCODES.FORMERR,
  RCODES.SERVFAIL,
  RCODES.NOTIMP,
  RCODES.REFUSED,
]);

const decode = (bytes: Uint8Array, questionEnd: number): DnsPacketMatch => {
  const decoded = decodeMessage(bytes, questionEnd);
  return decoded.ok ? { kind: "message", message: decoded.value } : { kind: "malformed" };
};

const compareQuestion = (bytes: Uint8Array, query: EncodedQuery): "same" | "case_changed" | "foreign" | "noise" => {
  const { bytes: sent, questionEnd } = query;
  if (bytes.length >= questionEnd && areEqual(bytes, sent, HEADER_BYTES, questionEnd)) return "same";
  try {
    const theirs = readName(bytes, HEADER_BYTES);
    if (theirs.next + 4 > bytes.length) return "noise";
    const isOurs =
      theirs.name === readName(sent, HEADER_BYTES).name &&
      theirs.next === questionEnd - 4 &&
      areEqual(bytes, sent, questionEnd - 4, questionEnd);
    return isOurs ? "case_changed" : "foreign";
  } catch (thrown) {
    if (thrown instanceof MalformedMessage) return "noise";
    throw thrown;
  }
};

const areEqual = (left: Uint8Array, right: Uint8Array, start: number, end: number): boolean => {
  for (let index = start; index < end; index++) if (left[index] !== right[index]) return false;
  return true;
};
