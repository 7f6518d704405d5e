import { type Readable, Transform } from "node:stream";
import type { ImapFlow } from "imapflow";
import { ImapFailure } from "./imap-client.ts";

/**
 * What a server may send from one command to the next, unsolicited responses included. The costliest command gets 10,000
 * UIDs or 100 messages; a mailbox in which others change more than this at once is simply opened again.
 */
export const IMAP_REPLY_LIMITS = {
  responses: 2_000,
  words: 20_000,
  literals: 1_000,
  /** Outside literals: parsing them costs a thousand times as much as the content of a message. */
  "bytes of protocol": 1024 * 1024,
  bytes: 64 * 1024 * 1024,
} as const;

type Unit = keyof typeof IMAP_REPLY_LIMITS;

const LF = 0x0a;
/** The end of a line in which the size of a literal stands (RFC 9051 §4.3). */
const LINE_END_BYTES = 32;
const LITERAL = /\{(\d+)\}\r?\n$/;
/** A size that is longer than what is kept of the line: leading zeros, which no server sends. */
const ENDLESS_SIZE = /^\d+\}\r?\n$/;

/** Space, quote, parentheses and brackets: what separates the words of a response. */
const isSeparator = (byte: number) =>
  byte === 0x20 || byte === 0x22 || byte === 0x28 || byte === 0x29 || byte === 0x5b || byte === 0x5d;

/**
 * Counts what an IMAP server sends before it is parsed. The parser of the library limits bytes only, and one byte can
 * become a token of a kilobyte.
 */
export class ImapReplyLimits {
  readonly #counts: Record<Unit, number> = {
    responses: 0,
    words: 0,
    literals: 0,
    "bytes of protocol": 0,
    bytes: 0,
  };
  #what = "log in";
  #literalBytesLeft = 0;
  #lineEnd = "";

  /** Begins to count anew. `what` completes "when it was to …". */
  begin(what: string): void {
    this.#what = what;
    for (const unit of unitsOf(this.#counts)) this.#counts[unit] = 0;
  }

  /** Counts the next bytes of the connection; returns a sentence once a limit is exceeded, else null. */
  take(chunk: Uint8Array): string | null {
    this.#counts.bytes += chunk.byteLength;
    for (let at = 0; at < chunk.byteLength;) {
      if (this.#literalBytesLeft > 0) {
        const skipped = Math.min(this.#literalBytesLeft, chunk.byteLength - at);
        this.#literalBytesLeft -= skipped;
        at += skipped;
        continue;
      }
      const lineEnd = chunk.indexOf(LF, at);
      const end = lineEnd === -1 ? chunk.byteLength : lineEnd + 1;
      if (!this.#takeLine(chunk.subarray(at, end)))
        return `The server sent an invalid literal when it was to ${this.#what}.`;
      const unit = this.#exceeded();
      if (unit !== undefined) return this.#describe(unit);
      at = end;
    }
    return this.#counts.bytes > IMAP_REPLY_LIMITS.bytes ? this.#describe("bytes") : null;
  }

  /** A line, or a part of one; false when its end cannot be read. */
  #takeLine(part: Uint8Array) {
    const counts = this.#counts;
    counts["bytes of protocol"] += part.byteLength;
    for (const byte of part) if (isSeparator(byte)) counts.words += 1;
    this.#lineEnd = (this.#lineEnd + Buffer.from(part.subarray(-LINE_END_BYTES)).toString("latin1")).slice(
      -LINE_END_BYTES,
    );
    if (part.at(-1) !== LF) return true;
    const lineEnd = this.#lineEnd;
    this.#lineEnd = "";
    const size = LITERAL.exec(lineEnd)?.[1];
    if (size === undefined) counts.responses += 1;
    else counts.literals += 1;
    this.#literalBytesLeft = Number(size ?? 0);
    return !ENDLESS_SIZE.test(lineEnd);
  }

  #exceeded(): Unit | undefined {
    return unitsOf(this.#counts).find((unit) => this.#counts[unit] > IMAP_REPLY_LIMITS[unit]);
  }

  #describe(unit: Unit) {
    const limit = IMAP_REPLY_LIMITS[unit].toLocaleString("en-US");
    return `The server sent more than ${limit} ${unit} when it was to ${this.#what}.`;
  }
}

const unitsOf = (counts: Readonly<Record<Unit, number>>) =>
  Object.keys(counts).filter((unit): unit is Unit => unit in IMAP_REPLY_LIMITS);

/**
 * Counts whatever is piped into the parser of a client, TLS removed, before it gets there. `onExcess` gets the sentence, once;
 * from then on the parser gets nothing.
 */
