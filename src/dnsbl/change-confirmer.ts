import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/secrets.ts";
import type { LivenessProber } from "./liveness.ts";
import type { ListClient, TargetResponse } from "./list-client.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import type { DecodedResponse } from "./decode.ts";
import { isAnswered, judgeNegative } from "./list-finding.ts";
import type { DnsblHealth } from "./health.ts";
import { isProvable } from "./list-test.ts";
import { literalName } from "./query-name.ts";
import { halfOf, randomPublicTarget, type RandomTarget, unlistableTargets } from "./list-sample.ts";

/** An answer, and when it is worth asking again for one that could not be confirmed (monotonic); null otherwise. */
export interface ConfirmedResponse extends TargetResponse {
  readonly retryAtMs: number | null;
}

export interface ResponseToConfirm {
  readonly list: Blocklist;
  readonly kind: TargetKind;
  /** The listing ids known before, of whatever list. */
  readonly previous: readonly string[];
  /** Listing ids whose coming and going is no change. */
  readonly muted?: readonly string[] | undefined;
  readonly prefixes: readonly string[];
  readonly first: TargetResponse;
  /** Puts the same query once more. */
  queryAgain(): Promise<TargetResponse>;
  readonly signal?: AbortSignal | undefined;
}

export interface ConfirmDeps {
  readonly client: ListClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly health: DnsblHealth;
  readonly prober: LivenessProber;
}

/** What is in doubt for another reason than a cache may be settled soon. */
const RETRY_MS = 120_000;
const CHANGES_MAX = 20_000;
const TWO_ANSWERS = "The list gave two different answers in a row.";
const WAITS_FOR_CACHE =
  "The delisting waits until the list's test entry has run out of your resolver's cache: then the list itself can confirm that it is alive.";

interface FirstSight {
  readonly atMs: number;
  /** When a resolver's copy of the answer has run out. */
  readonly untilMs: number;
}

type Doubt = { readonly decoded: DecodedResponse; readonly retryAtMs: number } | null;

/**
 * Confirms answers that change what was known, past the cache of the resolver. The first answer when nothing changed or
 * everything agrees; else `failed`, which leaves what was known as it was.
 *
 * - A new listing: the list must say so twice itself, by another record type or after the first answer has run out of
 *   caches; its negative test points and random targets must not be listed.
 * - A delisting: the list itself must have given its positive test point since it first said "not listed" (RFC 5782 §5),
 *   and must not have an entry for the target by another record type.
 */
