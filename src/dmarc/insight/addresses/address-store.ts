import ipaddr from "ipaddr.js";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { statements } from "../../../foundation/db/statements.ts";
import { cached } from "../../../foundation/base/bounded-map.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";

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
const interleave = (limit: number, lists: ReadonlyArray<ReadonlyArray<{ readonly ip: string }>>) => {
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

/** Canonical addresses whose first three groups are written out: nearly all on the internet. */
const PLAIN_IPV6 = /^[1-9a-f][0-9a-f]{0,3}(?::[1-9a-f][0-9a-f]{0,3}){2}(?=:)/;

const CACHED_MAX = 20_000;

const network6Of = cached(CACHED_MAX, (ip: string) => {
  const plain = PLAIN_IPV6.exec(ip);
  if (plain !== null) return `${plain[0]}::/48`;
  const { parts } = ipaddr.IPv6.parse(ip);
  return `${new ipaddr.IPv6([...parts.slice(0, 3), 0, 0, 0, 0, 0]).toString()}/48`;
});

/** The network of an address, in canonical form: a /24 for IPv4, a /48 for IPv6. */
export const ipNetworkOf = (ip: string): string =>
  ip.includes(":") ? network6Of(ip) : `${ip.slice(0, ip.lastIndexOf("."))}.0/24`;

/** A label that only mail servers have, even with their address in the name. */
const MAIL = /(?:^|[.-])(?:mail|mx|smtp|mta|out|outbound|relay)\d*(?=[.-])/;
/** A label that servers have; it proves nothing when the name contains the address. */
const SERVER =
  /(?:^|[.-])(?:server|srv|vps|vserver|dedi|dedicated|hosting|hosted|cloud|colo|web|www|static|business|biz)\d*(?=[.-])/;
const DYNAMIC =
  /(?:^|[.\d_-])(?:a?dsl|vdsl|x?dsl|dyn|dynamic|dynip|dhcp|pool|ppp|pppoe|dial|dialup|dialin|broadband|cable|catv|cpe|cust|customer|customers|client|clients|user|users|subs|subscriber|res|residential|mobile|lte|umts|gprs|abo|wireless|fiber|fibre|ftth|fttx|home|unassigned|no-reverse|no-rdns|unknown|dip\d*)(?=[.\d_-])/;
/** One name for all addresses of a network. */
const PLACEHOLDER =
  /^(?:localhost(?:\.|$)|(?:static|dynamic|customer|client|host|unassigned|unknown)\.[a-z0-9-]+\.[a-z]+$)/;

/**
 * Whether a reverse name is one that providers give to all of their addresses: it contains the address, or a word for access lines.
 * Names of mail servers are not generic, and words in the organizational domain do not count. Linear in the length of the name.
 */
export const isGenericName = (name: string, ip: string): boolean => {
  const below = labelsBelow(name);
  if (MAIL.test(below)) return false;
  if (PLACEHOLDER.test(name) || holdsAddress(below, ip)) return true;
  return !SERVER.test(below) && DYNAMIC.test(below);
};

/** The labels below the organizational domain, each with its dot; all of them where there is none. */
const labelsBelow = (name: string) => {
  const organisation = organisationalDomain(name);
  return organisation === null ? `${name}.` : name.slice(0, name.length - organisation.length);
};

const holdsAddress = (name: string, ip: string) => {
  if (ip.includes(":")) return holdsGroups(name, ip);
  const octets = ip.split(".");
  const numbers = (name.match(/\d+/g) ?? []).map(Number);
  const hex = octets.map((octet) => Number(octet).toString(16).padStart(2, "0")).join("");
  const padded = octets.map((octet) => octet.padStart(3, "0")).join("");
  const isWritten = name.includes(hex) || name.includes(padded);
  return isWritten || octets.every((octet) => numbers.includes(Number(octet)));
};

/** This many consecutive groups of an IPv6 address are not in a name by chance. */
const GROUPS_MIN = 3;

const holdsGroups = (name: string, ip: string) => {
  const groups = ip.split(":").slice(0, GROUPS_MIN);
  if (groups.length < GROUPS_MIN || groups.includes("")) return false;
  const padded = groups.map((group) => group.padStart(4, "0"));
  return ["", "-", "."].some((joint) => name.includes(groups.join(joint)) || name.includes(padded.join(joint)));
};
