import { and, asc, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { accounts } from "../foundation/db/schema.ts";
import { users } from "../foundation/db/schema-users.ts";
import { statements } from "../foundation/db/statements.ts";

/** A row with its secrets; `User` is what leaves the slice. */
export type UserRecord = Readonly<typeof users.$inferSelect>;

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
  readonly #orm: Db["orm"];
  readonly #statements;

  constructor({ orm }: Pick<Db, "orm">) {
    this.#orm = orm;
    this.#statements = prepareAll(orm);
  }

  insert(_tx: Tx, user: UserRecord): void {
    this.#orm.insert(users).values(user).run();
  }

  update(_tx: Tx, id: string, change: Partial<Omit<UserRecord, "id" | "accountId" | "createdAtMs">>): void {
    this.#orm.update(users).set(change).where(eq(users.id, id)).run();
  }

  /** The sessions and links of the user must be gone. */
  remove(_tx: Tx, id: string): void {
    this.#orm.delete(users).where(eq(users.id, id)).run();
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
    return withAccount(this.#orm).where(isOfAccount).orderBy(asc(users.id)).all();
  }

  hasUsers(): boolean {
    return this.#orm.select({ id: users.id }).from(users).limit(1).get() !== undefined;
  }

  /** Whether an account has an owner beside this user who can sign in. */
  hasOtherOwner(accountId: string, id: string): boolean {
    const isOther = and(
      ...[eq(users.accountId, accountId), ne(users.id, id)],
      ...[eq(users.role, "owner"), isNotNull(users.passwordHash)],
    );
    return this.#orm.select({ id: users.id }).from(users).where(isOther).limit(1).get() !== undefined;
  }
}
