import { BoundedMap } from "../foundation/base/bounded-map.ts";
import { isIP } from "node:net";
import type { Clock } from "../foundation/base/clock.ts";
import { type Blocklist, isEnabled, severityOf } from "../blocklist/lists/blocklist.ts";
import type { Dnsbl } from "../blocklist/lists/open.ts";
import type { ListOutcome } from "../blocklist/lists/lookup.ts";
import type { Target } from "../blocklist/lists/query-name.ts";
import type { DnsblEvidence, DomainEvidence } from "./evidence.ts";

/** A verdict does not wait longer than this for the blocklists; what has not been received by then is unknown. */
const WAIT_MS_MAX = 2_000;
/** Longest wait for a slot at a list, so that its response is still in time: without one the lookup fails at once. */
export const DNSBL_TURN_WAIT_MS = 1_000;
/** Addresses of mail hosts that are looked up; the first ones are those that are probed. */
const ADDRESSES_MAX = 3;
/** Many addresses of one domain need one lookup: responses are cached for this long. */
const CACHE_MS = 10 * 60_000;
const CACHE_ENTRIES_MAX = 20_000;

const SEVERE: ReadonlySet<string> = new Set(["critical", "high"]);

interface TargetListings {
  readonly subject: string;
  readonly outcomes: readonly ListOutcome[];
}

interface CachedListings {
  readonly listings: Promise<TargetListings>;
  readonly atMs: number;
}

/** Looks domains and their mail hosts up in the DNS blocklists that are on by default and critical or high. */
export class BlocklistCheck {
  readonly #dnsbl: Dnsbl;
  readonly #lists: readonly Blocklist[];
  readonly #cache = new BoundedMap<string, CachedListings>(CACHE_ENTRIES_MAX);

  constructor(
    private readonly clock: Clock,
    { dnsbl, lists }: { readonly dnsbl: Dnsbl; readonly lists: readonly Blocklist[] },
  ) {
    this.#dnsbl = dnsbl;
    this.#lists = lists.filter((list) => isEnabled(list) && SEVERE.has(severityOf(list)));
  }

  /**
   * Never rejects; `unknown` when no list gave a response. Returns after two seconds with what was received by then. Null
   * for a domain without mail hosts.
   */
  async check(domain: DomainEvidence): Promise<DnsblEvidence | null> {
    if (domain.outcome !== "mail_hosts") return null;
    return summarize(await Promise.all(targetsOf(domain).map((target) => this.#listingsOf(target))));
  }

  #listingsOf(target: Target): Promise<TargetListings> {
    const key = target.value;
    const cached = this.#cache.get(key);
    if (cached !== undefined && this.clock.monotonicMs() - cached.atMs < CACHE_MS) return cached.listings;
    const entry = {
      atMs: this.clock.monotonicMs(),
      listings: this.#lookUp(target).then((listings) => {
        if (!this.#isComplete(listings) && this.#cache.get(key) === entry) this.#cache.delete(key);
        return listings;
      }),
    };
    this.#cache.set(key, entry);
    return entry.listings;
  }

  async #lookUp(target: Target): Promise<TargetListings> {
    const outcomes: ListOutcome[] = [];
    const timeout = new AbortController();
    const all = Promise.all(
      this.#lists.map(async (list) => {
        outcomes.push(await this.#dnsbl.lookup.check(target, list, { previous: [], signal: timeout.signal }));
      }),
    );
    await new Promise<void>((resolve, reject) => {
      const cancel = this.clock.after(WAIT_MS_MAX, () => {
        timeout.abort();
        resolve();
      });
      all.then(() => resolve(), reject).finally(cancel);
    });
    return { subject: target.value, outcomes: [...outcomes] };
  }

  #isComplete({ outcomes }: TargetListings): boolean {
    return outcomes.length === this.#lists.length && outcomes.some(isResponse);
  }
}

const targetsOf = ({ name, hosts }: DomainEvidence): Target[] => {
  const addresses = hosts.flatMap((host) =>
    host.addresses.filter(({ allowed }) => allowed).map(({ address }) => address),
  );
  const isDomain = !name.startsWith("[");
  return [
    ...(isDomain ? [{ kind: "domain" as const, value: name }] : []),
    ...[...new Set(addresses)]
      .slice(0, ADDRESSES_MAX)
      .map((value) => ({ kind: isIP(value) === 6 ? ("ipv6" as const) : ("ipv4" as const), value })),
  ];
};

const isResponse = ({ outcome }: ListOutcome): boolean => outcome === "listed" || outcome === "not_listed";

/** A severe list has harmless entries too (a range that should not send mail): they do not count against an address. */
const summarize = (looked: readonly TargetListings[]): DnsblEvidence => {
  const listings = looked.flatMap(({ subject, outcomes }) =>
    outcomes
      .flatMap(({ listings: found }) => found.filter(({ severity }) => SEVERE.has(severity)))
      .map(({ id }) => ({ listing: id, subject })),
  );
  if (listings.length > 0) return { outcome: "listed", listings };
  return { outcome: looked.some(({ outcomes }) => outcomes.some(isResponse)) ? "clean" : "unknown", listings: [] };
};
