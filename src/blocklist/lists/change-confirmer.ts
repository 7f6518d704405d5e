import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import type { LivenessProber } from "./liveness.ts";
import { type ListClient, type TargetResponse, hasEntry, judgeNegative } from "./list-client.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import type { DecodedResponse } from "./decode.ts";
import { type DnsblHealth, isProvable } from "./health.ts";
import { literalName } from "./query-name.ts";
import { halfOf, randomPublicTarget, unlistableTargets } from "./list-sample.ts";

/** A response; `retryAtMs` (monotonic) is when an unconfirmed one should be queried again, null for any other. */
export interface ConfirmedResponse extends TargetResponse {
  readonly retryAtMs: number | null;
}

export interface ResponseToConfirm {
  readonly list: Blocklist;
  readonly kind: TargetKind;
  /** The known listing ids of the target, of any list. */
  readonly previous: readonly string[];
  /** Listing ids whose appearance or removal is no change. */
  readonly muted?: readonly string[] | undefined;
  readonly prefixes: readonly string[];
  readonly first: TargetResponse;
  readonly signal?: AbortSignal | undefined;
}

/** When to try again where the reason is not a cache. */
const RETRY_MS = 120_000;
const CHANGES_MAX = 20_000;
const CONTRADICTION = "The list gave two different responses in a row.";
const WAITS_FOR_CACHE =
  "The delisting cannot be confirmed before your resolver's cached copy of the list's test point expires; it is checked again then.";

interface FirstSeen {
  readonly atMs: number;
  /** When a cached copy of the response has expired. */
  readonly expiresMs: number;
}

/** Why a change is not confirmed, and when to query again (monotonic); null: it is confirmed. */
type Doubt = { readonly decoded: DecodedResponse; readonly retryAtMs: number } | null;

/**
 * Confirms responses that change what is known about a target, and does not trust the resolver's cache for that. Returns
 * the first response when nothing changed or all checks agree, otherwise `failed`, which leaves the known state as it is.
 *
 * - A new listing: the list must return it twice itself, by another record type or after the first response has expired
 *   in caches; its negative test points and random targets must not be listed.
 * - A delisting: the list itself must have returned its positive test point since it first said "not listed"
 *   (RFC 5782 §5), and must not have an entry for the target under another record type.
 */
export class ChangeConfirmer {
  /** When an unconfirmed change was first seen, by `keyOf`. */
  readonly #firstSeen = new BoundedMap<string, FirstSeen>(CHANGES_MAX);

  constructor(
    private readonly runtime: { clock: Clock; random: Random },
    private readonly deps: { client: ListClient; health: DnsblHealth; prober: LivenessProber },
  ) {}

  async confirm(change: ResponseToConfirm): Promise<ConfirmedResponse> {
    const { first, previous, list, prefixes, muted = [], signal } = change;
    const isCounted = (id: string): boolean => !muted.includes(id);
    const now = listingIds(first.decoded)?.filter(isCounted);
    if (now === undefined) return { ...first, retryAtMs: null };
    const before = previous.filter((id) => isCounted(id) && list.codes.some((code) => code.id === id));
    const isNew = now.some((id) => !before.includes(id));
    const isGone = before.some((id) => !now.includes(id));
    if (!isNew && !isGone) return this.#accept(change);

    const [again, doubt] = await Promise.all([
      this.deps.client.queryTarget(list, prefixes, signal),
      this.#doubt(change, isNew, isGone),
    ]);
    const evidence = { ...first, returnCodes: [...new Set([...first.returnCodes, ...again.returnCodes])] };
    const repeated = listingIds(again.decoded)?.filter(isCounted);
    const soonMs = this.runtime.clock.monotonicMs() + RETRY_MS;
    if (repeated === undefined) return { ...evidence, decoded: again.decoded, retryAtMs: soonMs };
    if (!isSame(now, repeated)) {
      this.#firstSeen.delete(keyOf(change));
      return { ...evidence, decoded: unconfirmed(CONTRADICTION), retryAtMs: soonMs };
    }
    return doubt === null ? this.#accept(change) : { ...evidence, ...doubt };
  }

