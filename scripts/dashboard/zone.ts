/** The name server of the dashboard's world: a table of records that can be changed, and the zones of every blocklist. */
import catalogue from "../../fixtures/blocklists.json" with { type: "json" };
import {
  encodeResponse,
  type SeenQuery,
  type ScriptedDnsServer,
  startDnsServer,
} from "../../src/testing/dns-server.ts";
import { type NameRecords, respondAsList, respondWith } from "../harness/world.ts";
import { HOSTILE } from "./hostile.ts";

const REFUSED = 5;
/** 32 nibbles with dots between them. */
const IPV6_CHARACTERS = 63;

/** How a blocklist treats this resolver. */
export type ListManner = "responds" | "refuses" | "fails";

interface ListState {
  readonly zone: string;
  manner: ListManner;
  /** What is listed: the name without the zone → the address that says why. */
  readonly listed: Map<string, string>;
  /** The address that refuses, for lists that have one. */
  readonly refusal: string | null;
}

const addressOf = (match: string): string => {
  const bit = /^bit (\d+)$/.exec(match)?.[1];
  return bit === undefined ? (match.split("-")[0] ?? "") : `127.0.0.${bit}`;
};

/** The name under which a blocklist knows a target (RFC 5782 §2.1, §2.4). */
export const listName = (target: string): string => {
  if (/^[\d.]+$/.test(target)) return target.split(".").toReversed().join(".");
  if (!target.includes(":")) return target;
  const [head = "", tail = ""] = target.split("::");
  const groups = (text: string) => text.split(":").filter((group) => group !== "");
  const missing = 8 - groups(head).length - groups(tail).length;
  const all = [...groups(head), ...Array<string>(missing).fill("0"), ...groups(tail)];
  return [...all.map((group) => group.padStart(4, "0")).join("")].toReversed().join(".");
};

/** Test points are always listed, so that the lists pass their tests. */
const newList = (list: (typeof catalogue.lists)[number], zone: string): ListState => {
  const listed = new Map<string, string>();
  const fallback = addressOf(list.codes[0]?.match[0] ?? "127.0.0.2");
  const points: Record<string, { positive?: Array<{ value: string; answers?: string[] }> } | undefined> = {
    ...list.test_points,
  };
  for (const kind of ["ipv4", "ipv6", "domain"]) {
    for (const { value, answers } of points[kind]?.positive ?? []) {
      const name = value === "::ffff:7f00:2" ? listName("0:0:0:0:0:ffff:7f00:2") : listName(value);
      listed.set(name, answers?.[0] ?? fallback);
    }
  }
  const refusals: ReadonlyArray<{ readonly match?: readonly string[]; readonly outcomes?: readonly string[] }> =
    "refusals" in list ? (list.refusals ?? []) : [];
  const refusal = refusals.map(({ match }) => match?.at(-1)).find((match) => match !== undefined);
  return { zone, manner: "responds", listed, refusal: refusal === undefined ? null : addressOf(refusal) };
};

/** Records by name, and blocklists by id. */
export class WorldZone {
  readonly #names = new Map<string, NameRecords>();
  readonly #lists = new Map<string, ListState>();
  #server: ScriptedDnsServer | null = null;
  #refusesIpv6: boolean = false;

  constructor() {
    for (const list of catalogue.lists) {
      if ("zone" in list && typeof list.zone === "string") this.#lists.set(list.id, newList(list, list.zone));
    }
  }

  /** In the form of POSTWARDEN_DNS_SERVERS. */
  get setting(): string {
    if (this.#server === null) throw new Error("the name server has not been started");
    const { address, port } = this.#server.server;
    return `${address}:${port}`;
  }

  async start(): Promise<void> {
    this.#server = await startDnsServer((query) => this.#respond(query));
  }

  stop(): void {
    this.#server?.stop();
  }

  /** Replaces the records of these names. */
  publish(records: Readonly<Record<string, NameRecords>>): void {
    for (const [name, entry] of Object.entries(records)) this.#names.set(name, entry);
  }

  remove(name: string): void {
    this.#names.delete(name);
  }

  /** An address with its reverse name, the name with its address, and the network that announces it. */
  publishHost(ip: string, name: string | null, origin: { asn: number; country: string; owner: string }): void {
    const reverse = listName(ip);
    if (name !== null) this.publish({ [`${reverse}.in-addr.arpa`]: { PTR: [name] }, [name]: { A: [ip] } });
    const prefix = ip.replace(/\d+$/, "0/24");
    this.publish({
      [`${reverse}.origin.asn.cymru.com`]: {
        TXT: [`${origin.asn} | ${prefix} | ${origin.country} | ripencc | 2012-04-01`],
      },
      [`as${origin.asn}.asn.cymru.com`]: {
        TXT: [`${origin.asn} | ${origin.country} | ripencc | 2012-04-01 | ${origin.owner}`],
      },
    });
  }

  treat(listId: string, manner: ListManner): void {
    this.#list(listId).manner = manner;
  }

  /** No list responds about IPv6 addresses from now on. */
  refuseIpv6(): void {
    this.#refusesIpv6 = true;
  }

  list(listId: string, target: string, address = "127.0.0.2"): void {
    this.#list(listId).listed.set(listName(target), address);
  }

  delist(listId: string, target: string): void {
    this.#list(listId).listed.delete(listName(target));
  }

  #list(id: string): ListState {
    const list = this.#lists.get(id);
    if (list === undefined) throw new Error(`there is no blocklist ${id}`);
    return list;
  }

  #respond(query: SeenQuery): Buffer {
    const name = query.name.toLowerCase();
    for (const list of this.#lists.values()) {
      if (!name.endsWith(`.${list.zone}`)) continue;
      const prefix = name.slice(0, -list.zone.length - 1);
      const isRefused = this.#refusesIpv6 && prefix.length === IPV6_CHARACTERS;
      return isRefused ? encodeResponse(query, { rcode: REFUSED }) : respondFor(query, list, prefix);
    }
    return respondWith(query, this.#names.get(name));
  }
}

const respondFor = (query: SeenQuery, { manner, listed, refusal, zone }: ListState, prefix: string): Buffer => {
  if (manner === "fails") return encodeResponse(query, { rcode: REFUSED });
  const address = manner === "refuses" ? (refusal ?? "127.255.255.254") : listed.get(prefix);
  const text = `Blocked - see https://${zone}/lookup?${prefix} ${HOSTILE.attribute}`;
  return respondAsList(query, zone, address === undefined ? undefined : { A: [address], TXT: [text] });
};
