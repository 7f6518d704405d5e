import type { Db, Tx } from "../../db/open.ts";

/** The reverse name of an address, as the DNS said it. */
export interface ReverseName {
  /** Lower-case A-labels; null when there is none. */
  readonly name: string | null;
  /** Whether the name leads back to the address. */
  readonly isConfirmed: boolean;
}

/** The network that announces an address. All null: none does. */
export interface AddressNetwork {
  readonly asn: number | null;
  readonly asName: string | null;
  /** ISO 3166 alpha-2. */
  readonly country: string | null;
  /** Such as `192.0.2.0/24`. */
  readonly prefix: string | null;
}

/** What is known of an address. */
export interface StoredAddress extends ReverseName, AddressNetwork {
  /** Whether the DNS ever said what the name is. */
  readonly isNameKnown: boolean;
  /** Whether it was ever found out which network announces it. */
  readonly isNetworkKnown: boolean;
}

/** When something was found out, and when it is looked up again. */
export interface LookupTimes {
  readonly askedAtMs: number;
  readonly dueAtMs: number;
}

/** Addresses about which one kind of fact is to be found out, and where it is written. */
export interface LookupQueue<F> {
  /** Addresses whose time has come. */
  due(nowMs: number, limit: number): string[];
  save(tx: Tx, ip: string, fact: F, times: LookupTimes): void;
  /** Adds what was found out to what is known; null: not found out. */
  savePartial(tx: Tx, ip: string, fact: F, times: LookupTimes): void;
  /** Looks up at another time; what is known stays. */
  postpone(tx: Tx, ip: string, dueAtMs: number): void;
}

type FactRow = Omit<StoredAddress, "isConfirmed" | "isNameKnown" | "isNetworkKnown"> & {
  readonly ip: string;
  readonly isConfirmed: number;
  readonly askedAtMs: number | null;
  readonly networkAskedAtMs: number | null;
};
type Named = Record<string, string | number | null>;

/** An AS number that was not found is kept, and with it its name; a name belongs to the number that it was found for. */
const SAVE_PARTIAL = `UPDATE dmarc_reverse_names SET
    as_name = CASE WHEN $asn IS NULL OR $asn = asn THEN coalesce($asName, as_name) ELSE $asName END,
    asn = coalesce($asn, asn), country = coalesce($country, country), prefix = coalesce($prefix, prefix),
    network_asked_at_ms = CASE WHEN $asn IS NULL THEN network_asked_at_ms ELSE $askedAtMs END,
    network_due_at_ms = $dueAtMs
  WHERE ip = $ip`;

