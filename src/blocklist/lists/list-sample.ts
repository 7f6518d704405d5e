import type { Random } from "../../foundation/base/secrets.ts";
import { createAddressPolicy } from "../../foundation/net/public-address.ts";
import { type ListResponse, type ListClient, hasEntry } from "./list-client.ts";
import type { Blocklist, Category, TargetKind } from "./blocklist.ts";
import { mapConcurrently } from "../../foundation/base/wait.ts";
import { literalName } from "./query-name.ts";

/** A target chosen at random. */
export interface RandomTarget {
  readonly value: string;
  /** What precedes the zone in the query name. */
  readonly prefix: string;
  /** Which half of the address space: a list that lists half of all addresses lists one of them. */
  readonly half: 0 | 1;
}

/** What queries for random targets show about a list. */
export interface ListSample {
  /** The target and response that show that the list lists everything; null when none do. */
  readonly everything: { readonly value: string; readonly response: ListResponse } | null;
  /** The failure that the list returned for nearly all of them; null when it responds. */
  readonly failure: ListResponse | null;
  /** Whether enough queries were sent. */
  readonly isComplete: boolean;
}

const LABEL_CHARACTERS = 16;
const LABEL_ALPHABET = "abcdefghijklmnopqrstuvwxyz";
/** Documentation addresses, assigned to nobody (RFC 5737). */
const DOCUMENTATION_IPV4 = ["192.0.2", "198.51.100", "203.0.113"];
/** The first /12 networks from which the regional registries assign addresses. */
const REGISTRIES_IPV6 = [0x2400, 0x2600, 0x2800, 0x2a00, 0x2c00];
const REGISTRY_NETWORKS = 16;
/** Real suffixes, because a list may respond for those only, and one that cannot exist (RFC 6761 §6.4). */
const SUFFIXES = ["com", "net", "org", "info", "invalid"];

/** Addresses of the first batch, and of the second when one of the first was listed; half of each in either half of the address space. */
const FIRST = 8;
const SECOND = 16;
const AT_ONCE = 4;
const SMALL_BUDGET = 2000;
const FIRST_SMALL_BUDGET = 2;
/** Of the 8 addresses of one half in the second batch: what a list of single addresses may list. */
const STRICT_MAX = 5;
/** Categories that list whole networks, also of innocent senders: the largest of these lists contains a third of IPv4. */
const BROAD: ReadonlySet<Category> = new Set(["policy", "netblock", "asn"]);

const policy = createAddressPolicy([]);

/** A random label of 16 letters, below `invalid` for domain lists. No list can contain it. */
export const canaryPrefix = (kind: TargetKind, random: Random): string =>
  kind === "domain" ? `${randomLabel(random)}.invalid` : randomLabel(random);

const randomLabel = (random: Random) =>
  Array.from({ length: LABEL_CHARACTERS }, () => LABEL_ALPHABET[random.integer(LABEL_ALPHABET.length)]).join("");

const targetOf = (kind: TargetKind, value: string, half: 0 | 1 = 0): RandomTarget => ({
  value,
  prefix: literalName({ kind, value }) ?? value,
  half,
});

const group = (random: Random) => random.integer(0x1_00_00).toString(16);

/** Targets that no working list contains: documentation addresses (RFC 5737, RFC 3849) and unregistered names. */
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

const isBroad = ({ decoded }: ListResponse) =>
  decoded.outcome === "listed" && decoded.listings.every(({ category }) => BROAD.has(category));

const isFailure = ({ decoded }: ListResponse) =>
  decoded.outcome === "refused" || (decoded.outcome === "failed" && decoded.cause === "unreachable");

const isSent = ({ decoded }: ListResponse) => decoded.outcome !== "failed" || decoded.cause !== "not_sent";

interface Probe {
  readonly target: RandomTarget;
  readonly response: ListResponse;
}

/**
 * Queries a list for random targets, new ones each time, to find out whether it lists everything, or half of everything.
 *
 * One listed documentation address or unregistered name shows it. A public address may be listed rightly, so one listing
 * among 8 leads to 16 more, 8 in each half of the address space. The list lists everything when, in one half,
 *
 * - at least 6 of the 8 more are listed. A list of half of all addresses gives 8 of 8. A list with 5 % of all addresses,
 *   ten times the largest lists of single senders, gives 6 of 8 once in 3,000,000 times, one with 10 % once in 37,000;
 * - or, for `policy`, `netblock` and `asn` listings, all 12 of both batches are. Lists with 35 % of all addresses
 *   (Spamhaus PBL) give that once in 150,000 times, those with 10 % (UCEPROTECT-3) never.
 *
 * 4 addresses of the first batch are in each half. Budgets below 2,000 queries a day get 2 addresses instead of 8.
 */
export const sampleList = async (
  { client, random }: { client: Pick<ListClient, "query">; random: Random },
  list: Blocklist,
  kind: TargetKind,
): Promise<ListSample> => {
  const probe = (targets: readonly RandomTarget[]): Promise<readonly Probe[]> =>
    mapConcurrently(targets, AT_ONCE, async (target) => ({
      target,
      response: await client.query(list, target.prefix),
    }));
  const batch = (size: number): readonly RandomTarget[] =>
    kind === "domain"
      ? []
      : Array.from({ length: size }, (_, n) => randomPublicTarget(kind, n % 2 === 0 ? 0 : 1, random));

  const unlistable = await probe(unlistableTargets(kind, random));
  const impossible = unlistable.find(({ response }) => hasEntry(response));
  if (impossible !== undefined) return summarize(unlistable, impossible);
  const isSmall = (list.budget.queriesPerDay ?? SMALL_BUDGET) < SMALL_BUDGET;
  // A server that drops all of these drops the rest as well; do not wait for every timeout.
  const isDropped = unlistable.every(({ response }) => isFailure(response));
  const first = isDropped ? [] : await probe(batch(isSmall ? FIRST_SMALL_BUDGET : FIRST));
  if (!first.some(({ response }) => hasEntry(response))) return summarize([...unlistable, ...first], null);
  const second = await probe(batch(SECOND));
  return summarize([...unlistable, ...first, ...second], findEverything(first, second));
};

const findEverything = (first: readonly Probe[], second: readonly Probe[]): Probe | null => {
  for (const half of [0, 1] as const) {
    const inHalf = (probes: readonly Probe[]) => probes.filter(({ target }) => target.half === half);
    const hits = inHalf(second).filter(({ response }) => hasEntry(response));
    const strict = hits.filter(({ response }) => !isBroad(response));
    const isWhole = inHalf([...first, ...second]).every(({ response }) => hasEntry(response));
    const [example] = strict.length > 0 ? strict : hits;
    if (example !== undefined && (strict.length > STRICT_MAX || isWhole)) return example;
  }
  return null;
};

const summarize = (probes: readonly Probe[], everything: Probe | null): ListSample => {
  const responses = probes.map(({ response }) => response);
  const failures = responses.filter(isFailure);
  return {
    everything: everything === null ? null : { value: everything.target.value, response: everything.response },
    failure: failures.length * 4 >= responses.length * 3 ? (failures[0] ?? null) : null,
    isComplete: responses.filter(isSent).length * 2 > responses.length,
  };
};
