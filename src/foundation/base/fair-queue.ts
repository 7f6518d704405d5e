import type { OnBehalfOf } from "./on-behalf-of.ts";
import { nextTurn, systemClock } from "./clock.ts";
import { wait } from "./wait.ts";

/** What waits for one account with one priority. */
interface AccountQueue<T> {
  readonly who: OnBehalfOf;
  readonly items: T[];
  /** Items before this one were taken. */
  at: number;
}

type AccountQueues<T> = Map<string | null, AccountQueue<T>>;

/** Taken items are cleared away when there are so many, and more than of those that wait. */
const CLEARED_MIN = 64;

/**
 * What waits: single checks before lists, within each the accounts in turn, within an account in the order of arrival.
 * `isGone` says that an item no longer waits; it is then skipped. Accounts without items take no memory.
 */
export class FairQueue<T> {
  readonly #realtime: AccountQueues<T> = new Map();
  readonly #bulk: AccountQueues<T> = new Map();

  constructor(private readonly isGone: (item: T) => boolean = () => false) {}

  add(who: OnBehalfOf, item: T): void {
    const queue = this.#queueOf(who);
    queue.items.push(item);
    // Drops cancelled items even if items of a higher priority keep arriving.
    this.#firstOf(this.#queuesOf(who), queue);
  }

  /** Puts an item back to where it was taken from. */
  addFirst(who: OnBehalfOf, item: T): void {
    const queue = this.#queueOf(who);
    if (queue.at > 0) queue.items[--queue.at] = item;
    else queue.items.unshift(item);
  }

  /** For whom the next item is, among those for whom `may` says yes; null when there is none. */
  peek(may: (who: OnBehalfOf) => boolean = () => true): OnBehalfOf | null {
    return this.#find(may)?.queue.who ?? null;
  }

  /** Takes the next item out, among those for whom `may` says yes. Its account is then behind the others. */
  take(may: (who: OnBehalfOf) => boolean = () => true): { readonly who: OnBehalfOf; readonly item: T } | undefined {
    const found = this.#find(may);
    if (found === undefined) return undefined;
    const { queues, queue, item } = found;
    queue.at++;
    queues.delete(queue.who.account);
    if (this.#firstOf(queues, queue) !== undefined) queues.set(queue.who.account, queue);
    return { who: queue.who, item };
  }

  /** All for whom something waits, the next one first. */
  waitingFor(): OnBehalfOf[] {
    return [this.#realtime, this.#bulk].flatMap((queues) =>
      [...queues.values()].filter((queue) => this.#firstOf(queues, queue) !== undefined).map(({ who }) => who),
    );
  }

  /** Whether anything waits for this account with this priority. */
  has(who: OnBehalfOf): boolean {
    const queues = this.#queuesOf(who);
    const queue = queues.get(who.account);
    return queue !== undefined && this.#firstOf(queues, queue) !== undefined;
  }

  isEmpty(): boolean {
    return this.#find(() => true) === undefined;
  }

  #queuesOf({ priority }: OnBehalfOf): AccountQueues<T> {
    return priority === "realtime" ? this.#realtime : this.#bulk;
  }

  #queueOf(who: OnBehalfOf): AccountQueue<T> {
    const queues = this.#queuesOf(who);
    const queue = queues.get(who.account) ?? { who, items: [], at: 0 };
    queues.set(who.account, queue);
    return queue;
  }

  /** The first item that still waits; undefined when there is none, and then the account is removed. */
  #firstOf(queues: AccountQueues<T>, queue: AccountQueue<T>): T | undefined {
    for (; queue.at < queue.items.length; queue.at++) {
      const item = queue.items[queue.at];
      if (item === undefined || this.isGone(item)) continue;
      if (queue.at >= CLEARED_MIN && queue.at * 2 > queue.items.length)
        queue.at -= queue.items.splice(0, queue.at).length;
      return item;
    }
    queues.delete(queue.who.account);
    return undefined;
  }

  /** The next item for whom `may` says yes, and where it is. */
  #find(may: (who: OnBehalfOf) => boolean) {
    for (const queues of [this.#realtime, this.#bulk]) {
      for (const queue of queues.values()) {
        const item = this.#firstOf(queues, queue);
        if (item !== undefined && may(queue.who)) return { queues, queue, item };
      }
    }
    return undefined;
  }
}

/** The pause between two steps when several accounts or requests compete. */
const PAUSE_MS_MAX = 10;

const waiting = new FairQueue<() => void>();
let waitingCount = 0;
let isRunning = false;

/**
 * Runs one waiting step at a time, the accounts in turn. While more than one waits, the event loop is free for as long as
 * the last step took: a check needs several turns of the loop, and each of them would otherwise be as long as a step.
 */
const run = async () => {
  await nextTurn();
  for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
    waitingCount--;
    const startedMs = systemClock.monotonicMs();
    next.item();
    await nextTurn();
    const tookMs = systemClock.monotonicMs() - startedMs;
    if (waitingCount > 1) await wait(systemClock, Math.min(PAUSE_MS_MAX, tookMs));
  }
  isRunning = false;
};

/**
 * Resolves when one step of background work may run: a page, a part of an export, some rows of an upload. Such a step holds
 * the event loop for a few milliseconds and has to end with the next await. `account` is whose work it is; null: the service's own.
 */
export const backgroundTurn = (account: string | null): Promise<void> =>
  new Promise((resolve) => {
    waiting.add({ account, priority: "bulk" }, resolve);
    waitingCount++;
    if (isRunning) return;
    isRunning = true;
    void run();
  });