export const createChangeConfirmer = (deps: ConfirmDeps) => {
  const { client, clock, random, health, prober } = deps;
  /** List and names → when a change that is not confirmed was first seen. */
  const firstSeen = new Map<string, FirstSight>();

  const seenFirst = (key: string, { ttlS }: TargetResponse): FirstSight => {
    const nowMs = clock.monotonicMs();
    const sight = firstSeen.get(key) ?? { atMs: nowMs, untilMs: nowMs + ttlS * 1000 };
    firstSeen.delete(key);
    for (const oldest of firstSeen.keys()) {
      if (firstSeen.size < CHANGES_MAX) break;
      firstSeen.delete(oldest);
    }
    firstSeen.set(key, sight);
    return sight;
  };

  const doubt = (reason: string, inMs: number): Doubt => ({
    decoded: unconfirmed(reason),
    retryAtMs: clock.monotonicMs() + inMs,
  });
  /** When the resolver's copy of an answer has run out. */
  const afterCopy = ({ ttlS }: TargetResponse): number => (ttlS > 0 ? (ttlS + 1) * 1000 : RETRY_MS);

  /** Negative test points and targets of which the list can hold none, or hardly any. */
  const doubtOfEverything = async ({ list, kind, first, signal }: ResponseToConfirm): Promise<Doubt> => {
    const points = (list.testPoints[kind]?.negative ?? []).slice(0, 1);
    const [unlistable] = unlistableTargets(kind, random);
    const known: readonly RandomTarget[] = [
      ...points.map((value) => ({ value, prefix: literalName({ kind, value }) ?? value, half: 0 as const })),
      ...(unlistable === undefined ? [] : [unlistable]),
    ];
    const findings = known.map(async ({ value, prefix }) =>
      judgeNegative(value, await client.query(list, prefix, signal)),
    );
    const neighbour = kind === "domain" ? null : randomPublicTarget(kind, halfOf(kind, first.prefix), random);
    const other = neighbour === null ? null : await client.query(list, neighbour.prefix, signal);
    const bad = (await Promise.all(findings)).find((finding) => finding?.state !== "healthy");
    if (bad !== undefined) return doubt(bad?.reason ?? "The change could not be confirmed by a test point.", RETRY_MS);
    if (other === null || !isAnswered(other)) return null;
    // A random address may be listed by right: a larger sample decides.
    const { health: now, isTested } = await health.testAgain(list, kind);
    if (now.state === "healthy" || (now.state === "unknown" && !isProvable(list, kind) && isTested)) return null;
    return doubt(now.reason ?? "The list listed a random address as well.", RETRY_MS);
  };

  /** Whether the list itself says "listed" a second time. */
  const doubtOfListing = async ({ list, kind, first }: ResponseToConfirm, { untilMs }: FirstSight): Promise<Doubt> => {
    // No copy of the first answer was left, so the list gave this one.
    if (clock.monotonicMs() >= untilMs) return null;
    const { kind: existence } = await prober.queryExistence(list, kind, { prefix: first.prefix, isFresh: false });
    if (existence === "exists") return null;
    if (existence === "absent") return doubt(TWO_ANSWERS, afterCopy(first));
    const later = await prober.queryLater(list, first.prefix, first);
    if (later !== null) return isSame(idsOf(first), idsOf(later)) ? null : doubt(TWO_ANSWERS, RETRY_MS);
    return doubt("The list has not confirmed the listing yet.", afterCopy(first));
  };

  /** Whether the list itself says now that it has no entry for any name of the target. */
  const doubtOfAbsence = async ({ list, kind, prefixes, first, signal }: ResponseToConfirm): Promise<Doubt> => {
    const others = await Promise.all(
      prefixes.map((prefix) => prober.queryExistence(list, kind, { prefix, isFresh: true })),
    );
    if (others.some((other) => other.kind === "exists")) return doubt(TWO_ANSWERS, afterCopy(first));
    // Resolvers may keep NXDOMAIN for all types of a name. Nobody has asked for a random name: its time to live is whole.
    const [unlistable] = unlistableTargets(kind, random);
    const reference = unlistable === undefined ? null : await client.query(list, unlistable.prefix, signal);
    const wholeS = reference?.decoded.outcome === "not_listed" ? reference.ttlS - 1 : 0;
    const isFresh = first.ttlS >= wholeS || others.every((other) => other.kind === "absent" && other.ttlS >= wholeS);
    return isFresh
      ? null
      : doubt("The delisting comes from your resolver's cache; the list is asked again.", afterCopy(first));
  };

  /** Whether the list itself is there to say "not listed", and says so of all names of the target. */
  const doubtOfDelisting = async (change: ResponseToConfirm, { atMs }: FirstSight): Promise<Doubt> => {
    const { list, kind, first } = change;
    const absence = first.decoded.outcome === "not_listed" ? await doubtOfAbsence(change) : null;
    if (absence !== null || !isProvable(list, kind)) return absence;
    const proof = await prober.prove(list, kind, atMs);
    if (proof.kind === "alive") return null;
    if (proof.kind === "failed")
      return doubt(proof.finding?.reason ?? "The delisting could not be confirmed by a test point.", RETRY_MS);
    return { decoded: unconfirmed(WAITS_FOR_CACHE), retryAtMs: proof.untilMs + 1000 };
  };

  const doubtOf = async (change: ResponseToConfirm, isNew: boolean, isGone: boolean): Promise<Doubt> => {
    const sight = seenFirst(keyOf(change), change.first);
    const doubts = await Promise.all([
      isNew ? doubtOfEverything(change) : null,
      isNew ? doubtOfListing(change, sight) : null,
      isGone ? doubtOfDelisting(change, sight) : null,
    ]);
    return doubts.find((found) => found !== null) ?? null;
  };

  return {
    async confirm(change: ResponseToConfirm): Promise<ConfirmedResponse> {
      const { first, previous, list, muted = [] } = change;
      const counts = (id: string): boolean => !muted.includes(id);
      const now = listingIds(first.decoded)?.filter(counts);
      if (now === undefined) return { ...first, retryAtMs: null };
      const before = previous.filter((id) => counts(id) && list.codes.some((code) => code.id === id));
      const isNew = now.some((id) => !before.includes(id));
      const isGone = before.some((id) => !now.includes(id));
      if (!isNew && !isGone) {
        firstSeen.delete(keyOf(change));
        return { ...first, retryAtMs: null };
      }
      const [again, found] = await Promise.all([change.queryAgain(), doubtOf(change, isNew, isGone)]);
      const evidence = { ...first, returnCodes: [...new Set([...first.returnCodes, ...again.returnCodes])] };
      const repeated = listingIds(again.decoded)?.filter(counts);
      const soonMs = clock.monotonicMs() + RETRY_MS;
      if (repeated === undefined) return { ...evidence, decoded: again.decoded, retryAtMs: soonMs };
      if (!isSame(now, repeated)) {
        firstSeen.delete(keyOf(change));
        const decoded = unconfirmed(TWO_ANSWERS);
        return { ...evidence, decoded, retryAtMs: soonMs };
      }
      if (found !== null) return { ...evidence, ...found };
      firstSeen.delete(keyOf(change));
      return { ...first, retryAtMs: null };
    },
  };
};

export type ChangeConfirmer = ReturnType<typeof createChangeConfirmer>;

/** A change of a target on a list: what the list says now belongs to it, so that another answer begins anew. */
const keyOf = ({ list, prefixes, first }: ResponseToConfirm): string =>
  [list.id, ...prefixes, ...(listingIds(first.decoded) ?? []).toSorted()].join(" ");

const unconfirmed = (reason: string): DecodedResponse => ({ outcome: "failed", cause: "unconfirmed", reason });

const idsOf = ({ decoded }: Pick<TargetResponse, "decoded">): readonly string[] => listingIds(decoded) ?? [];

/** The ids an answer lists; null when it says nothing about the target. */
const listingIds = (decoded: DecodedResponse): readonly string[] | null => {
  if (decoded.outcome === "listed") return decoded.listings.map(({ id }) => id);
  return decoded.outcome === "not_listed" ? [] : null;
};

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((id) => b.includes(id));
