import { ok, type Result } from "../foundation/base/errors.ts";
import { inSteps } from "../foundation/base/in-steps.ts";
import { isSecretToken, newId, newSecretToken, sha256 } from "../foundation/base/secrets.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-store.ts";
import { passwordProblem, type Passwords } from "./passwords.ts";
import type { SessionStore, SetupLinkRecord } from "./session-store.ts";
import type { Client, Sessions, SignedIn } from "./sessions.ts";
import {
  refuse,
  type UserProblem,
  type OwnedUser,
  type UserStore,
  normalizedEmail,
  userOf,
  refuseWith,
} from "./user-store.ts";
import type { Account, AccountStore } from "./store.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const LIFETIME_MS = 7 * DAY_MS;
/** For this time, the page of a used or expired link explains the reason. */
const KEPT_MS = 30 * DAY_MS;

/** Rows removed in one transaction: it holds the event loop for a few milliseconds. */
const PURGED_AT_ONCE = 500;

/** What the page of a link shows before the password is set. */
export interface OpenSetupLink {
  readonly accountName: string;
  /** Null: the link creates the first user, who chooses the address. */
  readonly email: string | null;
}

/** The URL of the page that a link leads to. */
export const setupUrl = (baseUrl: string, token: string): string => `${baseUrl}/setup/${token}`;

interface FoundLink {
  readonly link: SetupLinkRecord;
  readonly account: Account;
  /** Undefined for the first user, who does not exist yet. */
  readonly owned: OwnedUser | undefined;
}

/** One-time links by which a person sets a password: the first user, invitations and resets. */
export class SetupLinks {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: SessionStore;
      users: UserStore;
      passwords: Passwords;
      audit: AuditLog;
      accounts: AccountStore;
    },
  ) {}

  /** A new link for a user, or with null for the first user of the service. Older links of the user stop working. */
  create(tx: Tx, { accountId, userId }: { accountId: string; userId: string | null }) {
    const token = newSecretToken();
    const createdAtMs = this.runtime.clock.nowMs();
    const expiresAtMs = createdAtMs + LIFETIME_MS;
    if (userId !== null) this.deps.store.removeLinksOf(tx, userId);
    this.deps.store.insertLink(tx, {
      hash: sha256(token),
      accountId,
      userId,
      createdAtMs,
      expiresAtMs,
      usedAtMs: null,
    });
    return { token, expiresAtMs };
  }

  /** What a token that still works is for. */
  find(token: string): Result<OpenSetupLink, UserProblem> {
    const found = this.#findOpen(token);
    if (!found.ok) return found;
    const { account, owned } = found.value;
    return ok({ accountName: account.name, email: owned?.user.email ?? null });
  }

  /** Whether somebody has a link that still works to create the first user. */
  isFirstOpen(): boolean {
    return !this.deps.users.hasUsers() && this.deps.store.hasFirstLink(this.runtime.clock.nowMs());
  }

  /** Until when a user has a link that works; null without one. */
  openUntilMs(userId: string): number | null {
    const [link] = this.deps.store.linksOf(userId);
    return link !== undefined && link.usedAtMs === null && link.expiresAtMs > this.runtime.clock.nowMs()
      ? link.expiresAtMs
      : null;
  }

  /**
   * Sets the password, creates the first user where the link is for it, and signs the user in. A link works once: of two
   * requests at the same time one is refused.
   */
  async use(
    token: string,
    input: { email: string; password: string },
    { sessions, client }: { sessions: Sessions; client: Client },
  ): Promise<Result<SignedIn, UserProblem>> {
    const found = this.#findOpen(token);
    if (!found.ok) return found;
    const email = found.value.owned?.user.email ?? normalizedEmail(input.email);
    if (email === null) return refuse("email_invalid");
    const message = passwordProblem(input.password, email);
    if (message !== null) return refuseWith("password_invalid", message);
    const hashed = await this.deps.passwords.hash(input.password, found.value.account.id);
    if (!hashed.ok) return refuse("busy");
    return this.runtime.db.transact((tx) => this.#complete(tx, token, { email, hash: hashed.value, sessions, client }));
  }

  /** Removes links that expired long ago, in short transactions; returns how many. */
  async purge(isStopping: () => boolean): Promise<number> {
    const { db, clock } = this.runtime;
    const expiredMs = clock.nowMs() - KEPT_MS;
    const purgeSome = (tx: Tx) => this.deps.store.purgeLinks(tx, expiredMs, PURGED_AT_ONCE);
    return (await inSteps(() => db.commit(purgeSome), { isStopping })).count;
  }

  #complete(
    tx: Tx,
    token: string,
    given: { email: string; hash: string; sessions: Sessions; client: Client },
  ): Result<SignedIn, UserProblem> {
    const found = this.#findOpen(token);
    if (!found.ok) return found;
    const { link, owned } = found.value;
    const { users, store, audit } = this.deps;
    if (owned === undefined && users.findByEmail(given.email) !== undefined) return refuse("email_taken");
    const userId = owned?.user.id ?? this.#addFirst(tx, link, given.email);
    users.update(tx, userId, { passwordHash: given.hash });
    store.markLinkUsed(tx, link.hash, this.runtime.clock.nowMs());
    store.removeOf(tx, userId);
    audit.append(tx, { action: "users.set-up", accountId: link.accountId, subject: userId, by: userId });
    const sessionToken = given.sessions.open(tx, userId, given.client);
    const user = users.find(userId)?.user;
    return user === undefined ? refuse("unknown_user") : ok({ token: sessionToken, user: userOf(user) });
  }

  /** The first user is an owner and an operator. */
  #addFirst(tx: Tx, { accountId }: SetupLinkRecord, email: string) {
    const id = newId();
    this.deps.users.insert(tx, {
      id,
      accountId,
      email,
      role: "owner",
      tag: null,
      isOperator: true,
      passwordHash: null,
      timeZone: null,
      totpSecret: null,
      totpConfirmedAtMs: null,
      totpLastCounter: 0,
      recoveryCodes: [],
      createdAtMs: this.runtime.clock.nowMs(),
      lastSignInAtMs: null,
    });
    const after = { role: "owner", operator: true };
    this.deps.audit.append(tx, { action: "users.add", accountId, subject: id, after });
    return id;
  }

  #findOpen(token: string): Result<FoundLink, UserProblem> {
    const { store, users, accounts } = this.deps;
    const link = isSecretToken(token) ? store.findLink(sha256(token)) : undefined;
    const account = link && accounts.findAccount(link.accountId);
    if (link === undefined || account === undefined) return refuse("link_invalid");
    // Once somebody can sign in, nobody else becomes an operator by the link of the first start.
    if (link.usedAtMs !== null || (link.userId === null && users.hasUsers())) return refuse("link_used");
    if (link.expiresAtMs <= this.runtime.clock.nowMs()) return refuse("link_expired");
    if (account.disabledAtMs !== null) return refuse("account_disabled");
    return ok({ link, account, owned: link.userId === null ? undefined : users.find(link.userId) });
  }
}
