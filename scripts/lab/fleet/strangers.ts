import type { Addresses } from "./addresses.ts";
import type { Host, Mail, Signed, Stream } from "./plan.ts";

const none = (headerFrom: string, envelope: string, result: Mail["spf"]["result"]): Mail => ({
  headerFrom,
  envelope,
  spf: { domain: envelope, result },
  dkim: [],
  passedOn: null,
});

export interface Forgery {
  readonly domain: string;
  readonly volume: Stream["volume"];
  /** How many different addresses there are in all, and of them on a day. */
  readonly addresses: number;
  readonly aDay: number;
  readonly headerFrom?: string;
  /** Some repeat a signature that they have seen, with this selector; it fails. */
  readonly copied?: string;
  /** Some use this domain in the envelope, whose SPF passes everywhere. */
  readonly throwaway?: string;
  /** Some invent names below the domain. */
  readonly names?: readonly string[];
}

const some = <T>(from: readonly T[], count: number, pick: (from: readonly T[]) => T): T[] =>
  from.length <= count ? [...from] : Array.from({ length: count }, () => pick(from));

/** Hacked computers and lines at home that use the domain in From. They prove nothing. */
export const botnet = (
  addresses: Addresses,
  { domain, volume, aDay, headerFrom = domain, copied, throwaway, names = [], ...more }: Forgery,
): Stream => {
  const pool = Array.from({ length: more.addresses }, () => addresses.atHome());
  return {
    who: "forgers",
    accept: ["threat"],
    isPooled: true,
    volume,
    hosts: (_day, chance) => some(pool, aDay, chance.pick),
    mail: (_day, { ip }) => {
      // A third of them make up an envelope of somebody else's, whose SPF says nothing or no.
      const hash = Bun.hash.crc32(ip);
      const kind = hash % 6;
      // A throwaway domain whose SPF lets everybody send (+all).
      if (throwaway !== undefined && hash % 7 === 0) {
        return { ...none(domain, throwaway, "pass") };
      }
      if (copied !== undefined && hash % 5 === 0) {
        return { ...none(domain, domain, "fail"), dkim: [{ domain, selector: copied, result: "fail" }] };
      }
      const label = names[hash % (2 * Math.max(1, names.length))];
      if (label !== undefined) return none(`${label}.${domain}`, `${label}.${domain}`, "none");
      if (kind === 0) return none(headerFrom, `mx${Bun.hash.crc32(ip) % 97}.invoice-post.click`, "none");
      if (kind === 1) return none(headerFrom, "gmail.com", "softfail");
      return none(headerFrom, domain, kind === 2 ? "softfail" : "fail");
    },
  };
};

const TOWNS = ["aalborg", "bergen", "corby", "delft", "eger", "fermo", "gdynia", "hamar", "izola", "jena", "kaunas"];
const TRADES = ["bakkerij", "garage", "dental", "hotel", "yoga", "immo", "praxis", "winkel", "florist", "legal"];
const ENDINGS = ["nl", "de", "it", "com", "pl", "se", "net", "fr"];
const SERVER_NETWORKS = ["46.105.20", "51.38.120", "94.130.55", "104.131.80", "139.59.60", "159.65.200", "178.62.30"];

/** Servers of others that were broken into: good reverse names, nothing proven. */
export const brokenServers = (addresses: Addresses, { domain, volume, ...more }: Forgery): Stream => {
  const pool = Array.from({ length: more.addresses }, (_, n): Host => {
    const networks = SERVER_NETWORKS.map((network) => network);
    const name = (ip: string): string => {
      const at = Bun.hash.crc32(ip);
      const firm = `${TRADES[at % TRADES.length]}-${TOWNS[(at >>> 5) % TOWNS.length]}${n}`;
      const host = ["mail", "srv12", "web03", "server", "vps-3241", "host"][at % 6];
      return `${host}.${firm}.${ENDINGS[(at >>> 9) % ENDINGS.length]}`;
    };
    const [host] = addresses.take(networks, 1, name);
    if (host === undefined) throw new Error("no address");
    return host;
  });
  addresses.origin(SERVER_NETWORKS, { asn: 16276, country: "FR", name: "CLOUD-OF-MANY" });
  return {
    who: "forgers on servers",
    accept: ["threat"],
    isPooled: true,
    volume,
    hosts: (_day, chance) => some(pool, more.aDay, chance.pick),
    mail: (_day, { ip }) => none(more.headerFrom ?? domain, domain, Bun.hash.crc32(ip) % 3 === 0 ? "softfail" : "fail"),
  };
};

