import { asc, eq, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { suppressions } from "../db/schema.ts";

/** One entry of the operator's list: a normalized address, or a domain that stands for all below it. */
export interface Suppression {
  readonly entry: string;
  readonly note: string | null;
  readonly createdAtMs: number;
}

export const createSuppressionStore = (db: Db) => {
  const insert = db.orm
    .insert(suppressions)
    .values({
      entry: sql.placeholder("entry"),
      note: sql.placeholder("note"),
      createdAtMs: sql.placeholder("createdAtMs"),
    })
    .onConflictDoNothing()
    .returning({ entry: suppressions.entry })
    .prepare();
  const find = db.orm
    .select({ entry: suppressions.entry })
    .from(suppressions)
    .where(eq(suppressions.entry, sql.placeholder("entry")))
    .prepare();

  return {
    /** False when the entry is there already. */
    insert: (_tx: Tx, suppression: Suppression): boolean => insert.all({ ...suppression }).length > 0,
    /** False when there was no such entry. */
    remove: (_tx: Tx, entry: string): boolean =>
      db.orm.delete(suppressions).where(eq(suppressions.entry, entry)).returning({ entry: suppressions.entry }).all()
        .length > 0,
    list: (): Suppression[] => db.orm.select().from(suppressions).orderBy(asc(suppressions.entry)).all(),
    /** The first of the candidates that is on the list. */
    findAny: (candidates: readonly string[]): string | null =>
      candidates.find((entry) => find.get({ entry }) !== undefined) ?? null,
  };
};

export type SuppressionStore = ReturnType<typeof createSuppressionStore>;
