import { and, desc, eq, gt, inArray, isNull, lt, lte, ne, or, sql } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { accounts } from "../foundation/db/schema.ts";
import { statements } from "../foundation/db/statements.ts";
import { sessions, setupLinks, users } from "../foundation/db/schema-users.ts";
import type { OwnedUser } from "./user-store.ts";

export type SessionRecord = Readonly<typeof sessions.$inferSelect>;
export type SetupLinkRecord = Readonly<typeof setupLinks.$inferSelect>;

interface FoundSession extends OwnedUser {
  readonly session: SessionRecord;
}

const prepare = ({ orm }: Db) =>
  statements({
    find: () =>
      orm
        .select({
          session: sessions,
          user: users,
          account: { id: accounts.id, name: accounts.name, disabledAtMs: accounts.disabledAtMs },
        })
        .from(sessions)
        .innerJoin(users, eq(users.id, sessions.userId))
        .innerJoin(accounts, eq(accounts.id, users.accountId))
        .where(eq(sessions.hash, sql.placeholder("hash")))
        .prepare(),
    list: () =>
      orm
        .select()
        .from(sessions)
        .where(eq(sessions.userId, sql.placeholder("userId")))
        .orderBy(desc(sessions.lastSeenAtMs), desc(sessions.createdAtMs))
        .prepare(),
  });

/** Sessions of the dashboard and one-time set-up links, by the hashes of their tokens. */
export class SessionStore {
  readonly #sql;

  constructor(private readonly db: Db) {
    this.#sql = prepare(db);
  }

  insert(_tx: Tx, session: SessionRecord) {
    this.db.orm.insert(sessions).values(session).run();
  }

  find(hash: string): FoundSession | undefined {
    return this.#sql.find.get({ hash });
  }

  touch(_tx: Tx, hash: string, atMs: number) {
    this.db.orm.update(sessions).set({ lastSeenAtMs: atMs }).where(eq(sessions.hash, hash)).run();
  }

  /** The sessions of a user, the last seen first. */
  list(userId: string): SessionRecord[] {
    return this.#sql.list.all({ userId });
  }

  remove(_tx: Tx, hashes: readonly string[]) {
    this.db.orm
      .delete(sessions)
      .where(inArray(sessions.hash, [...hashes]))
      .run();
  }

  /** Removes the sessions of a user, but for the one with the id `kept`. */
  removeOf(_tx: Tx, userId: string, kept = "") {
    this.db.orm
      .delete(sessions)
      .where(and(eq(sessions.userId, userId), ne(sessions.id, kept)))
      .run();
  }

  /** Removes up to `limit` sessions that were last seen or created at these times or before; returns how many. */
  purgeSessions(tx: Tx, { seenMs, createdMs }: { seenMs: number; createdMs: number }, limit: number): number {
    const isOver = or(lte(sessions.lastSeenAtMs, seenMs), lte(sessions.createdAtMs, createdMs));
    const over = this.db.orm.select({ hash: sessions.hash }).from(sessions).where(isOver).limit(limit).all();
    this.remove(
      tx,
      over.map(({ hash }) => hash),
    );
    return over.length;
  }

  insertLink(_tx: Tx, link: SetupLinkRecord) {
    this.db.orm.insert(setupLinks).values(link).run();
  }

  findLink(hash: string): SetupLinkRecord | undefined {
    return this.db.orm.select().from(setupLinks).where(eq(setupLinks.hash, hash)).get();
  }

  /** The links of a user, the newest first. */
  linksOf(userId: string): SetupLinkRecord[] {
    return this.db.orm
      .select()
      .from(setupLinks)
      .where(eq(setupLinks.userId, userId))
      .orderBy(desc(setupLinks.createdAtMs))
      .all();
  }

  /** Whether a link for the first user is neither used nor expired. */
  hasFirstLink(nowMs: number): boolean {
    const isOpen = and(isNull(setupLinks.userId), isNull(setupLinks.usedAtMs), gt(setupLinks.expiresAtMs, nowMs));
    return this.db.orm.select({ hash: setupLinks.hash }).from(setupLinks).where(isOpen).limit(1).get() !== undefined;
  }

  markLinkUsed(_tx: Tx, hash: string, atMs: number) {
    this.db.orm.update(setupLinks).set({ usedAtMs: atMs }).where(eq(setupLinks.hash, hash)).run();
  }

  removeLinksOf(_tx: Tx, userId: string) {
    this.db.orm.delete(setupLinks).where(eq(setupLinks.userId, userId)).run();
  }

  /** Removes up to `limit` links that expired before a time; returns how many. */
  purgeLinks(_tx: Tx, expiredMs: number, limit: number): number {
    const isOver = lt(setupLinks.expiresAtMs, expiredMs);
    const over = this.db.orm.select({ hash: setupLinks.hash }).from(setupLinks).where(isOver).limit(limit).all();
    const hashes = over.map(({ hash }) => hash);
    this.db.orm.delete(setupLinks).where(inArray(setupLinks.hash, hashes)).run();
    return over.length;
  }
}
