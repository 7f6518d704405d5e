import { networkKey } from "../foundation/base/cidr.ts";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import { inSteps } from "../foundation/base/in-steps.ts";
import { isSecretToken, newId, newSecretToken, sha256 } from "../foundation/base/secrets.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-store.ts";
import { FailedSignIns, SignInThrottle } from "./sign-in-throttle.ts";
import type { Passwords } from "./passwords.ts";
import {
  counterOfCode,
  isRecoveryForm,
  withoutRecoveryCode,
  WrongCodeCounts,
  type WrongCodes,
  SignInChallenges,
} from "./second-factor.ts";
import type { SessionRecord, SessionStore } from "./session-store.ts";
import { type OwnedUser, type UserRecord, type UserStore, normalizedEmail, type User, userOf } from "./user-store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** A session ends when it was not used for this time. */
const IDLE_MS = 14 * DAY_MS;
/** A session ends in any case; browsers get the same lifetime for the cookie. */
export const SESSION_MS_MAX = 90 * DAY_MS;
/** Rows removed in one transaction: it holds the event loop for a few milliseconds. */
const PURGED_AT_ONCE = 500;
/** The last use is stored at most this often, so that a page does not cost a write. */
const SEEN_STEP_MS = 60_000;
/** The least recently used end first. */
const SESSIONS_OF_USER_MAX = 50;
const USER_AGENT_CHARACTERS_MAX = 300;
/** The action in the audit log for ten more wrong codes of a user. */
export const CODES_GUESSED = "users.second-factor.guessed";

/** The browser of a request. */
export interface Client {
  readonly address: string;
  readonly userAgent: string;
  /** The session token that it sent; its session ends when a new one begins. */
  readonly token?: string | undefined;
  /** Whether it came by HTTPS. A session lives on one of the two: a token of HTTPS is not valid by HTTP, and vice versa. */
  readonly isSecure?: boolean;
}

const hashOf = (token: string, isSecure: boolean): string => sha256(isSecure ? token : `http ${token}`);

/** Who is signed in. */
export interface Session {
  /** Names the session; not a secret. */
  readonly id: string;
  readonly user: User;
  readonly account: { readonly id: string; readonly name: string };
  /** What forms send back, so that no other site can send them. */
  readonly csrfToken: string;
}

/** A session as its user sees it. */
export type ListedSession = Omit<SessionRecord, "hash" | "userId" | "csrfToken">;

export interface SignedIn {
  /** For the cookie; only its hash is stored. */
  readonly token: string;
  readonly user: User;
}

/** Why nobody is signed in. `wrong` tells neither which of them is wrong, nor whether there is such a user. */
export type SignInProblem =
  | { readonly kind: "wrong" | "disabled" | "busy" | "expired" }
  | { readonly kind: "throttled"; readonly retryAfterS: number }
  /**
   * Too many wrong codes of this user: those of the app wait, recovery codes do not. With `isOver` this was the last one
   * before the wait, and the sign-in begins anew with the password.
   */
  | { readonly kind: "codes_wait"; readonly retryAfterS: number; readonly isOver: boolean }
  | { readonly kind: "code_required"; readonly challenge: string };

/** Called with a user for whom ten more wrong codes were entered after the right password. */
export type CodesGuessedListener = (user: UserRecord, wrong: WrongCodes) => void;

