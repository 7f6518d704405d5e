import { and, asc, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { accounts } from "../foundation/db/schema.ts";
import { users } from "../foundation/db/schema-users.ts";
import { statements } from "../foundation/db/statements.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import { type Result, err } from "../foundation/base/errors.ts";

/** A row with its secrets; `User` is what leaves the slice. */
export type UserRecord = Readonly<Omit<typeof users.$inferSelect, "hiddenSteps">>;

export type UserRole = UserRecord["role"];

/** A user with the account that it belongs to. */
export interface OwnedUser {
  readonly user: UserRecord;
  readonly account: { readonly id: string; readonly name: string; readonly disabledAtMs: number | null };
}

const WITH_ACCOUNT = {
  user: users,
  account: { id: accounts.id, name: accounts.name, disabledAtMs: accounts.disabledAtMs },
};

const withAccount = (orm: Db["orm"]) =>
  orm.select(WITH_ACCOUNT).from(users).innerJoin(accounts, eq(accounts.id, users.accountId)).$dynamic();

/** Prepared for what pages and sign-ins read again and again: drizzle takes longer to build a query than SQLite to run it. */
const prepareAll = (orm: Db["orm"]) =>
  statements({
    find: () =>
      withAccount(orm)
        .where(eq(users.id, sql.placeholder("id")))
        .prepare(),
    findByEmail: () =>
      withAccount(orm)
        .where(eq(users.email, sql.placeholder("email")))
        .prepare(),
  });

/** Users of the dashboard. */
export class UserStore {
  readonly #statements;

  constructor(private readonly db: Db) {
    this.#statements = prepareAll(db.orm);
  }

  insert(_tx: Tx, user: UserRecord) {
    this.db.orm.insert(users).values(user).run();
  }

  update(_tx: Tx, id: string, change: Partial<Omit<UserRecord, "id" | "accountId" | "createdAtMs">>) {
    this.db.orm.update(users).set(change).where(eq(users.id, id)).run();
  }

  /** The sessions and links of the user must be gone. */
  remove(_tx: Tx, id: string) {
    this.db.orm.delete(users).where(eq(users.id, id)).run();
  }

  find(id: string): OwnedUser | undefined {
    return this.#statements.find.get({ id });
  }

  findByEmail(email: string): OwnedUser | undefined {
    return this.#statements.findByEmail.get({ email });
  }

  /** In the order of their creation; of all accounts without `accountId`. */
  list(accountId?: string): OwnedUser[] {
    const isOfAccount = accountId === undefined ? undefined : eq(users.accountId, accountId);
    return withAccount(this.db.orm).where(isOfAccount).orderBy(asc(users.id)).all();
  }

  hasUsers(): boolean {
    return this.db.orm.select({ id: users.id }).from(users).limit(1).get() !== undefined;
  }

  /** Whether an account has an owner beside this user who can sign in. */
  hasOtherOwner(accountId: string, id: string): boolean {
    const isOther = and(
      eq(users.accountId, accountId),
      ne(users.id, id),
      eq(users.role, "owner"),
      isNotNull(users.passwordHash),
    );
    return this.db.orm.select({ id: users.id }).from(users).where(isOther).limit(1).get() !== undefined;
  }
}

/** A user of the dashboard, without secrets. */
export type User = Pick<
  UserRecord,
  "id" | "accountId" | "email" | "role" | "tag" | "isOperator" | "timeZone" | "createdAtMs" | "lastSignInAtMs"
> & {
  /** Whether a password is set; until then a set-up link is open or has expired. */
  readonly hasPassword: boolean;
  /** Whether sign-in asks for a code, too. */
  readonly hasSecondFactor: boolean;
  readonly recoveryCodesLeft: number;
};

/** What leaves the slice of a stored user. */
export const userOf = (record: UserRecord): User => ({
  id: record.id,
  accountId: record.accountId,
  email: record.email,
  role: record.role,
  tag: record.tag,
  isOperator: record.isOperator,
  timeZone: record.timeZone,
  createdAtMs: record.createdAtMs,
  hasPassword: record.passwordHash !== null,
  hasSecondFactor: record.totpConfirmedAtMs !== null,
  recoveryCodesLeft: record.recoveryCodes.length,
  lastSignInAtMs: record.lastSignInAtMs,
});

/** The spelling under which an email address is stored and found; null for a text that is not an address. */
export const normalizedEmail = (text: string): string | null => {
  const address = parseAddress(text);
  return address.ok ? address.value.normalized : null;
};

const MESSAGES = {
  unknown_user: "There is no such user.",
  unknown_account: "There is no such account.",
  account_disabled: "The account is disabled. Ask the operator of the service to enable it.",
  email_invalid: "This is not an email address.",
  email_taken: "A user with this email address already exists.",
  password_wrong: "This is not your password.",
  viewer_invalid: "A viewer sees the domains of one tag, which must be given, and cannot be an operator.",
  last_owner: "This is the last owner of the account. Make another user an owner first.",
  forbidden: "Only an operator of the service may change an operator.",
  link_invalid: "This link does not exist.",
  link_expired: "This link has expired.",
  link_used: "This link was used before. A link works once.",
  time_zone_invalid: "This is not a time zone such as Europe/Berlin.",
  code_wrong: "This code is wrong or was used before. Enter the present code of your app.",
  codes_off: "Codes are switched off.",
  busy: "Too many sign-ins at this moment. Try again in a few seconds.",
};

/** Why a change of users was refused; the sentence says what to do. */
export interface UserProblem {
  readonly code: keyof typeof MESSAGES | "password_invalid" | "throttled";
  readonly message: string;
}

/** A refusal with its sentence. */
export const refuse = (code: keyof typeof MESSAGES) => refuseWith(code, MESSAGES[code]);
export const refuseWith = (code: UserProblem["code"], message: string): Result<never, UserProblem> =>
  err({ code, message });
