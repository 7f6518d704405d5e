import { ok, type Result } from "../foundation/base/errors.ts";
import { newId } from "../foundation/base/secrets.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-store.ts";
import { passwordProblem, type Passwords } from "./passwords.ts";
import type { SessionStore } from "./session-store.ts";
import type { SetupLinks } from "./setup-links.ts";
import type { AccountStore } from "./store.ts";
import {
  refuse,
  type UserProblem,
  type OwnedUser,
  type UserRecord,
  type UserRole,
  type UserStore,
  normalizedEmail,
  type User,
  userOf,
  refuseWith,
} from "./user-store.ts";

/** Who changes users: a user of the dashboard, or null for the operator's command line. */
export type UserActor = Pick<User, "id" | "isOperator" | "accountId"> | null;

export interface NewUser {
  readonly accountId: string;
  readonly email: string;
  readonly role: UserRole;
  readonly isOperator: boolean;
  /** The tag whose domains a viewer sees; absent or null for other roles. */
  readonly tag?: string | null;
}

/** A user with a one-time link, whose token is shown only once. */
export interface InvitedUser {
  readonly user: User;
  readonly token: string;
  readonly expiresAtMs: number;
}

/** A user with its account, for lists. */
export interface UserOfAccount {
  readonly user: User;
  readonly account: { readonly id: string; readonly name: string };
  /** When the open set-up link expires; null without one. */
  readonly linkExpiresAtMs: number | null;
}

/** What a user without a password has in place of one and of a second factor. */
const WITHOUT_SECRETS = {
  passwordHash: null,
  totpSecret: null,
  totpConfirmedAtMs: null,
  totpLastCounter: 0,
  recoveryCodes: [],
} as const;

/** A role in the audit log, with the tag of a viewer. */
const roleEntry = ({ role, tag }: Pick<UserRecord, "role" | "tag">) => (tag === null ? { role } : { role, tag });

