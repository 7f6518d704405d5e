/** What a chaos run claims about a database: sentences about what must not be, each with how often it is. */
import { Database } from "bun:sqlite";
import { join } from "node:path";

/** A sentence about what must not be, and how often it is. */
export type Claim = readonly [what: string, wrong: number];

/** What a part of `npm run chaos` found: its figures in one line, and its claims. */
export interface Findings {
  readonly summary: string;
  readonly claims: readonly Claim[];
}

export const openDatabase = (folder: string): Database =>
  new Database(join(folder, "postwarden.db"), { readonly: true });

export const one = <T>(db: Database, query: string, ...values: string[]): T => db.query(query).get(...values) as T;

/** The number of rows of `from`, a FROM clause with its conditions. */
export const count = (db: Database, from: string, ...values: string[]): number =>
  one<{ n: number }>(db, `SELECT count(*) AS n FROM ${from}`, ...values).n;

/** A random whole number from 0, less than `below`. */
export const chance = (below: number): number => Math.floor(Math.random() * below);

/** What SQLite finds broken in the file. */
export const brokenIn = (db: Database): Claim => {
  const found = db.query("PRAGMA integrity_check").all() as Array<{ integrity_check: string }>;
  return ["errors of the integrity check", found.filter(({ integrity_check: word }) => word !== "ok").length];
};

/** Claims that hold for every database, whatever happened to it. */
export const integrityClaims = (db: Database): readonly Claim[] => {
  const credits = "(SELECT account_id, sum(available) AS available, sum(held) AS held FROM ledger GROUP BY account_id)";
  return [
    brokenIn(db),
    ["broken references between tables", db.query("PRAGMA foreign_key_check").all().length],
    [
      "accounts whose balance is not the sum of the ledger",
      count(
        db,
        `accounts a JOIN ${credits} l ON l.account_id = a.id WHERE l.available <> a.credits_available OR l.held <> a.credits_held`,
      ),
    ],
  ];
};

/** Prints the findings of a part and returns how many claims failed. */
export const printFindings = (part: string, { summary, claims }: Findings): number => {
  console.log(`── ${part}: ${summary}`);
  for (const [what, wrong] of claims) console.log(`${wrong === 0 ? "ok  " : "FAIL"} ${what}: ${wrong}`);
  const failed = claims.filter(([, wrong]) => wrong !== 0).length;
  console.log(`${part}: ${claims.length - failed} passed, ${failed} failed`);
  return failed;
};
