/** What a mail says. Its plain text and its HTML are both made from this; text from elsewhere may stand anywhere in it. */
export interface MailContent {
  readonly subject: string;
  readonly sections: readonly MailSection[];
  /** Paragraphs after the last section; the last one says why the reader receives the mail. */
  readonly closing: readonly (string | MailPageLink)[];
}

/** Where a mail leads. */
export interface MailLinks {
  /** The URL of the service, without a `/` at the end; null without POSTWARDEN_BASE_URL. */
  readonly baseUrl: string | null;
  /** What the service is called. */
  readonly brandName: string;
  /** How the reader stops such mail; null when that is not known. */
  readonly off: MailOff | null;
}

/** Such mail (`blocklist alerts`), the page that switches it off, and the command for those who have no link. */
export interface MailOff {
  readonly what: string;
  readonly recipient: string;
  readonly path: string;
  readonly command: string;
}

export interface MailSection {
  readonly heading: string;
  /** A user's label for what the heading names; null without one. */
  readonly label?: string | null;
  /** Null blocks are left out. */
  readonly blocks: readonly (MailBlock | null)[];
}

/** `bad` is a problem, and marked as one in plain text. */
export type MailTone = "plain" | "strong" | "muted" | "good" | "bad";

export type MailBlock =
  | { readonly kind: "line"; readonly text: string; readonly tone: MailTone }
  | {
      readonly kind: "list";
      readonly title: string | null;
      readonly items: readonly MailItem[];
      /** Items that are left out. */
      readonly more: number;
    }
  | MailAction
  | MailPageLink;

/** A page of the dashboard. Mail of a service without a base URL names its `place`: `Blocklists › 198.51.100.7`. */
export interface MailPageLink {
  readonly kind: "page";
  readonly text: string;
  /** Begins with `/`. */
  readonly path: string;
  readonly place: string;
}

export interface MailItem {
  readonly text: string;
  readonly tone?: MailTone;
  /** Further lines about the item. */
  readonly lines?: readonly string[];
  /** The path of its page in the dashboard. */
  readonly path?: string;
}

/** What to do. `text` ends in a colon where `code`, a DNS record or a shell command to copy, follows. */
export interface MailAction {
  readonly kind: "action";
  readonly text: string;
  readonly code: string | null;
}

/** A line of a section; nothing for null. */
export const line = (text: string | null, tone: MailTone = "plain"): MailBlock | null =>
  text === null ? null : { kind: "line", text, tone };

/** A list of at most `max` items, which counts what it leaves out of `total`; nothing without items. */
export const list = (
  title: string | null,
  items: readonly MailItem[],
  { max, total = items.length }: { max: number; total?: number },
): MailBlock | null => {
  const shown = items.slice(0, max);
  return shown.length === 0 ? null : { kind: "list", title, items: shown, more: Math.max(0, total - shown.length) };
};

export const action = (text: string, code: string | null = null): MailAction => ({ kind: "action", text, code });

/** A link to a page of the dashboard; `text` says what is there. */
export const pageLink = (text: string, path: string, place: string): MailPageLink => ({
  kind: "page",
  text,
  path,
  place,
});

/** Text from elsewhere on one line: without control characters and without characters that change the reading direction. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

/** Longer text ends in `…`. */
export const cutLine = (text: string, charactersMax: number): string => {
  const line = oneLine(text);
  return line.length > charactersMax ? `${line.slice(0, charactersMax - 1)}…` : line;
};

const NAME_CHARACTERS_MAX = 120;

/** A name from elsewhere on one line of at most 120 characters. */
export const shortName = (text: string): string => cutLine(text, NAME_CHARACTERS_MAX);

/** `1,790`. */
export const formatCount = (count: number): string => count.toLocaleString("en-US");

/** `1 message`, `1,790 messages`. */
export const plural = (count: number, noun: string): string => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

/** A time to the minute: `2026-11-20 08:58 UTC`. */
export const minuteTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;
