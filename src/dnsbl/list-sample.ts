import type { Random } from "../base/secrets.ts";
import { createAddressPolicy } from "../net/public-address.ts";
import type { ListResponse, ListClient } from "./list-client.ts";
import type { Blocklist, Category, TargetKind } from "./blocklist.ts";
import { isAnswered } from "./list-finding.ts";
import { mapConcurrently } from "../base/wait.ts";
import { literalName } from "./query-name.ts";

/** A target that nobody chose, in the form that stands before the zone of a list. */
export interface RandomTarget {
  readonly value: string;
  readonly prefix: string;
  /** Which half of the address space: a list of half the addresses lists one of them. */
  readonly half: 0 | 1;
}

/** What a sample of random targets says of a list. */
export interface ListSample {
  /** The target and answers that show that the list lists everything; null when none do. */
  readonly everything: { readonly value: string; readonly answer: ListResponse } | null;
  /** The answer that the list gave to nearly all of them instead of saying "listed" or "not listed"; null when it does answer. */
  readonly trouble: ListResponse | null;
  /** Whether enough of them could be asked. */
  readonly isComplete: boolean;
}

const LABEL_CHARACTERS = 16;
const LABEL_ALPHABET = "abcdefghijklmnopqrstuvwxyz";
/** RFC 5737: nobody has these addresses. */
const DOCUMENTATION_IPV4 = ["192.0.2", "198.51.100", "203.0.113"];
/** The /12 networks that the regional registries give addresses from. */
const REGISTRIES_IPV6 = [0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00];
const REGISTRY_NETWORKS = 16;
/** Real suffixes, because a list may answer for those only, and one that cannot exist (RFC 6761 §6.4). */
const SUFFIXES = ["com", "net", "org", "info", "invalid"];

/** Addresses of the first batch, and of the second when one of the first was listed; half of each in either half of the address space. */
const FIRST = 8;
const SECOND = 16;
const AT_ONCE = 4;
const SMALL_BUDGET = 2000;
const FIRST_SMALL_BUDGET = 2;
/** Of the 8 addresses of one half in the second batch: what a list of single addresses may list. */
const STRICT_MAX = 5;
/** Listings that cover whole networks of senders which did nothing: a third of IPv4 is on the largest of these lists. */
const BROAD: ReadonlySet<Category> = new Set(["policy", "netblock", "asn"]);

const policy = createAddressPolicy([]);

/** A random label of 16 letters; for domains one below `invalid`. No list can hold it. */
export const canaryPrefix = (kind: TargetKind, random: Random): string =>
  kind === "domain" ? `${randomLabel(random)}.invalid` : randomLabel(random);

const randomLabel = (random: Random): string =>
  Array.from({ length: LABEL_CHARACTERS }, () => LABEL_ALPHABET[random.integer(LABEL_ALPHABET.length)]).join("");

const targetOf = (kind: TargetKind, value: string, half: 0 | 1 = 0): RandomTarget => ({
  value,
  prefix: literalName({ kind, value }) ?? value,
  half,
});

const group = (random: Random): string => random.integer(0x1_00_00).toString(16);

/** Targets that no honest list holds: addresses reserved for documentation (RFC 5737, RFC 3849), names that nobody registered. */
export const unlistableTargets = (kind: TargetKind, random: Random): readonly RandomTarget[] => {
  switch (kind) {
    case "ipv4":
      return DOCUMENTATION_IPV4.map((network) => targetOf(kind, `${network}.${random.integer(256)}`));
    case "ipv6":
      return [targetOf(kind, `2001:db8:${Array.from({ length: 6 }, () => group(random)).join(":")}`)];
    case "domain":
      return SUFFIXES.map((suffix) => targetOf(kind, `${randomLabel(random)}.${suffix}`));
    default:
      return kind satisfies never;
  }
};

/** A random public address of one half of the address space: 0.0.0.0/1 or 128.0.0.0/1, or some of the registries' networks. */
export const randomPublicTarget = (kind: "ipv4" | "ipv6", half: 0 | 1, random: Random): RandomTarget => {
  if (kind === "ipv6") {
    const registries = half === 0 ? REGISTRIES_IPV6.slice(0, 2) : REGISTRIES_IPV6.slice(2);
    const first = (registries[random.integer(registries.length)] ?? 0x2600) + random.integer(REGISTRY_NETWORKS);
    return targetOf(kind, `${first.toString(16)}:${Array.from({ length: 7 }, () => group(random)).join(":")}`, half);
  }
  for (let tries = 0; tries < 100; tries += 1) {
    const octets = [
      half * 128 + 1 + random.integer(126),
      random.integer(256),
      random.integer(256),
      random.integer(256),
    ];
    if (policy.isAllowed(octets.join("."))) return targetOf(kind, octets.join("."), half);
  }
  return targetOf(kind, half === 0 ? "8.0.0.1" : "185.0.0.1", half);
};

