import { err, ok, type Result } from "../base/errors.ts";

/** One SMTP reply, complete with all its lines (RFC 5321 §4.2). */
export interface SmtpReply {
  /** 200 to 599. Where the lines of one reply disagree, the last line's. */
  readonly code: number;
  /**
   * Enhanced status code as "5.1.1" (RFC 2034, RFC 3463), or null. Of several the last line's counts. One whose class differs
   * from the first digit of `code` is ignored (RFC 2034 §4), so `enhanced` never contradicts `code`.
   */
  readonly enhanced: string | null;
  /** Each line without code and separator. An enhanced code is kept; control characters became spaces. */
  readonly lines: readonly string[];
  /** The lines joined by "\n", without enhanced codes (those that were ignored are stripped too). */
  readonly text: string;
  /** The lines as they came, without their line ends. */
  readonly raw: readonly string[];
}

/**
 * Why bytes are not a reply. `incomplete` and `trailing_text` occur only where the whole text is at hand (`parseReply`): the last
 * line announced another one, or something follows the last line.
 */
export type ReplyProblem =
  | "line_too_long"
  | "reply_too_long"
  | "too_many_lines"
  | "too_many_replies"
  | "not_a_reply"
  | "code_out_of_range"
  | "incomplete"
  | "trailing_text";

interface ReplyLimits {
  readonly lineBytesMax: number;
  readonly replyBytesMax: number;
  readonly linesMax: number;
  readonly repliesPerPushMax: number;
}

/**
 * RFC 5321 §4.5.3.1.5 allows 512 octets a line; real servers exceed that with policy texts and links, none comes near 4096.
 * `linesMax` keeps a reply of empty lines from growing by its overhead alone.
 */
export const REPLY_LIMITS: ReplyLimits = {
  lineBytesMax: 4096,
  replyBytesMax: 65_536,
  linesMax: 256,
  repliesPerPushMax: 512,
};

export interface ReplyParser {
  /**
   * Takes the next bytes and returns every reply they complete, in order. A line ends at LF; CRs before it are dropped. The first
   * problem is the last result: a stream that lost its framing cannot be read any further, all later bytes are dropped.
   */
  push(chunk: Uint8Array): ReadonlyArray<Result<SmtpReply, ReplyProblem>>;
  /** Bytes held for a line or a reply that is not complete. Never above `lineBytesMax` + `replyBytesMax`. */
  bufferedBytes(): number;
}

const LF = 10;
const CR = 13;
const FIRST_BUFFER_BYTES = 256;
/** Most lines arrive whole and need no buffer. */
const NO_BYTES = new Uint8Array();

export const createReplyParser = (limits: Partial<ReplyLimits> = {}): ReplyParser => {
  const { lineBytesMax, replyBytesMax, linesMax, repliesPerPushMax } = { ...REPLY_LIMITS, ...limits };
  const partial = createLineBuffer(lineBytesMax);
  let lines: ReplyLine[] = [];
  let linesBytes = 0;
  let failed = false;

  const fail = (problem: ReplyProblem): Result<never, ReplyProblem> => {
    failed = true;
    lines = [];
    linesBytes = 0;
    partial.clear();
    return err(problem);
  };

  const takeLine = (bytes: Uint8Array): Result<SmtpReply, ReplyProblem> | null => {
    const line = readLine(decode(withoutTrailingCr(bytes)));
    if (!line.ok) return fail(line.error);
    lines.push(line.value);
    linesBytes += bytes.length;
    if (linesBytes > replyBytesMax) return fail("reply_too_long");
    if (line.value.continues) return lines.length >= linesMax ? fail("too_many_lines") : null;
    const reply = assemble(lines);
    lines = [];
    linesBytes = 0;
    return ok(reply);
  };

  return {
    push(chunk) {
      const results: Array<Result<SmtpReply, ReplyProblem>> = [];
      for (let start = 0; start < chunk.length && !failed;) {
        const end = chunk.indexOf(LF, start);
        const rest = chunk.subarray(start, end < 0 ? chunk.length : end);
        if (partial.length() + rest.length > lineBytesMax) {
          results.push(fail("line_too_long"));
        } else if (end < 0) {
          partial.append(rest);
          break;
        } else {
          const result = takeLine(partial.length() > 0 ? partial.takeWith(rest) : rest);
          if (result) results.push(result);
          start = end + 1;
          if (results.length > repliesPerPushMax) {
            results.pop();
            results.push(fail("too_many_replies"));
          }
        }
      }
      return results;
    },
    bufferedBytes: () => linesBytes + partial.length(),
  };
};

/**
 * Reads one reply from text that is complete, with or without a last line end. Lines end at "\r\n", "\n", or, because shells hand
 * them over so, at a literal backslash-n (also `\r\n`) that stands before a reply code or at the end.
 */
export const parseReply = (text: string): Result<SmtpReply, ReplyProblem> => {
  const unescaped = text.replace(/(?:\\r)?\\n(?=[0-9]{3}(?:[ \t-]|\r|\n|\\|$)|$)/g, "\n");
  const parser = createReplyParser();
  const [first, ...others] = parser.push(
    new TextEncoder().encode(unescaped.endsWith("\n") ? unescaped : `${unescaped}\n`),
  );
  if (first === undefined) return err("incomplete");
  if (!first.ok) return first;
  return others.length > 0 || parser.bufferedBytes() > 0 ? err("trailing_text") : first;
};