  #accept(change: ResponseToConfirm): ConfirmedResponse {
    this.#firstSeen.delete(keyOf(change));
    return { ...change.first, retryAtMs: null };
  }

  async #doubt(change: ResponseToConfirm, isNew: boolean, isGone: boolean): Promise<Doubt> {
    const firstSeen = this.#recordFirstSeen(change);
    const doubts = await Promise.all([
      isNew ? this.#doubtSelectivity(change) : null,
      isNew ? this.#doubtListing(change, firstSeen) : null,
      isGone ? this.#doubtDelisting(change, firstSeen) : null,
    ]);
    return doubts.find((doubt) => doubt !== null) ?? null;
  }

  #recordFirstSeen(change: ResponseToConfirm): FirstSeen {
    const key = keyOf(change);
    const nowMs = this.runtime.clock.monotonicMs();
    const firstSeen = this.#firstSeen.get(key) ?? { atMs: nowMs, expiresMs: nowMs + change.first.ttlS * 1000 };
    this.#firstSeen.set(key, firstSeen);
    return firstSeen;
  }

  /** Whether the list lists everything: negative test points, and targets that it cannot or is unlikely to contain. */
  async #doubtSelectivity({ list, kind, first, signal }: ResponseToConfirm): Promise<Doubt> {
    const points = (list.testPoints[kind]?.negative ?? []).slice(0, 1);
    const negatives = [
      ...points.map((value) => ({ value, prefix: literalName({ kind, value }) ?? value })),
      ...unlistableTargets(kind, this.runtime.random).slice(0, 1),
    ];
    const findings = negatives.map(async ({ value, prefix }) =>
      judgeNegative(value, await this.deps.client.query(list, prefix, signal)),
    );
    const neighbour =
      kind === "domain" ? null : randomPublicTarget(kind, halfOf(kind, first.prefix), this.runtime.random);
    const other = neighbour === null ? null : await this.deps.client.query(list, neighbour.prefix, signal);
    const bad = (await Promise.all(findings)).find((finding) => finding?.state !== "healthy");
    if (bad !== undefined)
      return this.#doubtFor(bad?.reason ?? "No test point could be queried to confirm the change.");
    if (other === null || !hasEntry(other)) return null;
    // A random address may be listed rightly: a larger sample decides.
    const { health: now, isTested } = await this.deps.health.testAgain(list, kind);
    if (now.state === "healthy" || (now.state === "unknown" && !isProvable(list, kind) && isTested)) return null;
    return this.#doubtFor(now.reason ?? "The list also listed a random address.");
  }

  /** Whether the list itself returns the listing a second time. */
  async #doubtListing({ list, kind, first }: ResponseToConfirm, { expiresMs }: FirstSeen): Promise<Doubt> {
    // Cached copies of the first response have expired, so the list itself sent this one.
    if (this.runtime.clock.monotonicMs() >= expiresMs) return null;
    const { kind: existence } = await this.deps.prober.queryExistence(list, kind, {
      prefix: first.prefix,
      isFresh: false,
    });
    if (existence === "exists") return null;
    if (existence === "absent") return this.#doubtFor(CONTRADICTION, afterExpiry(first));
    const later = await this.deps.prober.queryLater(list, first.prefix, first);
    if (later === null) return this.#doubtFor("The list has not confirmed the listing yet.", afterExpiry(first));
    const isRepeated = isSame(listingIds(first.decoded) ?? [], listingIds(later.decoded) ?? []);
    return isRepeated ? null : this.#doubtFor(CONTRADICTION);
  }

  /** Whether the list itself is alive, and has no entry for any name of the target. */
  async #doubtDelisting(change: ResponseToConfirm, { atMs }: FirstSeen): Promise<Doubt> {
    const { list, kind, first } = change;
    const doubt = first.decoded.outcome === "not_listed" ? await this.#doubtAbsence(change) : null;
    if (doubt !== null || !isProvable(list, kind)) return doubt;
    const proof = await this.deps.prober.prove(list, kind, atMs);
    if (proof.kind === "alive") return null;
    if (proof.kind === "failed")
      return this.#doubtFor(proof.finding?.reason ?? "No test point could be queried to confirm the delisting.");
    return { decoded: unconfirmed(WAITS_FOR_CACHE), retryAtMs: proof.untilMs + 1000 };
  }

  async #doubtAbsence({ list, kind, prefixes, first, signal }: ResponseToConfirm): Promise<Doubt> {
    const others = await Promise.all(
      prefixes.map((prefix) => this.deps.prober.queryExistence(list, kind, { prefix, isFresh: true })),
    );
    if (others.some((other) => other.kind === "exists")) return this.#doubtFor(CONTRADICTION, afterExpiry(first));
    // Resolvers may cache NXDOMAIN for all types of a name. A random name is in no cache, so its TTL is the full one.
    const [unlistable] = unlistableTargets(kind, this.runtime.random);
    const reference = unlistable === undefined ? null : await this.deps.client.query(list, unlistable.prefix, signal);
    const fullTtlS = reference?.decoded.outcome === "not_listed" ? reference.ttlS - 1 : 0;
    const isFresh =
      first.ttlS >= fullTtlS || others.every((other) => other.kind === "absent" && other.ttlS >= fullTtlS);
    return isFresh
      ? null
      : this.#doubtFor("The delisting came from your resolver's cache; it is checked again.", afterExpiry(first));
  }

  #doubtFor(reason: string, inMs = RETRY_MS): Doubt {
    return { decoded: unconfirmed(reason), retryAtMs: this.runtime.clock.monotonicMs() + inMs };
  }
}

/** Until a cached copy of a response has expired. */
const afterExpiry = ({ ttlS }: TargetResponse): number => (ttlS > 0 ? (ttlS + 1) * 1000 : RETRY_MS);

/** The listings now returned belong to the key: another response is another change. */
const keyOf = ({ list, prefixes, first }: ResponseToConfirm): string =>
  [list.id, ...prefixes, ...(listingIds(first.decoded) ?? []).toSorted()].join(" ");

const unconfirmed = (reason: string): DecodedResponse => ({ outcome: "failed", cause: "unconfirmed", reason });

/** The listing ids of a response; null when it says nothing about the target. */
const listingIds = (decoded: DecodedResponse): readonly string[] | null => {
  if (decoded.outcome === "listed") return decoded.listings.map(({ id }) => id);
  return decoded.outcome === "not_listed" ? [] : null;
};

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((id) => b.includes(id));