/** The administration of users. Changes by a user of the dashboard are limited to its own account. */
export class Users {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: UserStore;
      sessions: SessionStore;
      links: SetupLinks;
      accounts: AccountStore;
      passwords: Passwords;
      audit: AuditLog;
    },
  ) {}

  /** The users of an account, or of all, in the order of their creation. */
  list(accountId?: string): UserOfAccount[] {
    return this.deps.store.list(accountId).map(({ user, account: { id, name } }) => ({
      user: userOf(user),
      account: { id, name },
      linkExpiresAtMs: this.deps.links.openUntilMs(user.id),
    }));
  }

  hasUsers(): boolean {
    return this.deps.store.hasUsers();
  }

  find(id: string): User | undefined {
    const found = this.deps.store.find(id);
    return found === undefined ? undefined : userOf(found.user);
  }

  /** A user by its email address, however it is spelled. */
  findByEmail(email: string): User | undefined {
    const found = this.deps.store.findByEmail(normalizedEmail(email) ?? "");
    return found === undefined ? undefined : userOf(found.user);
  }

  /** Adds a user, who sets a password by the one-time link. */
  invite(requested: NewUser, by: UserActor): Result<InvitedUser, UserProblem> {
    return this.runtime.db.transact((tx) => {
      const added = this.#add(tx, requested, { by, passwordHash: null });
      return added.ok ? ok(this.#withLink(tx, added.value)) : added;
    });
  }

  /** Adds a user with a password. */
  async create(requested: NewUser & { password: string }, by: UserActor): Promise<Result<User, UserProblem>> {
    const message = passwordProblem(requested.password, requested.email);
    if (message !== null) return refuseWith("password_invalid", message);
    const hashed = await this.deps.passwords.hash(requested.password, requested.accountId);
    if (!hashed.ok) return refuse("busy");
    return this.runtime.db.transact((tx) => {
      const added = this.#add(tx, requested, { by, passwordHash: hashed.value });
      return added.ok ? ok(userOf(added.value)) : added;
    });
  }

  /** Removes a user, whose sessions and links end at once. */
  remove(id: string, by: UserActor): Result<User, UserProblem> {
    return this.#change(id, by, (tx, { user }) => {
      if (this.#isLastOwner(user)) return refuse("last_owner");
      this.deps.sessions.removeOf(tx, id);
      this.deps.sessions.removeLinksOf(tx, id);
      this.deps.store.remove(tx, id);
      this.#audit(tx, user, by, { action: "users.remove", before: { role: user.role, operator: user.isOperator } });
      return ok(userOf(user));
    });
  }

  /** Changes the role, and the tag of a viewer. */
  changeRole(id: string, role: UserRole, by: UserActor, tag: string | null = null): Result<User, UserProblem> {
    return this.#change(id, by, (tx, { user }) => {
      const change = { role, tag: role === "viewer" ? tag : null };
      if (user.role === role && user.tag === change.tag) return ok(userOf(user));
      if (role === "viewer" && (tag === null || user.isOperator)) return refuse("viewer_invalid");
      if (role !== "owner" && this.#isLastOwner(user)) return refuse("last_owner");
      this.deps.store.update(tx, id, change);
      this.#audit(tx, user, by, { action: "users.role", before: roleEntry(user), after: roleEntry(change) });
      return ok(userOf({ ...user, ...change }));
    });
  }

  /** Takes the password, the second factor and all sessions of a user away; the one-time link sets a new password. */
  reset(id: string, by: UserActor): Result<InvitedUser, UserProblem> {
    return this.#change(id, by, (tx, { user }) => {
      this.deps.sessions.removeOf(tx, id);
      this.deps.sessions.removeLinksOf(tx, id);
      this.deps.store.update(tx, id, WITHOUT_SECRETS);
      this.#audit(tx, user, by, { action: "users.reset" });
      return ok(this.#withLink(tx, { ...user, ...WITHOUT_SECRETS }));
    });
  }

  /** Sets the password of a user on the operator's behalf; ends all sessions and removes the second factor. */
  async setPassword(id: string, password: string): Promise<Result<User, UserProblem>> {
    const found = this.deps.store.find(id);
    if (found === undefined) return refuse("unknown_user");
    const message = passwordProblem(password, found.user.email);
    if (message !== null) return refuseWith("password_invalid", message);
    const hashed = await this.deps.passwords.hash(password, null);
    if (!hashed.ok) return refuse("busy");
    return this.#change(id, null, (tx, { user }) => {
      this.deps.sessions.removeOf(tx, id);
      this.deps.sessions.removeLinksOf(tx, id);
      const change = { ...WITHOUT_SECRETS, passwordHash: hashed.value };
      this.deps.store.update(tx, id, change);
      this.#audit(tx, user, null, { action: "users.reset" });
      return ok(userOf({ ...user, ...change }));
    });
  }

  #add(
    tx: Tx,
    { accountId, role, isOperator, ...requested }: NewUser,
    { by, passwordHash }: { by: UserActor; passwordHash: string | null },
  ): Result<UserRecord, UserProblem> {
    const email = normalizedEmail(requested.email);
    if (by !== null && (by.accountId !== accountId || (isOperator && !by.isOperator))) return refuse("forbidden");
    const tag = role === "viewer" ? (requested.tag ?? null) : null;
    if (role === "viewer" && (tag === null || isOperator)) return refuse("viewer_invalid");
    if (email === null) return refuse("email_invalid");
    if (this.deps.accounts.findAccount(accountId) === undefined) return refuse("unknown_account");
    if (this.deps.store.findByEmail(email) !== undefined) return refuse("email_taken");
    const user = {
      id: newId(),
      accountId,
      email,
      role,
      tag,
      isOperator,
      ...WITHOUT_SECRETS,
      passwordHash,
      timeZone: null,
      createdAtMs: this.runtime.clock.nowMs(),
      lastSignInAtMs: null,
    };
    this.deps.store.insert(tx, user);
    this.#audit(tx, user, by, { action: "users.add", after: { ...roleEntry({ role, tag }), operator: isOperator } });
    return ok(user);
  }

  /** Runs `work` on a user that `by` may change: of its own account, and an operator only by an operator. */
  #change<T>(
    id: string,
    by: UserActor,
    work: (tx: Tx, found: OwnedUser) => Result<T, UserProblem>,
  ): Result<T, UserProblem> {
    return this.runtime.db.transact((tx) => {
      const found = this.deps.store.find(id);
      if (found === undefined || (by !== null && found.account.id !== by.accountId)) return refuse("unknown_user");
      if (by !== null && found.user.isOperator && !by.isOperator) return refuse("forbidden");
      return work(tx, found);
    });
  }

  /** Owners without a password do not count. */
  #isLastOwner({ id, accountId, role, passwordHash, lastSignInAtMs }: UserRecord) {
    const isActive = passwordHash !== null || lastSignInAtMs !== null;
    return role === "owner" && isActive && !this.deps.store.hasOtherOwner(accountId, id);
  }

  #withLink(tx: Tx, user: UserRecord): InvitedUser {
    return { user: userOf(user), ...this.deps.links.create(tx, { accountId: user.accountId, userId: user.id }) };
  }

  #audit(
    tx: Tx,
    { id, accountId }: UserRecord,
    by: UserActor,
    entry: { action: string; before?: Readonly<Record<string, unknown>>; after?: Readonly<Record<string, unknown>> },
  ) {
    this.deps.audit.append(tx, { ...entry, accountId, subject: id, by: by?.id });
  }
}
