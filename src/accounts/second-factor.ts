import { BoundedMap } from "../foundation/base/bounded-map.ts";
import { Secret, TOTP } from "otpauth";
import { newSecretToken, sha256 } from "../foundation/base/secrets.ts";
import type { UserRecord } from "./user-store.ts";
import type { Clock } from "../foundation/base/clock.ts";

const PERIOD_S = 30;
const DIGITS = 6;
const SECRET_BYTES = 20;
/** A code of the time step before or after is accepted: clocks of phones differ. */
const WINDOW = 1;

const RECOVERY_CODES = 10;
/** 16 base62 characters are 95 bits. */
const RECOVERY_FORM = /^[0-9A-Za-z]{4}(-[0-9A-Za-z]{4}){3}$/;

const totpOf = (secret: string, email: string, issuer = ""): TOTP =>
  new TOTP({
    issuer,
    label: email,
    algorithm: "SHA1",
    digits: DIGITS,
    period: PERIOD_S,
    secret: Secret.fromBase32(secret),
  });

/** A new secret for codes of an authenticator app (RFC 6238), in base32. */
export const newTotpSecret = (): string => new Secret({ size: SECRET_BYTES }).base32;

/** The `otpauth:` URI that authenticator apps read, usually from a QR code. They show the issuer. */
export const totpUri = (secret: string, email: string, issuer: string): string =>
  totpOf(secret, email, issuer).toString();

/**
 * The time step of a code that is right now and later than `lastCounter`, so that a code is accepted once only (RFC 6238
 * §5.2); null for any other text.
 */
export const counterOfCode = (
  { totpSecret, totpLastCounter, email }: Pick<UserRecord, "totpSecret" | "totpLastCounter" | "email">,
  code: string,
  nowMs: number,
): number | null => {
  const token = code.replaceAll(/\s/g, "");
  if (totpSecret === null || !/^\d{6}$/.test(token)) return null;
  const delta = totpOf(totpSecret, email).validate({ token, timestamp: nowMs, window: WINDOW });
  if (delta === null) return null;
  const counter = Math.floor(nowMs / 1000 / PERIOD_S) + delta;
  return counter > totpLastCounter ? counter : null;
};

/** New recovery codes, each for one sign-in without the app. */
export const newRecoveryCodes = (): readonly string[] =>
  Array.from({ length: RECOVERY_CODES }, () =>
    newSecretToken()
      .slice(0, 16)
      .replaceAll(/(.{4})(?=.)/g, "$1-"),
  );

/** What is stored of a recovery code. */
export const hashOfRecoveryCode = (code: string): string => sha256(`recovery:${code}`);

/** Whether a text has the form of a recovery code, which is too long to be guessed. */
export const isRecoveryForm = (text: string): boolean => RECOVERY_FORM.test(text.trim());

/** What is left of the hashes after a recovery code was used; null when it is none of them. */
export const withoutRecoveryCode = (hashes: readonly string[], text: string): readonly string[] | null => {
  if (!isRecoveryForm(text)) return null;
  const hash = hashOfRecoveryCode(text.trim());
  return hashes.includes(hash) ? hashes.filter((one) => one !== hash) : null;
};

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
  /** By the id of the user, the least recent first. */
  readonly #entries = new BoundedMap<string, Entry>(USERS_MAX);

  constructor(private readonly clock: Clock) {}

  /** How long the codes of the user's app are not accepted yet, in ms. */
  waitMs(user: Subject): number {
    return Math.max(0, (this.#find(user)?.untilMs ?? 0) - this.clock.monotonicMs());
  }

  /** Counts a wrong code. Not null when it is the tenth: the user has to wait now. */
  add(user: Subject): WrongCodes | null {
    const count = (this.#find(user)?.count ?? 0) + 1;
    const isFull = count % WRONG_CODES_MAX === 0;
    const waitMs = isFull ? Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** Math.min(20, count / WRONG_CODES_MAX - 1)) : 0;
    const lastMs = this.clock.monotonicMs();
    this.#entries.set(user.id, { passwordHash: user.passwordHash, count, lastMs, untilMs: lastMs + waitMs });
    return isFull ? { count, waitMs } : null;
  }

  /** The user has entered a right code: what was mistyped before counts no longer. Full tens stay, they were somebody else's. */
  succeed(user: Subject) {
    const found = this.#find(user);
    if (found === undefined) return;
    const count = found.count - (found.count % WRONG_CODES_MAX);
    if (count === 0) this.#entries.delete(user.id);
    else this.#entries.set(user.id, { ...found, count });
  }

  get size(): number {
    return this.#entries.size;
  }

  #find({ id, passwordHash }: Subject): Entry | undefined {
    const found = this.#entries.get(id);
    const isValid = found?.passwordHash === passwordHash && this.clock.monotonicMs() - found.lastMs <= EXPIRES_AFTER_MS;
    return isValid ? found : undefined;
  }
}

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
  readonly #challenges = new BoundedMap<string, Challenge>(CHALLENGES_MAX);

  constructor(private readonly clock: Clock) {}

  /** Begins a challenge; returns its token. */
  begin({ id, passwordHash }: Pick<UserRecord, "id" | "passwordHash">): string {
    const ofUser = [...this.#challenges].filter(([, { userId }]) => userId === id);
    for (const [hash] of ofUser.slice(0, 1 - CHALLENGES_OF_USER_MAX)) this.#challenges.delete(hash);
    const token = newSecretToken();
    const expiresMs = this.clock.monotonicMs() + CHALLENGE_MS;
    this.#challenges.set(sha256(token), { userId: id, passwordHash, expiresMs });
    return token;
  }

  find(token: string): Challenge | undefined {
    const challenge = this.#challenges.get(sha256(token));
    return challenge !== undefined && challenge.expiresMs > this.clock.monotonicMs() ? challenge : undefined;
  }

  end(token: string) {
    this.#challenges.delete(sha256(token));
  }

  endOf(id: string) {
    for (const [hash, { userId }] of this.#challenges) if (userId === id) this.#challenges.delete(hash);
  }
}
