import { and, desc, eq, lt, sql } from "drizzle-orm";
import { err, ok, type Result, AppError } from "../../foundation/base/errors.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { ledger } from "../../foundation/db/schema.ts";
import { prepareRowInsert, statements } from "../../foundation/db/statements.ts";
import { TurnReads } from "../../foundation/db/turn-reads.ts";
import type { Rate } from "../../foundation/base/limits.ts";

/** Credits of an account: available, and held for verifications that are not finished. */
export interface Balance {
  readonly available: number;
  readonly held: number;
}

const NO_CREDITS: Balance = { available: 0, held: 0 };

export interface TooFewCredits {
  readonly required: number;
  readonly available: number;
}

/** An entry of the ledger; the amounts are what it adds to `available` and `held`. */
export type LedgerEntry = Readonly<Omit<typeof ledger.$inferSelect, "id">>;

/** A hold or its end: of which account, for what (an id), when. */
export interface LedgerMove {
  readonly accountId: string;
  readonly reference: string;
  readonly atMs: number;
}

/** Holding credits for work, and ending the hold. */
type CreditMoves = Pick<CollectedMoves, "balance" | "hold" | "settle" | "release" | "spend">;

export interface CreditHolds extends CreditMoves {
  /** For many moves of one transaction, which `flush` writes together. */
  collect(): CreditMoves & Pick<CollectedMoves, "flush">;
}

const FREE_MOVES: ReturnType<CreditHolds["collect"]> = {
  balance: () => ({ available: Number.POSITIVE_INFINITY, held: 0 }),
  hold: () => ok(undefined),
  settle: () => 0,
  release: () => 0,
  spend: () => ok(0),
  flush: () => undefined,
};

/** For test keys: there is always enough, and nothing is held or charged. */
export const FREE_OF_CHARGE: CreditHolds = { ...FREE_MOVES, collect: () => FREE_MOVES };

const prepareMoves = (db: Db) =>
  statements({
    append: () =>
      prepareRowInsert(db, { into: "ledger (account_id, kind, available, held, reference, note, at_ms)", columns: 7 }),
    update: () =>
      db.sqlite.prepare<unknown, [number, number, string]>(
        "UPDATE accounts SET credits_available = credits_available + ?, credits_held = credits_held + ? WHERE id = ?",
      ),
    read: () =>
      db.sqlite.prepare<Balance, [string]>(
        "SELECT credits_available AS available, credits_held AS held FROM accounts WHERE id = ?",
      ),
  });

/** An account in a transaction: its balance before, and what the collected moves add to it. */
interface Account {
  readonly before: Balance;
  available: number;
  held: number;
}

/** Moves of credits in one transaction, written by `flush`: their entries, and one change of each account's balance. */
class CollectedMoves {
  readonly #accounts = new Map<string, Account>();
  readonly #credits = new Map<LedgerEntry["kind"], number>();
  #entries: LedgerEntry[] = [];

  constructor(
    private readonly db: Db,
    private readonly sql: ReturnType<typeof prepareMoves>,
  ) {}

  /** With the moves that are collected. */
  balance(accountId: string): Balance {
    const { before, available, held } = this.#account(accountId);
    return { available: before.available + available, held: before.held + held };
  }

  grant(_tx: Tx, { credits, ...entry }: { accountId: string; credits: number; note: string; atMs: number }): void {
    this.#add({ ...entry, kind: "grant", available: credits, held: 0, reference: null });
  }

  /** Holds `credits`; an error when the account has fewer. */
  hold(_tx: Tx, move: LedgerMove, credits = 1): Result<void, TooFewCredits> {
    const { available } = this.balance(move.accountId);
    if (available < credits) return err({ required: credits, available });
    this.#add({ ...move, kind: "hold", available: -credits, held: credits, note: null });
    return ok(undefined);
  }

  /** Spends held credits. Returns how many. */
  settle(_tx: Tx, move: LedgerMove, credits = 1): number {
    this.#add({ ...move, kind: "settle", available: 0, held: -credits, note: null });
    return credits;
  }

  /**
   * Spends one credit that was not held, with one entry. The reference is ended by it: it is never charged again. Returns how
   * many were spent; an error when the account has none. The charged verification is inserted in the same transaction, so that
   * it has no hold.
   */
  spend(_tx: Tx, move: LedgerMove): Result<number, TooFewCredits> {
    const { available } = this.balance(move.accountId);
    if (available < 1) return err({ required: 1, available });
    this.#add({ ...move, kind: "settle", available: -1, held: 0, note: null });
    // In the metrics every spent credit was held.
    this.#count("hold", 1);
    return ok(1);
  }

  /** Gives held credits back; `note` says why they were not spent. Returns how many. */
  release(_tx: Tx, { credits = 1, ...move }: LedgerMove & { credits?: number }, note: string): number {
    this.#add({ ...move, kind: "release", available: credits, held: -credits, note });
    return credits;
  }

  flush(tx: Tx): void {
    const rows = this.#entries.map(({ accountId, kind, available, held, reference, note, atMs }) => {
      return [accountId, kind, available, held, reference, note, atMs];
    });
    this.#entries = [];
    this.sql.append(rows);
    for (const [id, { available, held }] of this.#accounts)
      if (available !== 0 || held !== 0) this.sql.update.run(available, held, id);
    this.#accounts.clear();
    for (const [move, credits] of this.#credits) this.db.note(tx, { kind: "credits", move, credits });
    this.#credits.clear();
  }

  #add(entry: LedgerEntry): void {
    const account = this.#account(entry.accountId);
    account.available += entry.available;
    account.held += entry.held;
    this.#entries.push(entry);
    this.#count(entry.kind, Math.max(Math.abs(entry.available), Math.abs(entry.held)));
  }

  #account(id: string): Account {
    const known = this.#accounts.get(id);
    if (known !== undefined) return known;
    const account = { before: this.sql.read.get(id) ?? NO_CREDITS, available: 0, held: 0 };
    this.#accounts.set(id, account);
    return account;
  }

  #count(kind: LedgerEntry["kind"], credits: number): void {
    this.#credits.set(kind, (this.#credits.get(kind) ?? 0) + credits);
  }
}

