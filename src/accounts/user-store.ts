import { and, asc, eq, isNotNull, ne } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { accounts } from "../db/schema.ts";
import { users } from "../db/schema-users.ts";

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

/** Users of the dashboard. */
export class UserStore {
  readonly #orm: Db["orm"];

  constructor({ orm }: Pick<Db, "orm">) {
    this.#orm = orm;
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
    return this.#withAccount().where(eq(users.id, id)).get();
  }

  findByEmail(email: string): OwnedUser | undefined {
    return this.#withAccount().where(eq(users.email, email)).get();
  }

  /** In the order of their creation; of all accounts without `accountId`. */
  list(accountId?: string): OwnedUser[] {
    const isOfAccount = accountId === undefined ? undefined : eq(users.accountId, accountId);
    return this.#withAccount().where(isOfAccount).orderBy(asc(users.id)).all();
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

  #withAccount() {
    return this.#orm.select(WITH_ACCOUNT).from(users).innerJoin(accounts, eq(accounts.id, users.accountId)).$dynamic();
  }
}
