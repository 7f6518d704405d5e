/**
 * Loaded before every test: property tests draw the same values in each run, so that the same source gives the same result.
 * `SEED` draws others; `npm run tool -- fuzz --only properties` does that until its time is over.
 */
import { Database as Sqlite, type Statement } from "bun:sqlite";
import fc from "fast-check";

const seed = Number(process.env.SEED ?? 1);
if (!Number.isInteger(seed)) throw new Error("SEED takes an integer");
fc.configureGlobal({ seed });

/** Elysia asks for a collection with every router, and tests make thousands of them: a sixth of their time. */
const collect = Bun.gc;
Bun.gc = (isAtOnce) => (isAtOnce ? collect(isAtOnce) : 0);

/**
 * A closed database keeps its file and memory until its statements are collected. A process of the service ends then; tests go
 * on in one process, so closing ends the statements, too.
 */
const prepared = new WeakMap<Sqlite, Statement[]>();
const { prepare, close } = Sqlite.prototype;
Sqlite.prototype.prepare = function prepareNoted(this: Sqlite, ...words: Parameters<typeof prepare>) {
  const statement = prepare.apply(this, words);
  const known = prepared.get(this);
  if (known === undefined) prepared.set(this, [statement]);
  else known.push(statement);
  return statement;
} as typeof prepare;
Sqlite.prototype.close = function closeWhole(this: Sqlite, ...words: Parameters<typeof close>) {
  for (const statement of prepared.get(this) ?? []) statement.finalize();
  prepared.delete(this);
  close.apply(this, words);
};
