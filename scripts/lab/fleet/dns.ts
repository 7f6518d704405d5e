import {
  type DnsRecordData,
  type DnsResponse,
  type DnsResolver,
  type DnsType,
  emptyResponse,
  type ResolveOptions,
} from "../../../src/foundation/net/dns.ts";
import { reverseQueryName } from "../../../src/foundation/net/dns-name.ts";

/** The records of a name; a type that is missing is `no_data`. */
export type FleetRecords = { [T in DnsType]?: ReadonlyArray<DnsRecordData[T]> };

/** A network whose origin the DNS tells (origin.asn.cymru.com). */
export interface Origin {
  readonly asn: number;
  readonly prefix: string;
  readonly country: string;
  readonly name: string;
}

/** The DNS of the fleet's world. Names come and go by day; now and then a server fails. */
export interface FleetDns extends DnsResolver {
  set(name: string, records: FleetRecords): void;
  remove(name: string): void;
  has(name: string): boolean;
  /** An address with its reverse name; unless `leadsBack` the name does not resolve to it. */
  addAddress(ip: string, name: string | null, leadsBack?: boolean): void;
  addOrigin(origin: Origin): void;
  /** Has every question about a name fail, or no longer. */
  fail(name: string, isFailing: boolean): void;
  /** How many questions there were, and how many of them failed on purpose. */
  readonly asked: { questions: number; failures: number };
}

/** One query in this number fails, for an hour: the failure depends on the name and the hour. */
const FAILS_ONE_IN = 400;
const HOUR_MS = 3_600_000;
const TTL_S = 300;
const ALIASES_MAX = 8;
const DATE = "2004-05-12";
const REGISTRIES: Readonly<Record<string, string>> = { US: "arin", CA: "arin", BR: "lacnic", MX: "lacnic" };

/** IPv6 networks of the fleet are /32. */
const NIBBLES_OF_32 = 8;

const originTextOf = (origin: Origin | undefined): string | null => {
  if (origin === undefined) return null;
  const { asn, prefix, country } = origin;
  return `${asn} | ${prefix} | ${country} | ${REGISTRIES[country] ?? "ripencc"} | ${DATE}`;
};

const digits = (text: string): number => Number.parseInt(text, 10);

export const createFleetDns = (nowMs: () => number): FleetDns => {
  const zone = new Map<string, FleetRecords>();
  /** Names that exist because something lies below them. */
  const parents = new Map<string, number>();
  const origins = new Map<string, Origin>();
  const asns = new Map<number, Origin>();
  const asked = { questions: 0, failures: 0 };

  const countParents = (name: string, by: number): void => {
    for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) {
      const parent = name.slice(dot + 1);
      parents.set(parent, (parents.get(parent) ?? 0) + by);
    }
  };
  const set = (name: string, records: FleetRecords): void => {
    if (!zone.has(name)) countParents(name, 1);
    zone.set(name, records);
  };

  const originText = (name: string): string | null => {
    const labels = name.slice(0, -".origin.asn.cymru.com".length).split(".").toReversed();
    return originTextOf(origins.get(labels.slice(0, 3).join(".")));
  };
  const asnText = (name: string): string | null => {
    const origin = asns.get(digits(name.slice(2)));
    if (origin === undefined) return null;
    const { asn, country } = origin;
    return `${asn} | ${country} | ${REGISTRIES[country] ?? "ripencc"} | ${DATE} | ${origin.name}`;
  };
  const origin6Text = (name: string): string | null => {
    const nibbles = name.slice(0, -".origin6.asn.cymru.com".length).split(".").toReversed();
    return originTextOf(origins.get(nibbles.slice(0, NIBBLES_OF_32).join("")));
  };
  const cymru = (name: string): string | null => {
    if (name.endsWith(".origin6.asn.cymru.com")) return origin6Text(name);
    return name.endsWith(".origin.asn.cymru.com") ? originText(name) : asnText(name);
  };

  const failing = new Set<string>();
  const isDown = (name: string): boolean =>
    failing.has(name) || Bun.hash.crc32(`${name} ${Math.floor(nowMs() / HOUR_MS)}`) % FAILS_ONE_IN === 0;

  const lookUp = (name: string, type: DnsType): Pick<DnsResponse, "outcome" | "records" | "cnames"> => {
    const cnames: string[] = [];
    for (let owner = name; cnames.length <= ALIASES_MAX;) {
      const records = zone.get(owner);
      if (records === undefined) {
        const outcome = (parents.get(owner) ?? 0) > 0 ? "no_data" : "nxdomain";
        return { outcome, records: [], cnames };
      }
      const alias = records.CNAME?.[0];
      if (alias === undefined || type === "CNAME") {
        const found = records[type] ?? [];
        return { outcome: found.length > 0 ? "response" : "no_data", records: found, cnames };
      }
      cnames.push(alias);
      owner = alias;
    }
    return { outcome: "cname_loop", records: [], cnames };
  };

  return {
    asked,
    set,
    remove(name) {
      if (zone.delete(name)) countParents(name, -1);
    },
    fail: (name, isFailing) => void (isFailing ? failing.add(name) : failing.delete(name)),
    has: (name) => zone.has(name),
    addAddress(ip, name, leadsBack = true) {
      if (name === null) return;
      set(reverseQueryName(ip), { PTR: [name] });
      if (!leadsBack) return;
      const type = ip.includes(":") ? "AAAA" : "A";
      const known = zone.get(name) ?? {};
      set(name, { ...known, [type]: [...new Set([...(known[type] ?? []), ip])] });
    },
    addOrigin(origin) {
      const [address = ""] = origin.prefix.split("/");
      const nibbles = address
        .split(":")
        .slice(0, 2)
        .map((group) => group.padStart(4, "0"));
      origins.set(address.includes(":") ? nibbles.join("") : address.split(".").slice(0, 3).join("."), origin);
      asns.set(origin.asn, origin);
    },
    async resolve<T extends DnsType>(
      asking: string,
      type: T,
      { signal }: ResolveOptions = {},
    ): Promise<DnsResponse<T>> {
      const name = asking.toLowerCase().replace(/(?<=.)\.$/, "");
      asked.questions++;
      if (signal?.aborted) return emptyResponse(name, type, "aborted");
      if (isDown(name)) {
        asked.failures++;
        return emptyResponse(name, type, "servfail");
      }
      const text = name.endsWith(".asn.cymru.com") ? cymru(name) : undefined;
      const told = {
        outcome: text === null ? "nxdomain" : "response",
        records: text === null ? [] : [text],
        cnames: [],
      };
      const found = text === undefined ? lookUp(name, type) : told;
      return { ...emptyResponse(name, type, "response"), ttlS: TTL_S, ...found } as DnsResponse<T>;
    },
  };
};