/**
 * The append-only ledger of credits. The balance of an account is the sum of its entries; `accounts` carries that sum,
 * updated in the same transaction. One reference is held at most once and ended once (unique indexes), so that a verification
 * which is concluded twice by mistake throws instead of charging twice.
 */
export class Ledger implements CreditHolds {
  readonly #sql;
  readonly #balances: TurnReads<Balance>;

  constructor(private readonly db: Db) {
    this.#sql = prepareMoves(db);
    this.#balances = new TurnReads(db);
  }

  collect(): CollectedMoves {
    return new CollectedMoves(this.db, this.#sql);
  }

  balance(accountId: string): Balance {
    return this.#balances.get(accountId, () => this.#sql.read.get(accountId) ?? undefined) ?? NO_CREDITS;
  }

  grant(tx: Tx, entry: Parameters<CollectedMoves["grant"]>[1]): void {
    this.#atOnce(tx, (moves) => moves.grant(tx, entry));
  }

  hold(tx: Tx, move: LedgerMove, credits?: number): Result<void, TooFewCredits> {
    return this.#atOnce(tx, (moves) => moves.hold(tx, move, credits));
  }

  settle(tx: Tx, move: LedgerMove, credits?: number): number {
    return this.#atOnce(tx, (moves) => moves.settle(tx, move, credits));
  }

  spend(tx: Tx, move: LedgerMove): Result<number, TooFewCredits> {
    return this.#atOnce(tx, (moves) => moves.spend(tx, move));
  }

  release(tx: Tx, move: LedgerMove & { credits?: number }, note: string): number {
    return this.#atOnce(tx, (moves) => moves.release(tx, move, note));
  }

  #atOnce<T>(tx: Tx, make: (moves: CollectedMoves) => T): T {
    const moves = this.collect();
    const made = make(moves);
    moves.flush(tx);
    return made;
  }

  /** The balance computed from every entry. Slow for a long ledger; equals `balance` unless something is broken. */
  sum(accountId: string): Balance {
    const row = this.db.orm
      .select({
        available: sql<number>`coalesce(sum(${ledger.available}), 0)`,
        held: sql<number>`coalesce(sum(${ledger.held}), 0)`,
      })
      .from(ledger)
      .where(eq(ledger.accountId, accountId))
      .get();
    return row ?? { available: 0, held: 0 };
  }

  /** Credits granted and spent so far. */
  totals(accountId: string): { readonly granted: number; readonly spent: number } {
    const row = this.db.orm
      .select({
        granted: sql<number>`coalesce(sum(case when kind = 'grant' then available end), 0)`,
        spent: sql<number>`coalesce(-sum(case when kind = 'settle' then available + held end), 0)`,
      })
      .from(ledger)
      .where(eq(ledger.accountId, accountId))
      .get();
    return row ?? { granted: 0, spent: 0 };
  }

  /** The newest entries first. */
  history(accountId: string, { grantsOnly, limit }: { grantsOnly: boolean; limit: number }): LedgerEntry[] {
    const isShown = and(eq(ledger.accountId, accountId), grantsOnly ? eq(ledger.kind, "grant") : undefined);
    return this.db.orm.select().from(ledger).where(isShown).orderBy(desc(ledger.id)).limit(limit).all();
  }

  /** A page of the credits granted to an account, the newest first, older than the entry `before`. */
  grants(
    accountId: string,
    { before, limit }: { before: number | null; limit: number },
  ): ReadonlyArray<LedgerEntry & { readonly id: number }> {
    const isShown = and(
      eq(ledger.accountId, accountId),
      sql`kind = 'grant'`,
      before === null ? undefined : lt(ledger.id, before),
    );
    return this.db.orm.select().from(ledger).where(isShown).orderBy(desc(ledger.id)).limit(limit).all();
  }
}

export const PLAN_NAMES = ["free", "starter", "growth", "scale"] as const;
export type PlanName = (typeof PLAN_NAMES)[number];

/** Sustained requests per second of the verify call by plan; the burst is two seconds' worth (specification, "Limits"). */
const REQUESTS_PER_SECOND: Readonly<Record<PlanName, number>> = { free: 1, starter: 3, growth: 10, scale: 25 };

/** Credits that every new account begins with. */
export const SIGN_UP_CREDITS = 100;

/** The limits that an account may have instead of those of its plan; null for those of the plan. */
export interface CustomRate {
  readonly ratePerSecond: number | null;
  readonly rateBurst: number | null;
}

/** The highest rate and burst of an account. */
export const CUSTOM_RATE_MAX = 10_000;

/** The rate limit of an account. A rate of its own has the burst of two seconds, as plans do, unless that is set too. */
export const rateOf = ({ plan, ratePerSecond, rateBurst }: CustomRate & { plan: PlanName }): Rate => {
  const perSecond = ratePerSecond ?? REQUESTS_PER_SECOND[plan];
  return { perSecond, burst: rateBurst ?? perSecond * 2 };
};

/** The 402 of everything that costs credits. */
export const insufficientCredits = ({ required, available }: TooFewCredits): AppError =>
  new AppError("insufficient_credits", {
    message: `Insufficient credits: ${required} required, ${available} available.`,
    body: { required, available },
  });
