import { and, count, desc, eq, gt, gte, lt, lte, sql } from "drizzle-orm";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { bounces } from "../../foundation/db/schema-bounces.ts";
import { sqlStatements, rows } from "../../foundation/db/statements.ts";
import { TurnReads } from "../../foundation/db/turn-reads.ts";
import type { FiltersOf, IdWindow } from "../../foundation/base/walk.ts";
import type { Verdict } from "../result.ts";

/** A bounce as it is stored. */
export type StoredBounce = Readonly<typeof bounces.$inferSelect>;

/** What lists of bounces can be restricted to. */
export type BounceFilters = FiltersOf<Pick<StoredBounce, "email" | "kind" | "source" | "provider" | "promised">> & {
  /** Bounced at or after this time. */
  readonly fromMs?: number | undefined;
};

/** How many addresses of a provider bounced hard or softly, by what had been said about them. */
export interface BounceCount extends Pick<StoredBounce, "provider" | "kind" | "promised"> {
  readonly addresses: number;
}

/** The last check of an address before a time. */
export interface Promised {
  readonly verdict: Verdict;
  readonly atMs: number;
  /** As stored; null when it has expired. */
  readonly evidence: Uint8Array | null;
}

/** Addresses in their order, without the first. */
export interface AddressRange {
  readonly after: string;
  readonly upTo: string;
}

const LAST_ADDRESS = "\u{10ffff}";

/** "This mailbox does not exist", in the words of servers: other hard statuses are about the domain, which DNS answers for. */
const OF_MAILBOX = "status IN ('5.1.1', '5.1.3', '5.1.10')";

const table = bounces;

const prepareAll = (db: Db) =>
  sqlStatements(db, {
    insert: `INSERT INTO bounces (id, account_id, event_key, source, email, kind, status, diagnostic, bounced_at_ms, created_at_ms,
        promised, promised_at_ms, provider, refuted_at_ms, sought_at_ms)
      VALUES ($id, $accountId, $eventKey, $source, $email, $kind, $status, $diagnostic, $bouncedAtMs, $createdAtMs,
        $promised, $promisedAtMs, $provider, $refutedAtMs, $soughtAtMs) ON CONFLICT DO NOTHING`,
    some: rows<object, string>(
      "SELECT 1 FROM bounces WHERE account_id = ? AND kind = 'hard' AND refuted_at_ms IS NULL LIMIT 1",
    ),
    newest: rows<
      Pick<StoredBounce, "source" | "diagnostic" | "bouncedAtMs"> & { readonly status: string },
      [account: string, email: string, sinceMs: number]
    >(
      `SELECT source, status, diagnostic, bounced_at_ms AS bouncedAtMs FROM bounces
        WHERE account_id = ? AND email = ? AND kind = 'hard' AND ${OF_MAILBOX} AND refuted_at_ms IS NULL AND bounced_at_ms >= ?
        ORDER BY bounced_at_ms DESC LIMIT 1`,
    ),
    // A check of a server that refuses other recipients proves the mailbox.
    provedAfter: rows<{ atMs: number }, [account: string, email: string, afterMs: number]>(
      `SELECT completed_at_ms AS atMs FROM verifications
        WHERE account_id = ? AND mode = 'live' AND normalized_email = ? AND completed_at_ms > ?
          AND json_extract(result, '$.signals.smtp') = 'pass' AND json_extract(result, '$.signals.catch_all') = 'pass'
        ORDER BY id DESC LIMIT 1`,
    ),
    promised: rows<
      { verdict: Verdict; atMs: number; evidence: Uint8Array | string | null },
      [account: string, email: string, atMs: number]
    >(
      `SELECT v.verdict, v.completed_at_ms AS atMs, e.body AS evidence FROM verifications v
        LEFT JOIN verification_evidence e ON e.verification_id = v.id
        WHERE v.account_id = ? AND v.mode = 'live' AND v.normalized_email = ? AND v.completed_at_ms <= ? AND v.verdict IS NOT NULL
        ORDER BY v.id DESC LIMIT 1`,
    ),
    addressBehind: rows<{ email: string }, [account: string, after: string, places: number]>(
      "SELECT email FROM bounces WHERE account_id = ? AND email > ? ORDER BY email LIMIT 1 OFFSET ?",
    ),
    refute: "UPDATE bounces SET refuted_at_ms = ? WHERE account_id = ? AND email = ? AND refuted_at_ms IS NULL",
    expire:
      "DELETE FROM bounces WHERE id IN (SELECT id FROM bounces WHERE created_at_ms < ? ORDER BY created_at_ms LIMIT ?)",
  });

