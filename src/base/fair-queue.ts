import type { OnBehalfOf } from "./on-behalf-of.ts";

interface Line<T> {
  readonly who: OnBehalfOf;
  readonly items: T[];
  /** Items before this one were taken. */
  at: number;
}

/** Taken items are cleared away when there are so many, and more than of those that wait. */
const CLEARED_MIN = 64;

/**
 * What waits: single checks before lists, within each the accounts in turn, within an account in the order of arrival.
 * `isGone` tells that an item no longer waits; it is then skipped. Accounts without items take no memory.
 */
export const createFairQueue = <T>(isGone: (item: T) => boolean = () => false) => {
  type Lines = Map<string | null, Line<T>>;
  const [realtime, bulk]: [Lines, Lines] = [new Map(), new Map()];

  const lineOf = (who: OnBehalfOf): Line<T> => {
    const lines = who.priority === "realtime" ? realtime : bulk;
    const line = lines.get(who.account) ?? { who, items: [], at: 0 };
    lines.set(who.account, line);
    return line;
  };

  /** The line's first item that still waits; undefined when there is none, and then nothing is left of the line. */
  const firstOf = (lines: Lines, line: Line<T>): T | undefined => {
    for (; line.at < line.items.length; line.at++) {
      const item = line.items[line.at];
      if (item !== undefined && !isGone(item)) {
        if (line.at >= CLEARED_MIN && line.at * 2 > line.items.length) line.at -= line.items.splice(0, line.at).length;
        return item;
      }
    }
    lines.delete(line.who.account);
    return undefined;
  };

  /** The next item for whom `may` says yes, and the line in which it is. */
  const find = (may: (who: OnBehalfOf) => boolean) => {
    for (const lines of [realtime, bulk]) {
      for (const line of lines.values()) {
        const item = firstOf(lines, line);
        if (item !== undefined && may(line.who)) return { lines, line, item };
      }
    }
    return undefined;
  };

  return {
    add(who: OnBehalfOf, item: T): void {
      const line = lineOf(who);
      line.items.push(item);
      // What is gone does not pile up behind others who always go first.
      firstOf(who.priority === "realtime" ? realtime : bulk, line);
    },
    /** Puts an item back to where it was taken from. */
    addFirst(who: OnBehalfOf, item: T): void {
      const line = lineOf(who);
      if (line.at > 0) line.items[--line.at] = item;
      else line.items.unshift(item);
    },
    /** For whom the next item is, among those for whom `may` says yes; null when there is none. */
    peek: (may: (who: OnBehalfOf) => boolean = () => true): OnBehalfOf | null => find(may)?.line.who ?? null,
    /** Takes the next item out, among those for whom `may` says yes. Its account is then behind the others. */
    take(may: (who: OnBehalfOf) => boolean = () => true): { readonly who: OnBehalfOf; readonly item: T } | undefined {
      const found = find(may);
      if (found === undefined) return undefined;
      const { lines, line, item } = found;
      line.at++;
      lines.delete(line.who.account);
      if (firstOf(lines, line) !== undefined) lines.set(line.who.account, line);
      return { who: line.who, item };
    },
    /** All for whom something waits, the next one first. */
    waitingFor: (): OnBehalfOf[] =>
      [realtime, bulk].flatMap((lines) =>
        [...lines.values()].flatMap((line) => (firstOf(lines, line) === undefined ? [] : [line.who])),
      ),
    /** Whether anything waits for this account with this priority. */
    has({ account, priority }: OnBehalfOf): boolean {
      const lines = priority === "realtime" ? realtime : bulk;
      const line = lines.get(account);
      return line !== undefined && firstOf(lines, line) !== undefined;
    },
    isEmpty: (): boolean => find(() => true) === undefined,
  };
};

export type FairQueue<T> = ReturnType<typeof createFairQueue<T>>;
