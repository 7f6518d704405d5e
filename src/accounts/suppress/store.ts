import { and, asc, count, eq, gt, sql } from "drizzle-orm";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { suppressions } from "../../foundation/db/schema.ts";
import { statements } from "../../foundation/db/statements.ts";
import { TurnReads } from "../../foundation/db/turn-reads.ts";
import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { sha256 } from "../../foundation/base/secrets.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import { parseAddress } from "../../foundation/mail/address.ts";
import { parseDomain } from "../../foundation/mail/domain.ts";

/** One entry of the suppression list: a normalized address, or a domain that stands for its subdomains too. */
export type Suppression = Readonly<typeof suppressions.$inferSelect>;

/** What a statement looks for at once: more than addresses usually have candidates. */
const NO_CANDIDATES: readonly null[] = Array.from({ length: 8 }, () => null);

const prepareAll = ({ sqlite }: Db) =>
  statements({
    insert: () =>
      sqlite.prepare<unknown, [string, string | null, number]>(
        "INSERT INTO suppressions (entry, note, created_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      ),
    findSome: () => sqlite.prepare<object, []>("SELECT 1 FROM suppressions LIMIT 1"),
    // One statement for several candidates, in their order: each takes and releases the locks of the database.
    findFirst: () =>
      sqlite.prepare<{ entry: string }, Array<string | null>>(
        NO_CANDIDATES.map(() => "SELECT entry FROM suppressions WHERE entry = ?").join(" UNION ALL "),
      ),
  });

export interface SuppressionSearch {
  /** What an entry contains; empty: anything. */
  readonly text: string;
  /** The last entry of the page before; empty: the first page. */
  readonly after: string;
  readonly limit: number;
}

/** The operator's suppression list. */
export class SuppressionStore {
  readonly #statements;
  readonly #sizes: TurnReads<"empty" | "filled">;

  constructor(private readonly db: Db) {
    this.#statements = prepareAll(db);
    this.#sizes = new TurnReads(db);
  }

  isEmpty(): boolean {
    return this.#sizes.get("", () => (this.#statements.findSome.get() === null ? "empty" : "filled")) === "empty";
  }

  /** False when the entry exists already. */
  insert(_tx: Tx, { entry, note, createdAtMs }: Suppression): boolean {
    return this.#statements.insert.run(entry, note, createdAtMs).changes > 0;
  }

  /** False when there was no such entry. */
  remove(_tx: Tx, entry: string): boolean {
    const removed = this.db.orm.delete(suppressions).where(eq(suppressions.entry, entry)).returning().all();
    return removed.length > 0;
  }

  count(): number {
    return this.db.orm.select({ count: count() }).from(suppressions).get()?.count ?? 0;
  }

  /** Entries after one that contain a text, in their order. */
  search({ text, after, limit }: SuppressionSearch): Suppression[] {
    const escaped = text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);
    const contains = text === "" ? undefined : sql`${suppressions.entry} LIKE ${`%${escaped}%`} ESCAPE '\\'`;
    return this.db.orm
      .select()
      .from(suppressions)
      .where(and(gt(suppressions.entry, after), contains))
      .orderBy(asc(suppressions.entry))
      .limit(limit)
      .all();
  }

  list(): Suppression[] {
    return this.db.orm.select().from(suppressions).orderBy(asc(suppressions.entry)).all();
  }

  /** The first of the candidates that is on the list. */
  findAny(candidates: readonly string[]): string | null {
    for (let at = 0; at < candidates.length; at += NO_CANDIDATES.length) {
      const some = candidates.slice(at, at + NO_CANDIDATES.length);
      const found = this.#statements.findFirst.get(...some, ...NO_CANDIDATES.slice(some.length));
      if (found !== null) return found.entry;
    }
    return null;
  }
}

/** Entries per transaction, so that a long import does not block the database. */
const ENTRIES_PER_TRANSACTION = 1_000;
const NOTE_CHARACTERS_MAX = 200;
const HASHED = /^sha256:[0-9a-f]{64}$/;