/** Which half an address lies in. */
export const halfOf = (kind: TargetKind, prefix: string): 0 | 1 => {
  const labels = prefix.split(".").toReversed();
  if (kind === "ipv4") return Number(labels[0]) < 128 ? 0 : 1;
  return Number.parseInt(labels.slice(0, 4).join(""), 16) < (REGISTRIES_IPV6[2] ?? 0) ? 0 : 1;
};

const isBroad = ({ decoded }: ListResponse): boolean =>
  decoded.outcome === "listed" && decoded.listings.every(({ category }) => BROAD.has(category));

const isTrouble = ({ decoded }: ListResponse): boolean =>
  decoded.outcome === "refused" || (decoded.outcome === "failed" && decoded.cause === "unreachable");

const isAsked = ({ decoded }: ListResponse): boolean => decoded.outcome !== "failed" || decoded.cause !== "not_asked";

interface Asked {
  readonly target: RandomTarget;
  readonly answer: ListResponse;
}

/**
 * Asks a list for random targets, new ones each time, to find out whether it lists everything, or half of it.
 *
 * One listing of an address reserved for documentation, or of a name that nobody registered, shows it. A public address
 * may be listed by right, so one listing of 8 leads to 16 more, 8 in either half of the address space. The list lists
 * everything when, in one half,
 *
 * - at least 6 of the 8 more are listed. A list of half the addresses gives 8 of 8. A list with 5 % of all addresses, ten
 *   times the largest lists of single senders, gives 6 of 8 once in 3,000,000 times, one with 10 % once in 37,000;
 * - or, for `policy`, `netblock` and `asn` listings, all 12 of both batches are. Lists with 35 % of all addresses
 *   (Spamhaus PBL) give that once in 150,000 times, those with 10 % (UCEPROTECT-3) never.
 *
 * A list of one half that the first batch misses does not exist: 4 of its addresses are of either half. Budgets below
 * 2,000 queries a day are spared: 2 addresses instead of 8.
 */
export const sampleList = async (
  { client, random }: { client: ListClient; random: Random },
  list: Blocklist,
  kind: TargetKind,
): Promise<ListSample> => {
  const ask = (targets: readonly RandomTarget[]): Promise<readonly Asked[]> =>
    mapConcurrently(targets, AT_ONCE, async (target) => ({ target, answer: await client.query(list, target.prefix) }));
  const batch = (size: number): readonly RandomTarget[] =>
    kind === "domain"
      ? []
      : Array.from({ length: size }, (_, n) => randomPublicTarget(kind, n % 2 === 0 ? 0 : 1, random));

  const unlistable = await ask(unlistableTargets(kind, random));
  const impossible = unlistable.find(({ answer }) => isAnswered(answer));
  if (impossible !== undefined) return conclude(unlistable, impossible);
  const isSmall = (list.budget.queriesPerDay ?? SMALL_BUDGET) < SMALL_BUDGET;
  const isDropped = unlistable.every(({ answer }) => isTrouble(answer));
  // Who drops these drops all, and each more would be waited for in vain.
  const first = isDropped ? [] : await ask(batch(isSmall ? FIRST_SMALL_BUDGET : FIRST));
  if (!first.some(({ answer }) => isAnswered(answer))) return conclude([...unlistable, ...first], null);
  const second = await ask(batch(SECOND));
  return conclude([...unlistable, ...first, ...second], everythingOf(first, second));
};

const everythingOf = (first: readonly Asked[], second: readonly Asked[]): Asked | null => {
  for (const half of [0, 1] as const) {
    const of = (asked: readonly Asked[]) => asked.filter(({ target }) => target.half === half);
    const hits = of(second).filter(({ answer }) => isAnswered(answer));
    const strict = hits.filter(({ answer }) => !isBroad(answer));
    const isWhole = of([...first, ...second]).every(({ answer }) => isAnswered(answer));
    const [shown] = strict.length > 0 ? strict : hits;
    if (shown !== undefined && (strict.length > STRICT_MAX || isWhole)) return shown;
  }
  return null;
};

const conclude = (asked: readonly Asked[], everything: Asked | null): ListSample => {
  const answers = asked.map(({ answer }) => answer);
  const troubled = answers.filter(isTrouble);
  return {
    everything: everything === null ? null : { value: everything.target.value, answer: everything.answer },
    trouble: troubled.length * 4 >= answers.length * 3 ? (troubled[0] ?? null) : null,
    isComplete: answers.filter(isAsked).length * 2 > answers.length,
  };
};
