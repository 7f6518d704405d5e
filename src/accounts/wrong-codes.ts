import type { Clock } from "../foundation/base/clock.ts";
import type { UserRecord } from "./user-store.ts";

/** Wrong codes of a user before the next ones have to wait. ASVS 2.2.1 allows 100 an hour. */
export const WRONG_CODES_MAX = 10;
/** The wait after the first ten; it doubles with every further ten. */
const WAIT_MS_MIN = 60_000;
const WAIT_MS_MAX = 60 * 60_000;
/** This long without a wrong code, they are forgotten. */
const EXPIRES_AFTER_MS = 24 * 60 * 60_000;
/** Only somebody with the password of a user gets an entry. The least recently failed are evicted. */
const USERS_MAX = 20_000;

/** Ten more wrong codes of a user. */
export interface WrongCodes {
  /** In all, over all addresses. */
  readonly count: number;
  /** How long no code of an app is accepted. */
  readonly waitMs: number;
}

interface Entry {
  /** With another password the guessing begins anew, and so do the waits. */
  readonly passwordHash: string | null;
  readonly count: number;
  readonly lastMs: number;
  readonly untilMs: number;
}

type Subject = Pick<UserRecord, "id" | "passwordHash">;

/**
 * Wrong codes of the second step, by user over all addresses: whoever enters one has the password already, and a code has
 * six digits only. After every ten the user has to wait, from a minute to an hour. Nobody is locked out: recovery codes are
 * accepted meanwhile, and a new password ends the wait.
 */
export class WrongCodeCounts {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** By the id of the user, the least recent first. */
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** How long the codes of the user's app are not accepted yet, in ms. */
  waitMs(user: Subject): number {
    return Math.max(0, (this.#find(user)?.untilMs ?? 0) - this.#clock.monotonicMs());
  }

  /** Counts a wrong code. Not null when it is the tenth: the user has to wait now. */
  add(user: Subject): WrongCodes | null {
    const count = (this.#find(user)?.count ?? 0) + 1;
    const isFull = count % WRONG_CODES_MAX === 0;
    const waitMs = isFull ? Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** Math.min(20, count / WRONG_CODES_MAX - 1)) : 0;
    const lastMs = this.#clock.monotonicMs();
    this.#put(user, { passwordHash: user.passwordHash, count, lastMs, untilMs: lastMs + waitMs });
    return isFull ? { count, waitMs } : null;
  }

  /** The user has entered a right code: what was mistyped before counts no longer. Full tens stay, they were somebody else's. */
  succeed(user: Subject): void {
    const found = this.#find(user);
    if (found === undefined) return;
    const count = found.count - (found.count % WRONG_CODES_MAX);
    if (count === 0) this.#entries.delete(user.id);
    else this.#put(user, { ...found, count });
  }

  get size(): number {
    return this.#entries.size;
  }

  #find({ id, passwordHash }: Subject): Entry | undefined {
    const found = this.#entries.get(id);
    const isValid =
      found?.passwordHash === passwordHash && this.#clock.monotonicMs() - found.lastMs <= EXPIRES_AFTER_MS;
    return isValid ? found : undefined;
  }

  #put({ id }: Subject, entry: Entry): void {
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > USERS_MAX && oldest !== undefined) this.#entries.delete(oldest);
  }
}
