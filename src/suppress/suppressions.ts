import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import type { Db } from "../db/open.ts";
import { parseAddress } from "../mail/address.ts";
import { parseDomain } from "../mail/domain.ts";
import type { Suppression, SuppressionStore } from "./store.ts";

export interface SuppressionDeps {
  readonly db: Db;
  readonly store: SuppressionStore;
  readonly clock: Clock;
}

/** Entries of one transaction, so that a long import does not hold the database. */
const ENTRIES_PER_TRANSACTION = 1_000;
const NOTE_CHARACTERS_MAX = 200;

/** The form in which an address or a domain is kept, or why it is neither. */
export const readSuppression = (text: string): Result<string, string> => {
  const trimmed = text.trim();
  if (trimmed.includes("@")) {
    const address = parseAddress(trimmed);
    return address.ok ? ok(address.value.normalized) : err(`"${trimmed}" is no address`);
  }
  const domain = parseDomain(trimmed);
  return domain.ok && domain.value.ascii.includes(".") ? ok(domain.value.ascii) : err(`"${trimmed}" is no domain`);
};

/** An address and every domain it lies in: what an entry must equal to match it. */
const candidatesOf = (normalizedEmail: string): string[] => {
  const domain = normalizedEmail.slice(normalizedEmail.lastIndexOf("@") + 1);
  const labels = domain.split(".");
  return [normalizedEmail, ...labels.map((_, at) => labels.slice(at).join("."))];
};

/** The operator's own list of addresses and domains not to be mailed: the signal `toxic`. */
export const createSuppressions = ({ db, store, clock }: SuppressionDeps) => ({
  /** The entry that an address falls under, or null. */
  match: (normalizedEmail: string): string | null => store.findAny(candidatesOf(normalizedEmail)),

  list: (): Suppression[] => store.list(),

  /** Adds entries and answers how many were new; none is added when one of them is neither address nor domain. */
  add(
    entries: readonly string[],
    note: string | null,
  ): Result<{ readonly added: number; readonly known: number }, string[]> {
    if (note !== null && note.length > NOTE_CHARACTERS_MAX)
      return err([`A note has ${NOTE_CHARACTERS_MAX} characters at most.`]);
    const read = entries.map(readSuppression);
    const problems = read.flatMap((result, at) => (result.ok ? [] : [`entry ${at + 1}: ${result.error}`]));
    if (problems.length > 0) return err(problems);
    const wanted = [...new Set(read.flatMap((result) => (result.ok ? [result.value] : [])))];
    const createdAtMs = clock.nowMs();
    let added = 0;
    for (let from = 0; from < wanted.length; from += ENTRIES_PER_TRANSACTION) {
      db.transact((tx) => {
        for (const entry of wanted.slice(from, from + ENTRIES_PER_TRANSACTION)) {
          if (store.insert(tx, { entry, note, createdAtMs })) added++;
        }
      });
    }
    return ok({ added, known: wanted.length - added });
  },

  /** Removes entries and answers those that were there. */
  remove: (entries: readonly string[]): string[] =>
    db.transact((tx) =>
      entries
        .map(readSuppression)
        .flatMap((result) => (result.ok ? [result.value] : []))
        .filter((entry) => store.remove(tx, entry)),
    ),
});

export type Suppressions = ReturnType<typeof createSuppressions>;
