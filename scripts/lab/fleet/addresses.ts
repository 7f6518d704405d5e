import type { Chance } from "./chance.ts";
import type { FleetDns, Origin } from "./dns.ts";
import type { Host } from "./plan.ts";

/** Gives out addresses, each once, with their reverse names and origins. */
export interface Addresses {
  /** `count` addresses in /24 networks (three octets each); null: without a reverse name. */
  take(networks: readonly string[], count: number, nameOf: (ip: string) => string | null, more?: TakeOptions): Host[];
  /** A host of a network that gives the same name for the same address, and may be taken many times. */
  share(networks: readonly string[], count: number, nameOf: (ip: string) => string): Host[];
  origin(networks: readonly string[], origin: Omit<Origin, "prefix">): void;
  /** The address of somebody at home, or of a hacked computer: a network of a telco, or one without names. */
  atHome(): Host;
}

export interface TakeOptions {
  /** Whether the names lead back; they do unless told. */
  readonly leadsBack?: boolean;
}

/** How telcos name their customers' lines; null: not at all. */
const HOME_NAMES: ReadonlyArray<(octets: readonly string[]) => string | null> = [
  (o) => `p${o.map((n) => Number(n).toString(16).padStart(2, "0")).join("")}.dip0.t-ipconnect.de`,
  (o) => `dyn-${o.join("-")}.bigtelco.net`,
  (o) => `${o.join("-")}.cable.dynamic.kabelwest.tv`,
  (o) => `host${o.join("-")}.range${o[0]}-${o[1]}.isp-central.co.uk`,
  (o) => `cpe-${o.join("-")}.nyc.res.coaxnet.com`,
  (o) => `${o.join(".")}.dynamic.jazzlink.es`,
  (o) => `abts-north-dynamic-${o.toReversed().join(".")}.airlinkbroadband.in`,
  (o) => `pool-${o.join("-")}.bstnma.fios.veritel.net`,
  (o) => `customer-${o.join("-")}.totalnet.mx`,
  (o) => `${o[3]}.red-${o[0]}-${o[1]}-${o[2]}.dynamicip.rimatel.es`,
  (o) => `adsl-${o.join("-")}.pltn13.pacline.net`,
  (o) => `static-${o.join("-")}.clients.hosthaus.de`,
  () => null,
  () => null,
  () => null,
  () => null,
  () => null,
  () => null,
  () => null,
  () => null,
];
const HOME_COUNTRIES = ["DE", "US", "ES", "IN", "VN", "BR", "MX", "RU", "TR", "ID"] as const;
/** First octets of networks in which nothing else of the fleet lives. */
const HOME_FIRST = [2, 5, 14, 27, 36, 41, 58, 61, 78, 84, 95, 103, 110, 113, 122, 151, 177, 181, 186, 189, 190, 201];
const LYING = 0.04;
const TRIES_MAX = 10_000;

/** Networks are written `192.0.2` (a /24) or `2001:db8` (a /32). */
const within = (network: string, chance: Chance): string =>
  network.includes(":")
    ? `${network}:${chance.whole(16, 4000).toString(16)}::${chance.whole(2, 250).toString(16)}`
    : `${network}.${chance.whole(2, 250)}`;

export const createAddresses = (dns: FleetDns, chance: Chance): Addresses => {
  const taken = new Map<string, Host>();
  let homes = 0;

  const draw = (networks: readonly string[]): string => {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const ip = within(chance.pick(networks), chance);
      if (!taken.has(ip)) return ip;
    }
    throw new Error("the networks are full");
  };

  const take: Addresses["take"] = (networks, count, nameOf, { leadsBack = true } = {}) =>
    Array.from({ length: count }, () => {
      const ip = draw(networks);
      const host = { ip };
      taken.set(ip, host);
      dns.addAddress(ip, nameOf(ip), leadsBack);
      return host;
    });

  const takeOne = (network: string, nameOf: (ip: string) => string | null, leadsBack: boolean): Host => {
    const [host] = take([network], 1, nameOf, { leadsBack });
    if (host === undefined) throw new Error("no address");
    return host;
  };

  return {
    take,
    share(networks, count, nameOf) {
      return Array.from({ length: count }, () => {
        const ip = within(chance.pick(networks), chance);
        const known = taken.get(ip);
        if (known !== undefined) return known;
        taken.set(ip, { ip });
        dns.addAddress(ip, nameOf(ip));
        return { ip };
      });
    },
    origin(networks, origin) {
      for (const network of networks) {
        const prefix = network.includes(":") ? `${network}::/32` : `${network}.0/24`;
        dns.addOrigin({ ...origin, prefix });
      }
    },
    atHome() {
      const network = `${chance.pick(HOME_FIRST)}.${chance.whole(1, 250)}.${chance.whole(1, 250)}`;
      homes++;
      // A few give themselves a fine name, which does not lead back to them.
      if (chance.hits(LYING)) return takeOne(network, (ip) => `mail-${ip.replaceAll(".", "")}.google.com`, false);
      const name = chance.pick(HOME_NAMES);
      dns.addOrigin({
        asn: 50_000 + (homes % 40),
        prefix: `${network}.0/24`,
        country: chance.pick(HOME_COUNTRIES),
        name: `TELCO-${homes % 40}`,
      });
      return takeOne(network, (ip) => name(ip.split(".")), true);
    },
  };
};
