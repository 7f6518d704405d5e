import type { Db, Tx } from "../../../foundation/db/open.ts";
import { statements } from "../../../foundation/db/statements.ts";

/** The reverse name of an address. */
export interface ReverseName {
  /** Lower-case A-labels; null when there is none. */
  readonly name: string | null;
  /** Whether the name resolves to the address. */
  readonly isConfirmed: boolean;
}

/** The network that announces an address; all null when none does. */
export interface AddressNetwork {
  readonly asn: number | null;
  readonly asName: string | null;
  /** ISO 3166-1 alpha-2. */
  readonly country: string | null;
  /** Such as `192.0.2.0/24`. */
  readonly prefix: string | null;
}

/** When something was looked up, and when it is due again. */
export interface LookupTimes {
  readonly askedAtMs: number;
  readonly dueAtMs: number;
}

/** The addresses that one kind of lookup is due for, and where its results are stored. */
export interface LookupQueue<F> {
  due(nowMs: number, limit: number): string[];
  save(tx: Tx, ip: string, fact: F, times: LookupTimes): void;
  /** Adds a partial result to what is stored; null: not found out. */
  savePartial(tx: Tx, ip: string, fact: F, times: LookupTimes): void;
  /** Schedules another lookup; what is stored stays. */
  postpone(tx: Tx, ip: string, dueAtMs: number): void;
}

type Rows = Pick<Db, "sqlite">;
type Named = Record<string, string | number | null>;

const dueStatement = ({ sqlite }: Rows, where: string) =>
  sqlite.prepare<{ ip: string }, [number, number]>(`SELECT ip FROM dmarc_reverse_names WHERE ${where} LIMIT ?`);

/** The first addresses of some lists, one of each in turn. */
const interleave = (limit: number, lists: ReadonlyArray<ReadonlyArray<{ readonly ip: string }>>): string[] => {
  const ips = new Set<string>();
  const longest = Math.max(...lists.map(({ length }) => length));
  for (let at = 0; ips.size < limit && at < longest; at += 1) {
    for (const list of lists) {
      const row = list[at];
      if (row !== undefined && ips.size < limit) ips.add(row.ip);
    }
  }
  return [...ips];
};

/** Reverse names of the addresses in reports. */
export class ReverseNameQueue implements LookupQueue<ReverseName> {
  readonly #oldest;
  readonly #newest;
  readonly #sql;

  constructor(db: Rows) {
    this.#oldest = dueStatement(db, "due_at_ms <= ? ORDER BY due_at_ms");
    this.#newest = dueStatement(db, "due_at_ms <= ? ORDER BY due_at_ms DESC, rowid DESC");
    this.#sql = statements({
      save: () =>
        db.sqlite.prepare<unknown, [string | null, number, number, number, string]>(
          "UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = ?, due_at_ms = ? WHERE ip = ?",
        ),
      postpone: () =>
        db.sqlite.prepare<unknown, [number, string]>("UPDATE dmarc_reverse_names SET due_at_ms = ? WHERE ip = ?"),
    });
  }

  /**
   * The most recently due and the longest overdue in turn: a domain with few addresses does not wait behind one with many, and no
   * address waits for ever.
   */
  due(nowMs: number, limit: number): string[] {
    return interleave(limit, [this.#newest.all(nowMs, limit), this.#oldest.all(nowMs, limit)]);
  }

  save(_tx: Tx, ip: string, { name, isConfirmed }: ReverseName, { askedAtMs, dueAtMs }: LookupTimes): void {
    this.#sql.save.run(name, isConfirmed ? 1 : 0, askedAtMs, dueAtMs, ip);
  }

  /** There are no partial reverse names. */
  savePartial(tx: Tx, ip: string, _: ReverseName, { dueAtMs }: LookupTimes): void {
    this.postpone(tx, ip, dueAtMs);
  }

  postpone(_tx: Tx, ip: string, dueAtMs: number): void {
    this.#sql.postpone.run(dueAtMs, ip);
  }
}

const SAVE_NETWORK = `UPDATE dmarc_reverse_names SET asn = $asn, as_name = $asName, country = $country, prefix = $prefix,
    network_asked_at_ms = $askedAtMs, network_due_at_ms = $dueAtMs WHERE ip = $ip`;
/** A stored AS number that is not found again is kept with its name; a name belongs to the number that it was found for. */
const SAVE_PARTIAL_NETWORK = `UPDATE dmarc_reverse_names SET
    as_name = CASE WHEN $asn IS NULL OR $asn = asn THEN coalesce($asName, as_name) ELSE $asName END,
    asn = coalesce($asn, asn), country = coalesce($country, country), prefix = coalesce($prefix, prefix),
    network_asked_at_ms = CASE WHEN $asn IS NULL THEN network_asked_at_ms ELSE $askedAtMs END,
    network_due_at_ms = $dueAtMs
  WHERE ip = $ip`;

/** The networks of the addresses in reports, and the names of ASes. */
export class NetworkQueue implements LookupQueue<AddressNetwork> {
  readonly #newest;
  readonly #first;
  readonly #dueAgain;
  readonly #sql;

  constructor(db: Rows) {
    this.#newest = dueStatement(db, "network_due_at_ms = ? ORDER BY rowid DESC");
    this.#first = dueStatement(db, "network_due_at_ms = ? ORDER BY rowid ASC");
    this.#dueAgain = dueStatement(db, "network_due_at_ms BETWEEN 1 AND ? ORDER BY network_due_at_ms");
    this.#sql = statements({
      save: () => db.sqlite.prepare<unknown, Named>(SAVE_NETWORK),
      savePartial: () => db.sqlite.prepare<unknown, Named>(SAVE_PARTIAL_NETWORK),
      postpone: () =>
        db.sqlite.prepare<unknown, [number, string]>(
          "UPDATE dmarc_reverse_names SET network_due_at_ms = ? WHERE ip = ?",
        ),
      asName: () =>
        db.sqlite.prepare<{ name: string | null }, [number, number]>(
          "SELECT name FROM dmarc_as_names WHERE asn = ? AND due_at_ms > ?",
        ),
      saveAsName: () =>
        db.sqlite.prepare<unknown, [number, string | null, number]>(
          "INSERT OR REPLACE INTO dmarc_as_names (asn, name, due_at_ms) VALUES (?, ?, ?)",
        ),
    });
  }

  /** A third each: the newest that were never looked up, the oldest of these, and those that are due again. */
  due(nowMs: number, limit: number): string[] {
    return interleave(limit, [this.#newest.all(0, limit), this.#first.all(0, limit), this.#dueAgain.all(nowMs, limit)]);
  }

  save(_tx: Tx, ip: string, network: AddressNetwork, times: LookupTimes): void {
    this.#sql.save.run({ ip, ...network, ...times });
  }

  savePartial(_tx: Tx, ip: string, network: AddressNetwork, times: LookupTimes): void {
    this.#sql.savePartial.run({ ip, ...network, ...times });
  }

  postpone(_tx: Tx, ip: string, dueAtMs: number): void {
    this.#sql.postpone.run(dueAtMs, ip);
  }

  /** The cached name of an AS; null when it has none, undefined when it must be looked up. */
  asName(asn: number, nowMs: number): string | null | undefined {
    return this.#sql.asName.get(asn, nowMs)?.name;
  }

  saveAsName(_tx: Tx, asn: number, name: string | null, dueAtMs: number): void {
    this.#sql.saveAsName.run(asn, name, dueAtMs);
  }
}
