/** `=?charset*language?encoding?text?=` (RFC 2047 §2, RFC 2231 §5), and the white space that separates it from the next one. */
const ENCODED_WORD = /=\?([^?\s*]+)(?:\*[^?\s]*)?\?([QqBb])\?([^?]*)\?=(?:[ \t]+(?==\?[^?\s]+\?[QqBb]\?[^?]*\?=))?/g;

/** Decodes the encoded words of a header field; the rest stays as it is. */
export const decodeEncodedWords = (text: string): string => {
  const decoded = decodeRuns(text, true);
  // A character that is split between two words needs their bytes together; words that should have stayed apart do not decode.
  return decoded.includes("\ufffd") ? decodeRuns(text, false) : decoded;
};

/** The text of bytes in a character set by its name in mail; windows-1252 for one that is not known. */
export const decodeCharset = (bytes: Uint8Array, charset: string): string => {
  try {
    return new TextDecoder(charset.trim() as ConstructorParameters<typeof TextDecoder>[0]).decode(bytes);
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) return windows1252.decode(bytes);
    throw error;
  }
};

const windows1252 = new TextDecoder("windows-1252");

const decodeRuns = (text: string, joins: boolean): string => {
  let result = "";
  let at = 0;
  let run: { readonly charset: string; readonly bytes: Uint8Array[] } | null = null;
  const endRun = () => {
    if (run !== null) result += decodeCharset(Buffer.concat(run.bytes), run.charset);
    run = null;
  };
  for (const match of text.matchAll(ENCODED_WORD)) {
    const [whole, charset = "", encoding = "", content = ""] = match;
    if (match.index > at) {
      endRun();
      result += text.slice(at, match.index);
    }
    if (run === null || !joins || run.charset !== charset) endRun();
    run ??= { charset, bytes: [] };
    run.bytes.push(bytesOf(encoding, content));
    at = match.index + whole.length;
  }
  endRun();
  return result + text.slice(at);
};

const bytesOf = (encoding: string, content: string): Uint8Array =>
  encoding.toUpperCase() === "B"
    ? Buffer.from(content, "base64")
    : percentBytes(content.replace(/=\s+(?=[\da-f])/gi, "=").replace(/[_\s]/g, " "), "=");

/** The bytes of a text in UTF-8 in which `sign` and two hexadecimal digits stand for one (`=C3`, `%C3`). */
export const percentBytes = (text: string, sign: "=" | "%"): Uint8Array => {
  const parts = text.split(sign === "=" ? /(=[\da-f]{2})/i : /(%[\da-f]{2})/i);
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 0 ? Buffer.from(part) : Buffer.from(part.slice(1), "hex"))),
  );
};
