import { nextTurn } from "../../../foundation/base/clock.ts";
import { looksLikeMessage } from "../../../foundation/mail/message.ts";
import { isGzip } from "./inflate.ts";
import { isZip } from "./zip.ts";

/** The format of a file, detected from its bytes alone: names and content types are wrong too often. */
export type PayloadKind = "gzip" | "zip" | "xml" | "json" | "message" | "base64" | "unused" | "other";

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