/** Reverse names and networks of the addresses that reports tell of. */
export const createAddressStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  const prepareDue = (from: string) =>
    sqlite.prepare<{ ip: string }, [number, number]>(`SELECT ip FROM dmarc_reverse_names WHERE ${from} LIMIT ?`);
  const oldestNames = prepareDue("due_at_ms <= ? ORDER BY due_at_ms");
  const newestNames = prepareDue("due_at_ms <= ? ORDER BY due_at_ms DESC, rowid DESC");
  const dueNetworks = prepareDue("network_due_at_ms BETWEEN 1 AND ? ORDER BY network_due_at_ms");
  const neverLookedUp = (order: "ASC" | "DESC") =>
    sqlite.prepare<{ ip: string }, [number]>(
      `SELECT ip FROM dmarc_reverse_names WHERE network_due_at_ms = 0 ORDER BY rowid ${order} LIMIT ?`,
    );
  const newNetworks = neverLookedUp("DESC");
  const firstNetworks = neverLookedUp("ASC");
  const saveName = sqlite.prepare<unknown, [string | null, number, number, number, string]>(
    "UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = ?, due_at_ms = ? WHERE ip = ?",
  );
  const setNameDue = sqlite.prepare<unknown, [number, string]>(
    "UPDATE dmarc_reverse_names SET due_at_ms = ? WHERE ip = ?",
  );
  const setNetworkDue = sqlite.prepare<unknown, [number, string]>(
    "UPDATE dmarc_reverse_names SET network_due_at_ms = ? WHERE ip = ?",
  );
  const saveNetwork = sqlite.prepare<unknown, Named>(
    `UPDATE dmarc_reverse_names SET asn = $asn, as_name = $asName, country = $country, prefix = $prefix,
      network_asked_at_ms = $askedAtMs, network_due_at_ms = $dueAtMs WHERE ip = $ip`,
  );
  const savePartial = sqlite.prepare<unknown, Named>(SAVE_PARTIAL);
  const facts = sqlite.prepare<FactRow, [string]>(
    `SELECT ip, name, is_confirmed isConfirmed, asked_at_ms askedAtMs, asn, as_name asName, country, prefix,
      network_asked_at_ms networkAskedAtMs FROM dmarc_reverse_names WHERE ip IN (SELECT value FROM json_each(?))`,
  );
  const asName = sqlite.prepare<{ name: string | null }, [number, number]>(
    "SELECT name FROM dmarc_as_names WHERE asn = ? AND due_at_ms > ?",
  );
  const saveAsName = sqlite.prepare<unknown, [number, string | null, number]>(
    "INSERT OR REPLACE INTO dmarc_as_names (asn, name, due_at_ms) VALUES (?, ?, ?)",
  );

  const postponeName = (_tx: Tx, ip: string, dueAtMs: number): void => void setNameDue.run(dueAtMs, ip);
  const names: LookupQueue<ReverseName> = {
    /**
     * Half of them are those whose time came last, so that the few of one domain do not wait behind the many of another; the
     * others are the longest overdue, so that none waits for ever. One of each in turn, for a run may end before the last.
     */
    due: (nowMs, limit) => inTurns(limit, [newestNames.all(nowMs, limit), oldestNames.all(nowMs, limit)]),
    save: (_tx, ip, { name, isConfirmed }, { askedAtMs, dueAtMs }) =>
      void saveName.run(name, isConfirmed ? 1 : 0, askedAtMs, dueAtMs, ip),
    // A name is found out as a whole or not at all.
    savePartial: (tx, ip, _, { dueAtMs }) => postponeName(tx, ip, dueAtMs),
    postpone: postponeName,
  };
  const networks: LookupQueue<AddressNetwork> = {
    /** A third each: those that came last and were never looked up, those that came first, those that are due again. */
    due: (nowMs, limit) =>
      inTurns(limit, [newNetworks.all(limit), firstNetworks.all(limit), dueNetworks.all(nowMs, limit)]),
    save: (_tx, ip, network, times) => void saveNetwork.run({ ip, ...network, ...times }),
    savePartial: (_tx, ip, network, times) => void savePartial.run({ ip, ...network, ...times }),
    postpone: (_tx, ip, dueAtMs) => void setNetworkDue.run(dueAtMs, ip),
  };

  return {
    names,
    networks,
    /** What is known of these addresses; of those that no report told of there is nothing. */
    facts: (ips: readonly string[]): ReadonlyMap<string, StoredAddress> =>
      new Map(facts.all(JSON.stringify(ips)).map((row) => [row.ip, factsOf(row)])),

    /** The name of an AS; null when it has none, undefined when it must be asked for. */
    asName: (asn: number, nowMs: number): string | null | undefined => asName.get(asn, nowMs)?.name,
    saveAsName: (_tx: Tx, asn: number, name: string | null, dueAtMs: number): void =>
      void saveAsName.run(asn, name, dueAtMs),
  };
};

export type AddressStore = ReturnType<typeof createAddressStore>;

/** The first addresses of some lists, one of each in turn. */
const inTurns = (limit: number, lists: ReadonlyArray<ReadonlyArray<{ readonly ip: string }>>): string[] => {
  const ips = new Set<string>();
  const longest = Math.max(...lists.map(({ length }) => length));
  for (let at = 0; ips.size < limit && at < longest; at += 1)
    for (const list of lists) {
      const row = list[at];
      if (row !== undefined && ips.size < limit) ips.add(row.ip);
    }
  return [...ips];
};

const factsOf = ({ ip: _, isConfirmed, askedAtMs, networkAskedAtMs, ...row }: FactRow): StoredAddress => ({
  ...row,
  isConfirmed: isConfirmed === 1,
  isNameKnown: askedAtMs !== null,
  isNetworkKnown: networkAskedAtMs !== null,
});