/** The normal form of an address or a domain; the error says why the text is neither. */
const readSuppression = (text: string): Result<string, string> => {
  const trimmed = text.trim();
  if (HASHED.test(trimmed)) return ok(trimmed);
  if (trimmed.includes("@")) {
    const address = parseAddress(trimmed);
    return address.ok ? ok(address.value.normalized) : err(`"${trimmed}" is not an address`);
  }
  const domain = parseDomain(trimmed);
  return domain.ok && domain.value.ascii.includes(".") ? ok(domain.value.ascii) : err(`"${trimmed}" is not a domain`);
};

/** The entry of an erased address, which stays on the list. */
export const suppressionHash = (normalizedEmail: string): string => `sha256:${sha256(normalizedEmail)}`;

/** An address, its domain and the parents of that: an entry that equals one of them matches. */
const candidatesOf = (normalizedEmail: string) => {
  const domain = normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1);
  const labels = domain.split(".");
  return [normalizedEmail, ...labels.map((_, at) => labels.slice(at).join("."))];
};

/** The operator's suppression list of addresses and domains: the signal `toxic`. */
export class Suppressions {
  constructor(
    private readonly runtime: DbClock,
    private readonly store: SuppressionStore,
  ) {}

  /** The entry that matches an address, or null. */
  readonly match = (normalizedEmail: string) =>
    this.store.isEmpty()
      ? null
      : this.store.findAny([...candidatesOf(normalizedEmail), suppressionHash(normalizedEmail)]);

  list(): Suppression[] {
    return this.store.list();
  }

  count(): number {
    return this.store.count();
  }

  /** Entries that contain a text, and those of an erased address that equals it. */
  search(search: SuppressionSearch): Suppression[] {
    const found = this.store.search({ ...search, text: search.text.toLowerCase() });
    const hash = suppressionHash(search.text.trim().toLowerCase());
    const isErased = search.after === "" && search.text.includes("@") && this.store.findAny([hash]) !== null;
    return isErased ? [...this.store.search({ text: hash, after: "", limit: 1 }), ...found] : found;
  }

  /** Adds entries and returns how many were new; none is added when one of them is neither address nor domain. */
  add(
    entries: readonly string[],
    note: string | null,
  ): Result<{ readonly added: number; readonly known: number }, string[]> {
    if (note !== null && note.length > NOTE_CHARACTERS_MAX)
      return err([`A note must have at most ${NOTE_CHARACTERS_MAX} characters.`]);
    const read = entries.map(readSuppression);
    const problems = read.flatMap((result, at) => (result.ok ? [] : [`entry ${at + 1}: ${result.error}`]));
    if (problems.length > 0) return err(problems);
    const distinct = [...new Set(read.flatMap((result) => (result.ok ? [result.value] : [])))];
    const createdAtMs = this.runtime.clock.nowMs();
    let added = 0;
    for (let from = 0; from < distinct.length; from += ENTRIES_PER_TRANSACTION) {
      this.runtime.db.transact((tx) => {
        for (const entry of distinct.slice(from, from + ENTRIES_PER_TRANSACTION))
          if (!this.#isHashed(entry) && this.store.insert(tx, { entry, note, createdAtMs })) added++;
      });
    }
    return ok({ added, known: distinct.length - added });
  }

  /** Removes entries and returns those that existed. */
  remove(entries: readonly string[]): string[] {
    const read = entries.map(readSuppression).flatMap((result) => (result.ok ? [result.value] : []));
    return this.runtime.db.transact((tx) =>
      read.filter((entry) => {
        const isPlain = this.store.remove(tx, entry);
        return this.store.remove(tx, suppressionHash(entry)) || isPlain;
      }),
    );
  }

  /** Replaces the entry of an address by its hash, without the note, or removes it. False when neither is on the list. */
  erase(tx: Tx, normalizedEmail: string, { isKept }: { isKept: boolean }): boolean {
    const isPlain = this.store.remove(tx, normalizedEmail);
    const hash = suppressionHash(normalizedEmail);
    if (!isKept) return this.store.remove(tx, hash) || isPlain;
    if (isPlain) this.store.insert(tx, { entry: hash, note: null, createdAtMs: this.runtime.clock.nowMs() });
    return this.#isHashed(normalizedEmail);
  }

  #isHashed(entry: string) {
    return this.store.findAny([suppressionHash(entry)]) !== null;
  }
}