interface ReplyLine {
  readonly code: number;
  readonly continues: boolean;
  readonly text: string;
  readonly raw: string;
  /** The enhanced code that the text begins with, and the one behind it, as they came. */
  readonly leading: string | null;
  readonly trailing: string | null;
  /** The text without them. */
  readonly words: string;
}

/**
 * Lines that were read before. Nearly all that servers send is the same few ("250 2.1.5 Ok", "250-PIPELINING"); those that
 * quote an address come once. When there are too many, a hostile server may have invented them, and all are forgotten.
 */
const knownLines = new Map<string, ReplyLine>();
const KNOWN_LINES_MAX = 1024;
const KNOWN_LINE_CHARS_MAX = 80;

const readLine = (raw: string): Result<ReplyLine, ReplyProblem> => {
  const known = knownLines.get(raw);
  if (known !== undefined) return ok(known);
  const parsed = parseLine(raw);
  if (!parsed.ok || raw.length > KNOWN_LINE_CHARS_MAX || raw.includes("@")) return parsed;
  if (knownLines.size >= KNOWN_LINES_MAX) knownLines.clear();
  knownLines.set(raw, parsed.value);
  return parsed;
};

/** RFC 5321 §4.2.1 has codes 200 to 559 only; servers invent others, and the first digit is enough to act on. */
const parseLine = (raw: string): Result<ReplyLine, ReplyProblem> => {
  if (!/^[0-9]{3}(?:[ \t-]|$)/.test(raw)) return err("not_a_reply");
  const code = Number(raw.slice(0, 3));
  if (code < 200 || code > 599) return err("code_out_of_range");
  const text = withoutControls(raw.slice(4));
  const { enhanced: leading, text: rest } = leadingEnhanced(code, text);
  const trailing = QMAIL_ENHANCED.exec(rest)?.[1] ?? null;
  const words = rest.replace(QMAIL_ENHANCED, "").trim();
  return ok({ code, continues: raw[3] === "-", text, raw, leading, trailing, words });
};

const assemble = (lines: readonly ReplyLine[]): SmtpReply => {
  const code = lines[lines.length - 1]?.code ?? 0;
  const codeClass = String(code)[0];
  const last = (codes: ReadonlyArray<string | null>) => codes.findLast((one) => one?.[0] === codeClass) ?? null;
  return {
    code,
    enhanced: last(lines.map(({ leading }) => leading)) ?? last(lines.map(({ trailing }) => trailing)),
    lines: lines.map(({ text }) => text),
    text: lines.map(({ words }) => words).join("\n"),
    raw: lines.map(({ raw }) => raw),
  };
};

/**
 * "5.1.1", also "#5.1.1", "(5.1.1)", "[5.1.1]" and behind one word ("cuda_nsu 5.1.1"); an IP address such as 5.1.1.7 does not
 * match.
 */
const LEADING_ENHANCED =
  /^([A-Za-z_]{2,16}:? )?[#([]{0,2}([245])\.([0-9]{1,3})\.([0-9]{1,3})(?![0-9]|\.[0-9])[\])]?[:;,.]?(?:\s+|$|(?=[-<[(]))/;

/** qmail and its kin put the code behind the text: "sorry, no mailbox here by that name. (#5.1.1)". */
const QMAIL_ENHANCED = /\(#([245]\.[0-9]{1,3}\.[0-9]{1,3})\)/;

const leadingEnhanced = (code: number, line: string): { enhanced: string | null; text: string } => {
  const own = line.trimStart();
  // Servers whose configured text begins with a code send it twice: "550 550 5.1.1 …".
  const text = own.startsWith(`${code} `) || own.startsWith(`${code}-`) ? own.slice(4).trimStart() : own;
  const match = LEADING_ENHANCED.exec(text);
  if (!match) return { enhanced: null, text };
  const [whole, word = "", status, subject, detail] = match;
  return { enhanced: `${status}.${Number(subject)}.${Number(detail)}`, text: word + text.slice(whole.length) };
};

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const latin1 = new TextDecoder("windows-1252");

/** UTF-8 where it is valid, else Latin-1, which every byte is. */
const decode = (bytes: Uint8Array) => {
  const text = utf8.decode(bytes);
  return text.includes("\ufffd") ? latin1.decode(bytes) : text;
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const withoutControls = (text: string) => text.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");

const withoutTrailingCr = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === CR) end--;
  return bytes.subarray(0, end);
};

/** Collects the pieces of one line. Grows by doubling, so that a server which sends single bytes costs linear time. */
const createLineBuffer = (bytesMax: number) => {
  let buffer = NO_BYTES;
  let used = 0;
  const append = (piece: Uint8Array) => {
    if (used + piece.length > buffer.length) {
      const grown = new Uint8Array(
        Math.min(bytesMax, Math.max(FIRST_BUFFER_BYTES, buffer.length * 2, used + piece.length)),
      );
      grown.set(buffer.subarray(0, used));
      buffer = grown;
    }
    buffer.set(piece, used);
    used += piece.length;
  };
  return {
    length: () => used,
    append,
    /** The collected line with its last piece, valid until the next call; the buffer is empty afterwards. */
    takeWith(last: Uint8Array): Uint8Array {
      append(last);
      const line = buffer.subarray(0, used);
      used = 0;
      return line;
    },
    clear() {
      used = 0;
    },
  };
};
