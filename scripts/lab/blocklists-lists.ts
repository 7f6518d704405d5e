import { SUFFIX } from "./hosts.ts";

type Kind = "ipv4" | "ipv6" | "domain";
export type Outcome = "listed" | "not_listed" | "refused" | "failed" | "skipped";

/** Answers for rbldnsd: a kind of dataset, and its lines. */
export interface Dataset {
  readonly type: "ip4set" | "ip6trie" | "dnset";
  readonly lines: readonly string[];
}

/** A list of the lab, how it behaves, and what is true of it. */
export interface LabList {
  readonly id: string;
  readonly kinds: readonly Kind[];
  readonly zone: string;
  /** Null where another server than rbldnsd, or nobody, answers for the zone. */
  readonly datasets: readonly Dataset[] | null;
  /** Answer to listing id. */
  readonly codes: Readonly<Record<string, string>>;
  readonly form?: "host" | "registrable" | "both";
  readonly key?: string;
  readonly refusalOutcomes?: readonly string[];
  readonly ignores?: readonly string[];
  readonly disabled?: true;
  /** The health that it has to be found in. */
  readonly health: "healthy" | "wildcard" | "silent" | "refused" | "unreachable";
  /** What must come of every target of its kinds that `truth` does not name. */
  readonly otherwise: Outcome;
  /** By target: listing ids, or what else must come of it. */
  readonly truth: Readonly<Record<string, readonly string[] | Outcome>>;
}

/** What is asked about. All of it is public in form; nothing of it leaves the machine. */
export const TARGETS = {
  clean4: "100.20.30.40",
  spam4: "100.20.30.41",
  both4: "100.20.30.42",
  strange4: "100.20.30.43",
  ignored4: "100.20.30.44",
  refused4: "100.20.30.45",
  mapped4: "::ffff:100.20.30.41",
  clean6: "2a00:1450::40",
  spam6: "2a00:1450::41",
  clean: "clean-name.com",
  host: "mail.bad-host.com",
  brand: "www.bad-brand.co.uk",
  bits: "bit-sums.net",
  idn: "bücher-böse.de",
} as const;

const ADDRESSES_FOUR = ["127.0.0.2 :127.0.0.2:Test entry"];
const NAMES = ["test :127.0.1.2:Test entry"];
const ip4 = (...lines: string[]): Dataset => ({ type: "ip4set", lines });
const names = (...lines: string[]): Dataset => ({ type: "dnset", lines });
/** rbldnsd takes no network of 0 bits. */
const HALVES = ["0.0.0.0/1", "128.0.0.0/1"];
const everything = (answer: string): readonly Dataset[] => [
  ip4(...HALVES.map((half) => `${half} :${answer}:Everything`)),
];

const SPAM = { "127.0.0.2": "spam" };
const zoneOf = (id: string): string => `${id}.rbl.${SUFFIX}`;
const healthy = { health: "healthy", otherwise: "not_listed" } as const;

const good = (
  list: Omit<LabList, "zone" | "health" | "otherwise"> & { readonly datasets: readonly Dataset[] },
): LabList => ({ zone: zoneOf(list.id), ...healthy, ...list });

/** A list of which nothing may be believed. */
const bad = (
  id: string,
  health: LabList["health"],
  more: Partial<LabList> & Pick<LabList, "datasets"> & { readonly otherwise: Outcome },
): LabList => ({ id, kinds: ["ipv4"], zone: zoneOf(id), codes: SPAM, health, truth: {}, ...more });

const REFUSALS = { misspelt: "127.255.255.252", resolver: "127.255.255.254", volume: "127.255.255.255" };

export const KEY = "labsecretkey0123456789";
/** Zones of unbound's own: one answers every name as listed, one leads to a page that sells the domain. */
export const WILD_NAME_ZONE = `wildname.${SUFFIX}`;
export const PARKED_ZONE = `parked.${SUFFIX}`;
/** The list in front of which somebody takes his time. */
export const SLOW_ZONE = zoneOf("slow");

