import type { Clock } from "../foundation/base/clock.ts";
import { newSecretToken, sha256 } from "../foundation/base/secrets.ts";
import type { UserRecord } from "./user-store.ts";

/** How long a code may be entered after the password. */
const CHALLENGE_MS = 10 * 60_000;
const CHALLENGES_MAX = 1_000;
/** The oldest of a user ends first, so that nobody ends those of others. */
const CHALLENGES_OF_USER_MAX = 10;

/** A right password that waits for its code. */
export interface Challenge {
  readonly userId: string;
  readonly passwordHash: string | null;
  readonly expiresMs: number;
}

/** Sign-ins between password and code, in memory, by the hash of a token that the browser has. */
export class SignInChallenges {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #challenges = new Map<string, Challenge>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Begins a challenge; returns its token. */
  begin({ id, passwordHash }: Pick<UserRecord, "id" | "passwordHash">): string {
    const ofUser = [...this.#challenges].filter(([, { userId }]) => userId === id);
    for (const [hash] of ofUser.slice(0, 1 - CHALLENGES_OF_USER_MAX)) this.#challenges.delete(hash);
    const token = newSecretToken();
    const expiresMs = this.#clock.monotonicMs() + CHALLENGE_MS;
    this.#challenges.set(sha256(token), { userId: id, passwordHash, expiresMs });
    const [oldest] = this.#challenges.keys();
    if (this.#challenges.size > CHALLENGES_MAX && oldest !== undefined) this.#challenges.delete(oldest);
    return token;
  }

  find(token: string): Challenge | undefined {
    const challenge = this.#challenges.get(sha256(token));
    return challenge !== undefined && challenge.expiresMs > this.#clock.monotonicMs() ? challenge : undefined;
  }

  end(token: string): void {
    this.#challenges.delete(sha256(token));
  }

  endOf(id: string): void {
    for (const [hash, { userId }] of this.#challenges) if (userId === id) this.#challenges.delete(hash);
  }
}