/** Somebody with an authenticated domain of his own, and our name in From. */
export const deceiver = (
  addresses: Addresses,
  setup: {
    readonly domain: string;
    readonly evil: string;
    readonly network: string;
    readonly hosts: number;
    readonly isSigned: boolean;
    readonly volume: Stream["volume"];
  },
): Stream => {
  const { domain, evil, volume, isSigned } = setup;
  let n = 0;
  const hosts = addresses.take([setup.network], setup.hosts, (ip) =>
    isSigned ? `mta${++n}.${evil}` : `vps-${ip.replaceAll(".", "-")}.cheap-slices.net`,
  );
  addresses.origin([setup.network], { asn: 209_000, country: "NL", name: "CHEAP-SLICES" });
  const dkim: Signed[] = isSigned ? [{ domain: evil, selector: "default", result: "pass" }] : [];
  return {
    who: evil,
    // Nobody can know from reports whether it is a supplier: the owner's review is right as well.
    accept: ["threat", "unknown"],
    volume,
    hosts: () => hosts,
    mail: () => ({ headerFrom: domain, envelope: evil, spf: { domain: evil, result: "pass" }, dkim, passedOn: null }),
  };
};

export interface PassedOn {
  readonly domain: string;
  /** Whose signature it was before. */
  readonly selector: string | null;
  readonly who: string;
  readonly network: string;
  readonly hosts?: number;
  readonly nameOf: (n: number) => string;
  /** The envelope that it puts in place (SRS, or a list's own); null: it keeps ours, and SPF fails. */
  readonly envelope: string | null;
  readonly volume: Stream["volume"];
  readonly accept?: Stream["accept"];
}

const passing = (addresses: Addresses, { network, hosts: count = 1, nameOf }: PassedOn): readonly Host[] => {
  let n = 0;
  addresses.origin([network], {
    asn: 30_000 + (Bun.hash.crc32(network) % 1000),
    country: "SE",
    name: `NET-${network}`,
  });
  return addresses.take([network], count, () => nameOf(++n));
};

const envelopeOf = ({ domain, envelope }: PassedOn): Pick<Mail, "envelope" | "spf"> =>
  envelope === null
    ? { envelope: domain, spf: { domain, result: "fail" } }
    : { envelope, spf: { domain: envelope, result: "pass" } };

/** Passes mail on as it is: our signature stays good. */
export const forwarder = (addresses: Addresses, setup: PassedOn): Stream => {
  const hosts = passing(addresses, setup);
  const { domain, selector } = setup;
  return {
    who: setup.who,
    accept: setup.accept ?? ["forwarder"],
    volume: setup.volume,
    hosts: () => hosts,
    mail: () => ({
      headerFrom: domain,
      ...envelopeOf(setup),
      dkim: selector === null ? [] : [{ domain, selector, result: "pass" }],
      passedOn: "forwarder",
    }),
  };
};

/** A mailing list: it changes the subject or adds a footer, so that our signature fails; it signs itself. */
export const mailingList = (
  addresses: Addresses,
  setup: PassedOn & { readonly seals: boolean; readonly signs: boolean },
): Stream => {
  const hosts = passing(addresses, setup);
  const { domain, selector, envelope } = setup;
  const ours: Signed[] = selector === null ? [] : [{ domain, selector, result: "fail" }];
  const theirs: Signed[] =
    setup.signs && envelope !== null ? [{ domain: envelope, selector: "list", result: "pass" }] : [];
  return {
    who: setup.who,
    accept: setup.accept ?? ["forwarder"],
    volume: setup.volume,
    hosts: () => hosts,
    mail: () => ({
      headerFrom: domain,
      ...envelopeOf(setup),
      dkim: [...ours, ...theirs],
      passedOn: setup.seals ? "arc" : "list",
    }),
  };
};