/** The bounces of accounts. */
export class BounceStore {
  readonly #sql;
  readonly #some: TurnReads<"some" | "none">;

  constructor(private readonly db: Db) {
    this.#sql = prepareAll(db);
    this.#some = new TurnReads(db);
  }

  /** False when the account has the event already. */
  insert(_tx: Tx, bounce: StoredBounce): boolean {
    return this.#sql.insert.run(bounce).changes > 0;
  }

  /** The last completed check of an address with live keys up to a time. */
  promised(accountId: string, email: string, atMs: number): Promised | null {
    const found = this.#sql.promised.get(accountId, email, atMs);
    if (found === null) return null;
    const evidence = found.evidence instanceof Uint8Array ? found.evidence : null;
    return { ...found, evidence };
  }

  /** When a check after a time proved that the mailbox exists; null when none did. */
  provedAfter(accountId: string, email: string, afterMs: number): number | null {
    return this.#sql.provedAfter.get(accountId, email, afterMs)?.atMs ?? null;
  }

  /** Whether any hard bounce of the account counts: most accounts have none, and need no look-up for each address. */
  hasHard(accountId: string): boolean {
    return this.#some.get(accountId, () => (this.#sql.some.get(accountId) === null ? "none" : "some")) === "some";
  }

  /** The newest hard bounce of a mailbox since a time that no check refuted. */
  newestHard(accountId: string, email: string, sinceMs: number) {
    return this.#sql.newest.get(accountId, email, sinceMs);
  }

  /** The mailbox was proved at a time: its bounces decide nothing from now on. */
  refute(_tx: Tx, { accountId, email, atMs }: { accountId: string; email: string; atMs: number }): void {
    this.#sql.refute.run(atMs, accountId, email);
  }

  /** The newest first, in the order in which they were stored. */
  list(accountId: string, filters: BounceFilters, { before, from, limit }: IdWindow): StoredBounce[] {
    const { fromMs, ...equal } = filters;
    const { email, kind, source, provider, promised } = equal;
    const passes = and(
      eq(table.accountId, accountId),
      before === null ? undefined : lt(table.id, before),
      from === undefined ? undefined : gte(table.id, from),
      email === undefined ? undefined : eq(table.email, email),
      kind === undefined ? undefined : sql`+${table.kind} = ${kind}`,
      source === undefined ? undefined : sql`+${table.source} = ${source}`,
      provider === undefined ? undefined : sql`+${table.provider} is ${provider}`,
      promised === undefined ? undefined : sql`+${table.promised} is ${promised}`,
      fromMs === undefined ? undefined : sql`+${table.bouncedAtMs} >= ${fromMs}`,
    );
    return this.db.orm.select().from(table).where(passes).orderBy(desc(table.id)).limit(limit).all();
  }

  /** The id `places` behind the newest older than `before`; null when there are fewer. */
  idBehind(accountId: string, before: string | null, places: number): string | null {
    const older = and(eq(table.accountId, accountId), before === null ? undefined : lt(table.id, before));
    const ids = this.db.orm.select({ id: table.id }).from(table).where(older).orderBy(desc(table.id));
    return ids.limit(1).offset(places).get()?.id ?? null;
  }

  /** The addresses behind one, with about `bounces` bounces; null behind the last one. */
  addressesBehind(accountId: string, after: string, bounces: number): AddressRange | null {
    if (after === LAST_ADDRESS) return null;
    const upTo = this.#sql.addressBehind.get(accountId, after, bounces)?.email ?? LAST_ADDRESS;
    return { after, upTo };
  }

  /** Addresses of a range that bounced since a time, by provider, kind and what had been said about them. */
  counts(accountId: string, fromMs: number, { after, upTo }: AddressRange): BounceCount[] {
    const { provider, kind, promised, email, bouncedAtMs } = table;
    return this.db.orm
      .select({ provider, kind, promised, addresses: sql<number>`count(distinct ${email})` })
      .from(table)
      .where(and(eq(table.accountId, accountId), gt(email, after), lte(email, upTo), sql`+${bouncedAtMs} >= ${fromMs}`))
      .groupBy(provider, kind, promised)
      .all();
  }

  count(accountId: string): number {
    return this.db.orm.select({ rows: count() }).from(table).where(eq(table.accountId, accountId)).get()?.rows ?? 0;
  }

  /** Removes bounces that were stored before a time, and returns how many. */
  expire(_tx: Tx, beforeMs: number, limit: number): number {
    return this.#sql.expire.run(beforeMs, limit).changes;
  }
}
