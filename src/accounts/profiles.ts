import { ok, type Result } from "../foundation/base/errors.ts";
import { isTimeZone } from "../foundation/base/days.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-store.ts";
import { passwordProblem, type Passwords } from "./passwords.ts";
import { counterOfCode, hashOfRecoveryCode, newRecoveryCodes, newTotpSecret } from "./second-factor.ts";
import type { SessionStore } from "./session-store.ts";
import { SignInThrottle } from "./sign-in-throttle.ts";
import { refuse, type UserProblem, type UserRecord, type UserStore, refuseWith } from "./user-store.ts";

/** What an authenticator app needs for codes that are not confirmed yet. */
export interface CodeEnrolment {
  /** Base32. */
  readonly secret: string;
  /** Of the user. */
  readonly email: string;
}

/** Who changes its own user, in which session. */
export interface OwnSession {
  readonly userId: string;
  readonly sessionId: string;
}

interface ProfileParts {
  readonly store: UserStore;
  readonly sessions: SessionStore;
  readonly passwords: Pick<Passwords, "hash" | "verify">;
  readonly audit: AuditLog;
}

/** Changes that users make to their own account. Changes that matter for its security require the present password. */
export class Profiles {
  /** Guesses of the password in a session that somebody else has opened. */
  readonly #throttle: SignInThrottle;

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: ProfileParts,
  ) {
    this.#throttle = new SignInThrottle(runtime.clock);
  }

  /** Replaces the password and ends all other sessions of the user. */
  async changePassword(
    { userId, sessionId }: OwnSession,
    { present, next }: { present: string; next: string },
  ): Promise<Result<null, UserProblem>> {
    const message = passwordProblem(next, this.deps.store.find(userId)?.user.email ?? "");
    if (message !== null) return refuseWith("password_invalid", message);
    const verified = await this.#verify(userId, present);
    if (!verified.ok) return verified;
    const { accountId } = verified.value;
    const hashed = await this.deps.passwords.hash(next, accountId);
    if (!hashed.ok) return refuse("busy");
    return this.#change(verified.value, (tx, user) => {
      this.deps.store.update(tx, userId, { passwordHash: hashed.value });
      this.deps.sessions.removeOf(tx, userId, sessionId);
      this.#audit(tx, user, "users.password");
      return ok(null);
    });
  }

  /** The enrolment under way; begins one. Codes count once `confirmCodes` got one. Null when codes are on. */
  enrol(userId: string): CodeEnrolment | null {
    return this.runtime.db.transact((tx) => {
      const user = this.deps.store.find(userId)?.user;
      if (user === undefined || user.totpConfirmedAtMs !== null) return null;
      const secret = user.totpSecret ?? newTotpSecret();
      if (user.totpSecret === null) this.deps.store.update(tx, userId, { totpSecret: secret });
      return { secret, email: user.email };
    });
  }

  /** The enrolment that `enrol` began; null without one. */
  findEnrolment(userId: string): CodeEnrolment | null {
    const user = this.deps.store.find(userId)?.user;
    if (user === undefined || user.totpSecret === null || user.totpConfirmedAtMs !== null) return null;
    return { secret: user.totpSecret, email: user.email };
  }

  /** Drops an enrolment that was not confirmed. */
  cancelEnrolment(userId: string) {
    this.runtime.db.transact((tx) => {
      const user = this.deps.store.find(userId)?.user;
      if (user?.totpConfirmedAtMs === null) this.deps.store.update(tx, userId, { totpSecret: null });
    });
  }

  /** Switches codes on. Returns the recovery codes, which are shown only once; other sessions end. */
  async confirmCodes(
    { userId, sessionId }: OwnSession,
    { present, code }: { present: string; code: string },
  ): Promise<Result<readonly string[], UserProblem>> {
    return this.#withPassword(userId, present, (tx, user) => {
      const totpLastCounter = counterOfCode(user, code, this.runtime.clock.nowMs());
      if (user.totpConfirmedAtMs !== null || totpLastCounter === null) return refuse("code_wrong");
      const codes = newRecoveryCodes();
      const totpConfirmedAtMs = this.runtime.clock.nowMs();
      const recoveryCodes = codes.map(hashOfRecoveryCode);
      this.deps.store.update(tx, userId, { totpConfirmedAtMs, totpLastCounter, recoveryCodes });
      this.deps.sessions.removeOf(tx, userId, sessionId);
      this.#audit(tx, user, "users.second-factor.on");
      return ok(codes);
    });
  }

  /** New recovery codes; the old ones stop working. */
  replaceRecoveryCodes(userId: string, present: string): Promise<Result<readonly string[], UserProblem>> {
    return this.#withPassword(userId, present, (tx, user) => {
      if (user.totpConfirmedAtMs === null) return refuse("codes_off");
      const codes = newRecoveryCodes();
      this.deps.store.update(tx, userId, { recoveryCodes: codes.map(hashOfRecoveryCode) });
      this.#audit(tx, user, "users.second-factor.recovery-codes");
      return ok(codes);
    });
  }

  switchCodesOff(userId: string, present: string): Promise<Result<null, UserProblem>> {
    return this.#withPassword(userId, present, (tx, user) => {
      this.deps.store.update(tx, userId, { totpSecret: null, totpConfirmedAtMs: null, recoveryCodes: [] });
      this.#audit(tx, user, "users.second-factor.off");
      return ok(null);
    });
  }

  /** Sets the time zone by its IANA name; null: that of the service. */
  setTimeZone(userId: string, timeZone: string | null): Result<null, UserProblem> {
    if (timeZone !== null && !isTimeZone(timeZone)) return refuse("time_zone_invalid");
    this.runtime.db.transact((tx) => this.deps.store.update(tx, userId, { timeZone }));
    return ok(null);
  }

  /** Runs `work` on a user with its right password. */
  async #withPassword<T>(
    id: string,
    password: string,
    work: (tx: Tx, user: UserRecord) => Result<T, UserProblem>,
  ): Promise<Result<T, UserProblem>> {
    const verified = await this.#verify(id, password);
    return verified.ok ? this.#change(verified.value, work) : verified;
  }

  /** The user with this id, whose password this is. The throttle comes first: a refused attempt costs no hash. */
  async #verify(id: string, password: string): Promise<Result<UserRecord, UserProblem>> {
    const user = this.deps.store.find(id)?.user;
    if (user === undefined) return refuse("unknown_user");
    const waitMs = this.#throttle.admit(id, id);
    const message = `Too many wrong passwords. Try again in ${Math.ceil(waitMs / 1000)} s.`;
    if (waitMs > 0) return refuseWith("throttled", message);
    const verified = await this.deps.passwords.verify(password, user.passwordHash, user.accountId);
    if (!verified.ok) this.#throttle.undo(id, id);
    if (!verified.ok) return refuse("busy");
    if (!verified.value) return refuse("password_wrong");
    this.#throttle.succeed(id, id);
    return ok(user);
  }

  /** Runs `work` on a user whose password was verified, unless that was changed meanwhile. */
  #change<T>(
    { id, passwordHash }: UserRecord,
    work: (tx: Tx, user: UserRecord) => Result<T, UserProblem>,
  ): Result<T, UserProblem> {
    return this.runtime.db.transact((tx) => {
      const user = this.deps.store.find(id)?.user;
      return user?.passwordHash === passwordHash ? work(tx, user) : refuse("password_wrong");
    });
  }

  #audit(tx: Tx, { id, accountId }: UserRecord, action: string) {
    this.deps.audit.append(tx, { action, accountId, subject: id, by: id });
  }
}
