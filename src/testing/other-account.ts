import type { Database as Sqlite } from "bun:sqlite";
import type { KeyMode } from "../foundation/base/secrets.ts";
import { copyAccount } from "./account-copy.ts";
import { ownerOf } from "./row-owners.ts";
import { columnsOf, tablesOf } from "./upgrade-rows.ts";

/** Who changes something: an account, in one mode or (without `mode`) in both. */
export interface ActingAccount {
  readonly accountId: string;
  readonly mode?: KeyMode;
}

/** Table → how many rows that are not the actor's may differ afterwards, for an operation on what is shared. */
export type SharedChanges = Readonly<Record<string, number>>;

/** Table → primary key → row, both as JSON. */
type Rows = ReadonlyMap<string, ReadonlyMap<string, string>>;

interface Snapshot {
  readonly own: Rows;
  readonly others: Rows;
}

export interface Watched<T> {
  readonly value: T;
  /** Tables in which rows of the actor differ afterwards. */
  readonly changed: readonly string[];
}

const DIFFERENCES_SHOWN_MAX = 20;

const plain = (value: unknown): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value;

/** Every row of the database: those of the actor, and all others, also those that belong to nobody. */
const snapshotOf = (sqlite: Sqlite, { accountId, mode }: ActingAccount): Snapshot => {
  const own = new Map<string, ReadonlyMap<string, string>>();
  const others = new Map<string, ReadonlyMap<string, string>>();
  for (const table of tablesOf(sqlite)) {
    const keys = columnsOf(sqlite, table).filter(({ pk }) => pk > 0);
    const owner = ownerOf(sqlite, table) ?? { account: "NULL", mode: "NULL" };
    const rows = sqlite
      .query<Record<string, unknown>, []>(
        `SELECT *, ${owner.account} AS "owner", ${owner.mode} AS "of_mode" FROM "${table}"`,
      )
      .all();
    const [mine, theirs] = [new Map<string, string>(), new Map<string, string>()];
    for (const { owner: account, of_mode: rowMode, ...row } of rows) {
      const isOwn = account === accountId && (rowMode === null || mode === undefined || rowMode === mode);
      const key = JSON.stringify(keys.map(({ name }) => plain(row[name])));
      (isOwn ? mine : theirs).set(
        key,
        JSON.stringify(row, (_, value) => plain(value)),
      );
    }
    own.set(table, mine);
    others.set(table, theirs);
  }
  return { own, others };
};

/** What differs in a table: one text for each row. */
const differencesIn = (table: string, before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>) => {
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].flatMap((key) => {
    const [was, is] = [before.get(key), after.get(key)];
    if (was === is) return [];
    if (was === undefined) return [`${table} ${key} was added: ${is}`];
    return [is === undefined ? `${table} ${key} was deleted: ${was}` : `${table} ${key} was changed: ${was} → ${is}`];
  });
};

const differences = (before: Rows, after: Rows, allowed: SharedChanges): readonly string[] =>
  [...before.keys()].flatMap((table) => {
    const found = differencesIn(table, before.get(table) ?? new Map(), after.get(table) ?? new Map());
    return found.length > (allowed[table] ?? 0) ? found : [];
  });

/** Runs `work`; the rows of the whole database that it has added, changed or deleted, as texts that begin with the table. */
export const rowsChangedBy = async <T>(
  sqlite: Sqlite,
  work: () => T | Promise<T>,
): Promise<{ readonly value: T; readonly rows: readonly string[] }> => {
  const nobody = { accountId: "" };
  const { others: before } = snapshotOf(sqlite, nobody);
  const value = await work();
  return { value, rows: differences(before, snapshotOf(sqlite, nobody).others, {}) };
};

/** Runs a changing operation, and throws with table and row when it changes one that is not the actor's. */
export const watchOthers = async <T>(
  sqlite: Sqlite,
  actor: ActingAccount,
  work: () => T | Promise<T>,
  allowed: SharedChanges = {},
): Promise<Watched<T>> => {
  const before = snapshotOf(sqlite, actor);
  const value = await work();
  const after = snapshotOf(sqlite, actor);
  const found = differences(before.others, after.others, allowed);
  if (found.length > 0)
    throw new Error(`Rows that are not the actor's differ:\n${found.slice(0, DIFFERENCES_SHOWN_MAX).join("\n")}`);
  const changed = [...before.own.keys()].filter(
    (table) => differencesIn(table, before.own.get(table) ?? new Map(), after.own.get(table) ?? new Map()).length > 0,
  );
  return { value, changed };
};

/**
 * The same beside a second account with a copy of every row of the actor's (the same domains, addresses and Idempotency-Keys, other
 * ids), and beside the same rows in the other mode of the actor's own account.
 */
export const changesNothingOfOthers = <T>(
  sqlite: Sqlite,
  actor: ActingAccount,
  work: () => T | Promise<T>,
  allowed: SharedChanges = {},
): Promise<Watched<T>> => {
  copyAccount(sqlite, actor.accountId, { toNewAccount: true });
  if (actor.mode !== undefined) copyAccount(sqlite, actor.accountId, { fromMode: actor.mode });
  return watchOthers(sqlite, actor, work, allowed);
};
