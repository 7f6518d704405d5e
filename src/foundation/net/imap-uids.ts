import { ImapFailure } from "./imap-failure.ts";

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
