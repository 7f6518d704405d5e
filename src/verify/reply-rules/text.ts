/** A reply's text in the form that patterns match. */
export interface ReplyText {
  /** Folded words (see `foldText`), addresses replaced by "@" and links by "url". */
  readonly words: string;
  /** The words with the recipient's local part as "@" too: only mailbox phrases are matched here. */
  readonly mailboxWords: string;
  /** The links alone, folded, separated by spaces; empty when there are none. */
  readonly links: string;
}

/** Longer texts are cut. Patterns are linear, but a hostile server must not cost time. */
export const TEXT_CHARS_MAX = 4096;

/**
 * Lower case, no accents, white space as single spaces, compatibility forms unified (full-width letters, half-width kana): servers
 * write the same phrase with and without accents, and break it across lines.
 */
export const foldText = (text: string): string => {
  const lower = text.slice(0, TEXT_CHARS_MAX).toLowerCase();
  return (ASCII_ONLY.test(lower) ? lower : withoutAccents(lower)).replace(/\s+/g, " ").trim();
};

/** Strips Latin and Cyrillic accents only, so that kana and Hangul stay whole. */
export const withoutAccents = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .normalize("NFC")
    .replace(/[łıßøæœđð’‘´`]/g, (letter) => LETTERS[letter] ?? letter);

/**
 * Prepares a reply's text. What we sent ourselves must not count (an address may contain "spam" or "unknown"): addresses
 * become "@", and so does every text of `ours`. A bare local part is masked only for mailbox phrases: "sender@" must not
 * hide "sender". One for which `isStatusWord` is true ("disabled@") is masked only where the reply quotes it. Links are
 * removed: their paths and parameters are not prose. "USER_UNKNOWN" is prose.
 */
export const readableText = (
  text: string,
  ours: readonly string[] = [],
  localPart?: string,
  isStatusWord: (word: string) => boolean = () => false,
): ReplyText => {
  let words = foldText(text);
  let links = "";
  if (words.includes("://") || words.includes("www.")) {
    const found: string[] = [];
    words = words.replace(/(?:https?:\/\/|www\.)[^\s<>"]+/g, (link) => {
      found.push(link);
      return "url";
    });
    links = found.join(" ");
  }
  for (const own of ours) if (own.length > 2) words = words.replaceAll(own.toLowerCase(), "@");
  const masked = words.includes("@") ? maskAddresses(words) : words;
  const withoutLocalPart = localPart === undefined ? masked : maskLocalPart(masked, foldText(localPart), isStatusWord);
  return { words: masked.replaceAll("_", " "), mailboxWords: withoutLocalPart.replaceAll("_", " "), links };
};

/** Shorter words occur in the prose by chance. */
const LOCAL_PART_CHARS_MIN = 3;
/** In a reply about user@, "no such user" is still about a mailbox, and the word alone means nothing. */
const PLAIN_NOUNS = new Set(
  "user users mail email mailbox account recipient address name customer member id".split(" "),
);

const maskLocalPart = (words: string, localPart: string, isStatusWord: (word: string) => boolean): string => {
  if (localPart.length < LOCAL_PART_CHARS_MIN || PLAIN_NOUNS.has(localPart) || !words.includes(localPart)) return words;
  const isProse = isStatusWord(localPart);
  let masked = words;
  for (let at = masked.indexOf(localPart); at >= 0; at = masked.indexOf(localPart, at + 1)) {
    const end = at + localPart.length;
    if (PART_OF_WORD.test(masked.slice(Math.max(0, at - 2), at)) || STARTS_IN_WORD.test(masked.slice(end, end + 2)))
      continue;
    if (isProse && !isQuoted(masked.charAt(at - 1), masked.charAt(end))) continue;
    masked = `${masked.slice(0, at)}@${masked.slice(end)}`;
  }
  return masked;
};

const QUOTES: Readonly<Record<string, string>> = { "<": ">", "(": ")", "[": "]", '"': '"', "'": "'" };
const isQuoted = (before: string, after: string): boolean => before !== "" && QUOTES[before] === after;

const PART_OF_WORD = /[\p{L}\p{N}_+-]$|[\p{L}\p{N}]\.$/u;
const STARTS_IN_WORD = /^[\p{L}\p{N}_+-]|^\.[\p{L}\p{N}]/u;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII itself.
const ASCII_ONLY = /^[\u0000-\u007f]*$/;

const LETTERS: Readonly<Record<string, string>> = {
  ł: "l",
  ı: "i",
  ß: "ss",
  ø: "o",
  æ: "ae",
  œ: "oe",
  đ: "d",
  ð: "d",
  "’": "'",
  "‘": "'",
  "´": "'",
  "`": "'",
};

/** What cannot be part of an address where servers quote one. */
const DELIMITERS = new Set(" <>()[]{}\"',;:|=");

const maskAddresses = (text: string): string => {
  let masked = "";
  let done = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", done)) {
    let start = at;
    while (start > done && !DELIMITERS.has(text.charAt(start - 1)) && text.slice(start - 2, start) !== "..") start--;
    let end = at + 1;
    while (end < text.length && !DELIMITERS.has(text.charAt(end)) && text.slice(end, end + 2) !== "..") end++;
    while (end > at + 1 && (text.charAt(end - 1) === "." || text.charAt(end - 1) === "!")) end--;
    masked += `${text.slice(done, start)}@`;
    done = end;
  }
  return masked + text.slice(done);
};
