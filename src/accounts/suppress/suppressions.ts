import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { sha256 } from "../../foundation/base/secrets.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { parseAddress } from "../../foundation/mail/address.ts";
import { parseDomain } from "../../foundation/mail/domain.ts";
import type { Suppression, SuppressionSearch, SuppressionStore } from "./store.ts";

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
const candidatesOf = (normalizedEmail: string): string[] => {
  const domain = normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1);
  const labels = domain.split(".");
  return [normalizedEmail, ...labels.map((_, at) => labels.slice(at).join("."))];
};

/** The operator's suppression list of addresses and domains: the signal `toxic`. */
export class Suppressions {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #store: SuppressionStore;

  constructor(runtime: Pick<Runtime, "db" | "clock">, store: SuppressionStore) {
    this.#runtime = runtime;
    this.#store = store;
  }

  /** The entry that matches an address, or null. */
  readonly match = (normalizedEmail: string): string | null =>
    this.#store.findAny([...candidatesOf(normalizedEmail), suppressionHash(normalizedEmail)]);

  list(): Suppression[] {
    return this.#store.list();
  }

  count(): number {
    return this.#store.count();
  }

  /** Entries that contain a text, and those of an erased address that equals it. */
  search(search: SuppressionSearch): Suppression[] {
    const found = this.#store.search({ ...search, text: search.text.toLowerCase() });
    const hash = suppressionHash(search.text.trim().toLowerCase());
    const isErased = search.after === "" && search.text.includes("@") && this.#store.findAny([hash]) !== null;
    return isErased ? [...this.#store.search({ text: hash, after: "", limit: 1 }), ...found] : found;
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
    const createdAtMs = this.#runtime.clock.nowMs();
    let added = 0;
    for (let from = 0; from < distinct.length; from += ENTRIES_PER_TRANSACTION) {
      this.#runtime.db.transact((tx) => {
        for (const entry of distinct.slice(from, from + ENTRIES_PER_TRANSACTION))
          if (!this.#isHashed(entry) && this.#store.insert(tx, { entry, note, createdAtMs })) added++;
      });
    }
    return ok({ added, known: distinct.length - added });
  }

  /** Removes entries and returns those that existed. */
  remove(entries: readonly string[]): string[] {
    const read = entries.map(readSuppression).flatMap((result) => (result.ok ? [result.value] : []));
    return this.#runtime.db.transact((tx) =>
      read.filter((entry) => {
        const isPlain = this.#store.remove(tx, entry);
        return this.#store.remove(tx, suppressionHash(entry)) || isPlain;
      }),
    );
  }

  /** Replaces the entry of an address by its hash, without the note, or removes it. False when neither is on the list. */
  erase(tx: Tx, normalizedEmail: string, { isKept }: { readonly isKept: boolean }): boolean {
    const isPlain = this.#store.remove(tx, normalizedEmail);
    const hash = suppressionHash(normalizedEmail);
    if (!isKept) return this.#store.remove(tx, hash) || isPlain;
    if (isPlain) this.#store.insert(tx, { entry: hash, note: null, createdAtMs: this.#runtime.clock.nowMs() });
    return this.#isHashed(normalizedEmail);
  }

  #isHashed(entry: string): boolean {
    return this.#store.findAny([suppressionHash(entry)]) !== null;
  }
}