/** Signs users in and out, and finds who is signed in. */
export class Sessions {
  readonly #throttle: SignInThrottle;
  readonly #failed: FailedSignIns;
  readonly #wrongCodes: WrongCodeCounts;
  readonly #challenges: SignInChallenges;
  #onCodesGuessed: CodesGuessedListener = () => undefined;
  readonly #touching = new Set<string>();

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: SessionStore;
      users: UserStore;
      passwords: Pick<Passwords, "verify">;
      audit: AuditLog;
    },
  ) {
    this.#throttle = new SignInThrottle(runtime.clock);
    this.#failed = new FailedSignIns(runtime, deps.audit);
    this.#challenges = new SignInChallenges(runtime.clock);
    this.#wrongCodes = new WrongCodeCounts(runtime.clock);
  }

  /** Sets who notifies the user and the owners. */
  onCodesGuessed(listener: CodesGuessedListener): void {
    this.#onCodesGuessed = listener;
  }

  /**
   * Signs a user in. An unknown address takes as long as a wrong password. With `code_required` the password was right:
   * `enterCode` with the challenge completes the sign-in.
   */
  async signIn(input: { email: string; password: string }, client: Client): SignInResult {
    const email = normalizedEmail(input.email) ?? input.email.trim().toLowerCase().slice(0, 254);
    const waitMs = this.#throttle.admit(email, client.address);
    if (waitMs > 0) return throttled(waitMs);
    const found = this.deps.users.findByEmail(email);
    const verified = await this.deps.passwords.verify(
      input.password,
      found?.user.passwordHash ?? null,
      networkKey(client.address),
    );
    if (!verified.ok) {
      this.#throttle.undo(email, client.address);
      return err({ kind: "busy" });
    }
    if (!verified.value || found === undefined) return this.#fail(found);
    const { user, account } = found;
    if (account.disabledAtMs !== null || user.totpConfirmedAtMs !== null) this.#throttle.undo(email, client.address);
    if (account.disabledAtMs !== null) return err({ kind: "disabled" });
    if (user.totpConfirmedAtMs !== null) return err({ kind: "code_required", challenge: this.#challenges.begin(user) });
    this.#throttle.succeed(email, client.address);
    return this.runtime.db.transact((tx) => this.#completeIn(tx, found, client));
  }

  /** Completes a sign-in by a code of the user's app or a recovery code, either of which is accepted once. */
  async enterCode(input: { challenge: string; code: string }, client: Client): SignInResult {
    const challenge = this.#challenges.find(input.challenge);
    const found = challenge && this.deps.users.find(challenge.userId);
    // Meanwhile the password may have been changed or the user removed.
    if (found === undefined || found.user.passwordHash !== challenge?.passwordHash) return err({ kind: "expired" });
    if (found.account.disabledAtMs !== null) return err({ kind: "disabled" });
    const { email } = found.user;
    const codesWaitMs = isRecoveryForm(input.code) ? 0 : this.#wrongCodes.waitMs(found.user);
    if (codesWaitMs > 0) return err({ kind: "codes_wait", retryAfterS: Math.ceil(codesWaitMs / 1000), isOver: false });
    const waitMs = this.#throttle.admit(email, client.address);
    if (waitMs > 0) return throttled(waitMs);
    // One transaction: a code is used up by the sign-in that the audit log has.
    const signedIn = this.runtime.db.transact((tx) =>
      this.#acceptCode(tx, found.user.id, input.code) ? this.#completeIn(tx, found, client) : null,
    );
    if (signedIn === null) return isRecoveryForm(input.code) ? this.#fail(found) : this.#failCode(found);
    this.#challenges.end(input.challenge);
    this.#wrongCodes.succeed(found.user);
    this.#throttle.succeed(email, client.address);
    return signedIn;
  }

  /** Begins a session for a user who has just proved who they are. */
  open(tx: Tx, userId: string, client: Client): string {
    const { store, users } = this.deps;
    const nowMs = this.runtime.clock.nowMs();
    if (client.token !== undefined) store.remove(tx, [hashOf(client.token, client.isSecure ?? false)]);
    const oldest = store.list(userId).slice(SESSIONS_OF_USER_MAX - 1);
    store.remove(
      tx,
      oldest.map(({ hash }) => hash),
    );
    const token = newSecretToken();
    store.insert(tx, {
      hash: hashOf(token, client.isSecure ?? false),
      id: newId(),
      userId,
      csrfToken: newSecretToken(),
      address: client.address,
      userAgent: client.userAgent.slice(0, USER_AGENT_CHARACTERS_MAX),
      createdAtMs: nowMs,
      lastSeenAtMs: nowMs,
    });
    users.update(tx, userId, { lastSignInAtMs: nowMs });
    return token;
  }

  /**
   * The session of a token; undefined for one that is unknown or over, and while the account is disabled. Reads the
   * database every time, so that a change of the user takes effect at once, whichever process made it.
   */
  find(token: string | undefined, isSecure: boolean = false): Session | undefined {
    if (token === undefined || !isSecretToken(token)) return undefined;
    const found = this.deps.store.find(hashOf(token, isSecure));
    if (found === undefined || found.account.disabledAtMs !== null) return undefined;
    const { session, user, account } = found;
    const nowMs = this.runtime.clock.nowMs();
    if (nowMs - session.lastSeenAtMs >= IDLE_MS || nowMs - session.createdAtMs >= SESSION_MS_MAX) return undefined;
    if (Math.abs(nowMs - session.lastSeenAtMs) >= SEEN_STEP_MS) this.#touch(session, nowMs);
    const { id, csrfToken } = session;
    return { id, csrfToken, user: userOf(user), account: { id: account.id, name: account.name } };
  }

  list(userId: string): ListedSession[] {
    const nowMs = this.runtime.clock.nowMs();
    return this.deps.store
      .list(userId)
      .filter(({ lastSeenAtMs, createdAtMs }) => nowMs - lastSeenAtMs < IDLE_MS && nowMs - createdAtMs < SESSION_MS_MAX)
      .map(({ id, address, userAgent, createdAtMs, lastSeenAtMs }) => ({
        id,
        address,
        userAgent,
        createdAtMs,
        lastSeenAtMs,
      }));
  }

  /** Signs one session of a user out; false when the user has no such session. */
  end(userId: string, id: string): boolean {
    const { store } = this.deps;
    return this.runtime.db.transact((tx) => {
      const found = store.list(userId).find((session) => session.id === id);
      if (found !== undefined) store.remove(tx, [found.hash]);
      return found !== undefined;
    });
  }

  /** Signs a user out everywhere, but for the session with the id `kept`. */
  endAll(userId: string, kept?: string): void {
    this.runtime.db.transact((tx) => this.deps.store.removeOf(tx, userId, kept));
  }

  /** Removes sessions that are over, in short transactions; returns how many. */
  async purge(isStopping: () => boolean): Promise<number> {
    const { db, clock } = this.runtime;
    const over = { seenMs: clock.nowMs() - IDLE_MS, createdMs: clock.nowMs() - SESSION_MS_MAX };
    const purgeSome = (tx: Tx): number => this.deps.store.purgeSessions(tx, over, PURGED_AT_ONCE);
    return (await inSteps(() => db.commit(purgeSome), { isStopping })).count;
  }

  #fail(found: OwnedUser | undefined): Result<never, SignInProblem> {
    this.#failed.note(found?.user);
    return err({ kind: "wrong" });
  }

  /** A wrong code of an app. After ten, the challenges of the user end, and it is in the audit log. */
  #failCode(found: OwnedUser): Result<never, SignInProblem> {
    const { user } = found;
    const wrong = this.#wrongCodes.add(user);
    if (wrong === null) return this.#fail(found);
    this.#challenges.endOf(user.id);
    const retryAfterS = Math.ceil(wrong.waitMs / 1000);
    this.runtime.db.transact((tx) => {
      const after = { wrong_codes: wrong.count, wait_s: retryAfterS };
      this.deps.audit.append(tx, { action: CODES_GUESSED, accountId: user.accountId, subject: user.id, after });
    });
    this.#onCodesGuessed(user, wrong);
    return err({ kind: "codes_wait", retryAfterS, isOver: true });
  }

  /** Begins the session, unless the user was changed or removed while the password was verified. */
  #completeIn(tx: Tx, { user: { id, passwordHash } }: OwnedUser, client: Client): Result<SignedIn, SignInProblem> {
    const found = this.deps.users.find(id);
    if (found === undefined || found.user.passwordHash !== passwordHash) return err({ kind: "wrong" });
    const token = this.open(tx, id, client);
    this.#failed.flush(tx, found.user);
    const { accountId } = found.user;
    this.deps.audit.append(tx, { action: "users.sign-in", accountId, subject: id, by: id });
    return ok({ token, user: userOf(found.user) });
  }

  #acceptCode(tx: Tx, userId: string, code: string): boolean {
    const user = this.deps.users.find(userId)?.user;
    if (user === undefined || user.totpConfirmedAtMs === null) return false;
    const counter = counterOfCode(user, code, this.runtime.clock.nowMs());
    if (counter !== null) {
      this.deps.users.update(tx, userId, { totpLastCounter: counter });
      return true;
    }
    const recoveryCodes = withoutRecoveryCode(user.recoveryCodes, code);
    if (recoveryCodes !== null) this.deps.users.update(tx, userId, { recoveryCodes });
    return recoveryCodes !== null;
  }

  #touch({ hash }: SessionRecord, nowMs: number): void {
    if (this.#touching.has(hash)) return;
    this.#touching.add(hash);
    const touched = this.runtime.db.commit((tx) => this.deps.store.touch(tx, hash, nowMs));
    const end = () => void this.#touching.delete(hash);
    // A lost note of use does no harm, and a database that is being closed must not end the process.
    touched.then(end, end);
  }
}

type SignInResult = Promise<Result<SignedIn, SignInProblem>>;

const throttled = (waitMs: number): Result<never, SignInProblem> =>
  err({ kind: "throttled", retryAfterS: Math.ceil(waitMs / 1000) });