/** Every behaviour of lists that the binary has to see through. */
export const LAB_LISTS: readonly LabList[] = [
  good({
    id: "ip4",
    kinds: ["ipv4"],
    codes: { "127.0.0.2": "spam", "127.0.0.4-127.0.0.7": "exploit", "127.0.0.10": "policy" },
    datasets: [
      ip4(
        ...ADDRESSES_FOUR,
        `${TARGETS.spam4} :127.0.0.2:Spam from $`,
        `${TARGETS.both4} :127.0.0.2:Spam`,
        `${TARGETS.strange4} :127.0.0.99:Strange`,
      ),
      ip4(`${TARGETS.both4} :127.0.0.6:Exploit`),
    ],
    truth: {
      spam4: ["spam"],
      mapped4: ["spam"],
      both4: ["exploit", "spam"],
      strange4: "failed",
    },
  }),
  good({
    id: "ip6",
    kinds: ["ipv6"],
    codes: SPAM,
    datasets: [{ type: "ip6trie", lines: ["::ffff:7f00:2 :127.0.0.2:Test entry", `${TARGETS.spam6} :127.0.0.2:Spam`] }],
    truth: { spam6: ["spam"] },
  }),
  good({
    id: "both",
    kinds: ["ipv4", "ipv6"],
    codes: SPAM,
    datasets: [
      ip4(...ADDRESSES_FOUR, `${TARGETS.spam4} :127.0.0.2:Spam`),
      { type: "ip6trie", lines: ["::ffff:7f00:2 :127.0.0.2:Test entry", "2a00:1450::/64 :127.0.0.2:Spam"] },
    ],
    truth: { spam4: ["spam"], mapped4: ["spam"], spam6: ["spam"], clean6: ["spam"] },
  }),
  good({
    id: "hosts",
    kinds: ["domain"],
    codes: { "127.0.1.2": "spam", "127.0.1.4": "phish" },
    form: "host",
    datasets: [names(...NAMES, ".bad-host.com :127.0.1.4:Phish", "bad-brand.co.uk :127.0.1.2:Spam")],
    truth: { host: ["phish"] },
  }),
  good({
    id: "brands",
    kinds: ["domain"],
    codes: { "127.0.1.2": "spam" },
    form: "registrable",
    datasets: [
      names(
        ...NAMES,
        "bad-brand.co.uk :127.0.1.2:Spam",
        `${new URL(`http://${TARGETS.idn}`).hostname} :127.0.1.2:Spam`,
        "mail.bad-host.com :127.0.1.2:",
      ),
    ],
    truth: { brand: ["spam"], idn: ["spam"] },
  }),
  good({
    id: "forms",
    kinds: ["domain"],
    codes: { "127.0.1.2": "spam", "127.0.1.4": "phish" },
    form: "both",
    datasets: [
      names(
        ...NAMES,
        "bad-brand.co.uk :127.0.1.2:Spam",
        "www.bad-brand.co.uk :127.0.1.4:Phish",
        "mail.bad-host.com :127.0.1.4:",
      ),
    ],
    truth: { brand: ["phish", "spam"], host: ["phish"] },
  }),
  good({
    id: "bits",
    kinds: ["domain"],
    codes: { "bit 8": "phish", "bit 16": "malware", "bit 64": "abuse", "bit 128": "cracked" },
    datasets: [
      names("test :127.0.0.254:Test entry", `${TARGETS.bits} :127.0.0.24:Two`, "clean-name.com :127.0.0.1:No"),
    ],
    truth: { bits: ["malware", "phish"], clean: "refused" },
  }),
  good({
    id: "ignores",
    kinds: ["ipv4"],
    codes: SPAM,
    ignores: ["127.0.0.200"],
    datasets: [ip4(...ADDRESSES_FOUR, `${TARGETS.ignored4} :127.0.0.200:White`)],
    truth: {},
  }),
  good({
    id: "moody",
    kinds: ["ipv4"],
    codes: SPAM,
    datasets: [ip4(...ADDRESSES_FOUR, `${TARGETS.refused4} :127.255.255.254:Not this one`)],
    truth: { refused4: "refused" },
  }),
  good({
    id: "keyed",
    kinds: ["ipv4"],
    codes: SPAM,
    key: KEY,
    datasets: [ip4(...ADDRESSES_FOUR, `${TARGETS.spam4} :127.0.0.2:Key ${KEY} says spam`)],
    truth: { spam4: ["spam"], mapped4: ["spam"] },
  }),
  good({
    id: "slow",
    kinds: ["ipv4"],
    codes: SPAM,
    datasets: [ip4(...ADDRESSES_FOUR, `${TARGETS.spam4} :127.0.0.2:Spam`)],
    truth: { spam4: ["spam"], mapped4: ["spam"] },
  }),
  { ...bad("disabled", "healthy", { datasets: everything("127.0.0.2"), otherwise: "skipped" }), disabled: true },
  bad("wildcarded", "wildcard", { datasets: everything("127.0.0.2"), otherwise: "failed" }),
  bad("wildname", "wildcard", {
    zone: WILD_NAME_ZONE,
    kinds: ["domain"],
    datasets: null,
    codes: { "127.0.1.2": "spam" },
    otherwise: "failed",
  }),
  bad("emptied", "silent", { datasets: [ip4("127.0.0.3 :127.0.0.2:Another")], otherwise: "failed" }),
  bad("parked", "wildcard", { datasets: null, zone: PARKED_ZONE, otherwise: "failed" }),
  bad("hijacked", "wildcard", { datasets: everything("192.0.2.80"), otherwise: "failed" }),
  ...Object.entries(REFUSALS).map(([id, answer]) =>
    bad(id, "refused", { datasets: everything(answer), otherwise: "refused" }),
  ),
  bad("customary", "refused", { datasets: everything("127.0.0.1"), otherwise: "refused" }),
  bad("rcode", "refused", {
    datasets: null,
    zone: `bl.refused.${SUFFIX}`,
    refusalOutcomes: ["refused"],
    otherwise: "refused",
  }),
  bad("servfail", "unreachable", { datasets: null, zone: `bl.servfail.${SUFFIX}`, otherwise: "failed" }),
  bad("silent", "unreachable", { datasets: null, zone: `bl.silentdns.${SUFFIX}`, otherwise: "failed" }),
];

/** The zone under which the list's data stand: behind the key, where it has one. */
export const servedZone = ({ key, zone }: LabList): string => (key === undefined ? zone : `${key}.${zone}`);