export const limitReplies = (client: ImapFlow, onExcess: (sentence: string) => void): ImapReplyLimits => {
  const parser: unknown = Reflect.get(client, "streamer");
  if (!(parser instanceof Transform)) throw new Error("The IMAP library has no stream that parses.");
  const limits = new ImapReplyLimits();
  const count = function (this: Readable, chunk: Buffer): void {
    const excess = limits.take(chunk);
    if (excess === null) return;
    this.unpipe(parser);
    onExcess(excess);
  };
  parser.on("pipe", (source: Readable) => source.prependListener("data", count));
  // Later data is not for the parser: after STARTTLS, the plain connection emits encrypted bytes.
  parser.on("unpipe", (source: Readable) => source.removeListener("data", count));
  return limits;
};

/** The open folder, as far as finding its new messages needs it. */
export interface UidFolder {
  /** How many messages it has (EXISTS). */
  messages(): number;
  /** The UIDs from one to another, both included; `null` stands for the last. In any order. */
  search(from: number, to: number | null): Promise<readonly number[]>;
  /** The UIDs of messages by sequence number, from one to another, both included; deleted ones are absent. */
  uidsAt(from: number, to: number): Promise<ReadonlyMap<number, number>>;
  /** Lets the server report deletions. */
  refresh(): Promise<void>;
}

/** How many UIDs a server may be asked for at once: a line of 110 kB. */
export const UIDS_SEARCHED_MAX = 10_000;
/** How many are listed beyond a gap, a line for each. */
const UIDS_LISTED_MAX = 500;
/** How often messages may vanish while a gap between UIDs is crossed. */
const CROSSINGS_MAX = 5;
const UID_MAX = 2 ** 32 - 1;

/** What a search found, and the UIDs that it covers. */
interface Page {
  readonly above: number;
  readonly uids: readonly number[];
}

/**
 * Finds the messages above a UID, in windows of UIDs: a folder may have a million messages, and a search for all of them
 * would come as one line. UIDs never change, so that no message can be missed while others delete messages.
 */
export class UidSearch {
  /** Found and not yet passed by the caller. Newer messages have larger UIDs. */
  #page: Page = { above: UID_MAX, uids: [] };

  constructor(private readonly folder: UidFolder) {}

  /** The smallest UIDs above `uid`, in ascending order: `limit` at most, and none only if there are none. */
  async after(uid: number, limit: number): Promise<number[]> {
    if (uid >= UID_MAX) return [];
    if (uid < this.#page.above) this.#page = { above: UID_MAX, uids: [] };
    const left = this.#page.uids.filter((one) => one > uid);
    this.#page = { above: uid, uids: left.length > 0 ? left : await this.#search(uid) };
    return this.#page.uids.slice(0, limit);
  }

  async #search(uid: number): Promise<readonly number[]> {
    if (this.folder.messages() <= UIDS_SEARCHED_MAX) return this.#window(uid + 1, null);
    const to = uid + UIDS_SEARCHED_MAX;
    const near = await this.#window(uid + 1, to);
    if (near.length > 0) return near;
    return this.#beyondGap(to);
  }

  /** The range `n:*` always has the last message, also when its UID is smaller than n. */
  async #window(from: number, to: number | null): Promise<readonly number[]> {
    if (from > UID_MAX) return [];
    const last = to === null ? null : Math.min(to, UID_MAX);
    const found = await this.folder.search(from, last);
    const inside = found.filter((one) => Number.isSafeInteger(one) && one >= from && one <= (last ?? UID_MAX));
    return [...new Set(inside)].toSorted((a, b) => a - b);
  }

  /** The smallest UIDs above `uid`, far away. */
  async #beyondGap(uid: number): Promise<readonly number[]> {
    for (let crossing = 0; crossing < CROSSINGS_MAX; crossing += 1) {
      const found = await this.#cross(uid);
      if (found !== undefined) return found;
      await this.folder.refresh();
    }
    throw new ImapFailure("broken", "Messages of the folder kept changing while the service looked for the next one.");
  }

  /**
   * UIDs ascend with sequence numbers (RFC 9051 §2.3.1.1), so that some 30 halvings cross any gap. Deletions shift sequence
   * numbers between commands, but not within a FETCH (§7.5.1): the one that gets the UIDs also shows their neighbour
   * before the gap. Undefined when messages have moved.
   */
  async #cross(uid: number): Promise<readonly number[] | undefined> {
    const { folder } = this;
    const messages = folder.messages();
    if (messages === 0) return [];
    const uidAt = async (at: number) => (await folder.uidsAt(at, at)).get(at);
    const last = await uidAt(messages);
    if (last === undefined) return undefined;
    if (last <= uid) return [];
    let [below, above] = [0, messages];
    while (above - below > 1) {
      const middle = Math.floor((below + above) / 2);
      const found = await uidAt(middle);
      if (found === undefined) return undefined;
      if (found > uid) above = middle;
      else below = middle;
    }
    const found = await folder.uidsAt(Math.max(1, below), Math.min(messages, below + UIDS_LISTED_MAX));
    const before = below === 0 ? 0 : found.get(below);
    const first = found.get(above);
    if (before === undefined || before > uid || first === undefined || first <= uid) return undefined;
    return [...new Set(found.values())].filter((one) => one > uid && one <= UID_MAX).toSorted((a, b) => a - b);
  }
}
