import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { wait } from "../../foundation/base/wait.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import {
  type ListClient,
  type ListResponse,
  type PresenceType,
  PRESENCE_TYPES,
  judgePositive,
  type ListFinding,
} from "./list-client.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import { literalName } from "./query-name.ts";
import { canaryPrefix } from "./list-sample.ts";

/**
 * Whether a list responds itself.
 *
 * - `alive`: the list itself returned its positive test point since the requested time.
 * - `failed`: the test point is gone; `finding` is null when no query was sent.
 * - `unproven`: only a cached copy says so. At `untilMs` (monotonic) the copy has expired.
 */
export type Liveness =
  | { readonly kind: "alive" }
  | { readonly kind: "failed"; readonly finding: ListFinding | null }
  | { readonly kind: "unproven"; readonly untilMs: number };

/** Whether a name exists, by another record type than A. `undecided`: the type does not show it on this list, or no response. */
export interface Existence {
  readonly kind: "exists" | "absent" | "undecided";
  /** For an existing name: whether the response came from the list, not from a cache. */
  readonly isFresh: boolean;
  readonly ttlS: number;
}

/** One list and kind of target, as the methods below pass it on. */
interface Subject {
  readonly list: Blocklist;
  readonly kind: TargetKind;
  /** Monotonic time at which the list itself returned its test point. */
  aliveMs: number;
  running: Promise<Liveness> | null;
  /** By type group: whether the type distinguishes existing names from others on this list; absent while unknown. */
  readonly isReliable: Map<TypeGroup, boolean>;
  /** Groups that returned NXDOMAIN for the test point while its A record may have been a cached copy. */
  readonly doubtful: Set<TypeGroup>;
}

/** Servers treat all types without records alike, so one stands for the others. */
type TypeGroup = "TXT" | "others";
const groupOf = (type: PresenceType) => (type === "TXT" ? "TXT" : "others");

const UNDECIDED: Existence = { kind: "undecided", isFresh: false, ttlS: 0 };
const ATTEMPTS_MAX = 3;
/** After this time the TTL of a cached copy is at least a second lower, however it was rounded. */
const LATER_MS = 2100;
const RETRY_MS = 60_000;

/** Proves that a list itself responds, and finds out whether names exist, without being misled by resolver caches. */
export class LivenessProber {
  readonly #freshness: ResponseFreshness;
  readonly #subjects = new Map<string, Subject>();

  constructor(
    private readonly client: ListClient,
    private readonly runtime: { clock: Clock; random: Random },
  ) {
    this.#freshness = new ResponseFreshness(runtime.clock);
  }

  /**
   * Proves that the list has returned its positive test point since `sinceMs` (monotonic); it must have one of this kind.
   * Concurrent calls share one attempt.
   */
  async prove(list: Blocklist, kind: TargetKind, sinceMs: number): Promise<Liveness> {
    const subject = this.#subjectOf(list, kind);
    let proof: Liveness = { kind: "unproven", untilMs: this.runtime.clock.monotonicMs() + RETRY_MS };
    // An attempt that was already running may have begun too early for this caller.
    for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
      if (subject.aliveMs > sinceMs) return { kind: "alive" };
      const isJoined = subject.running !== null;
      subject.running ??= this.#attempt(subject, sinceMs).finally(() => {
        subject.running = null;
      });
      proof = await subject.running;
      if (proof.kind === "failed" || !isJoined) return proof;
    }
    return subject.aliveMs > sinceMs ? { kind: "alive" } : proof;
  }

  /**
   * Queries whether a list has an entry for a name, by record types that are not cached. With `isFresh`, only a response
   * of the list itself counts as existing.
   */
  async queryExistence(
    list: Blocklist,
    kind: TargetKind,
    { prefix, isFresh }: { prefix: string; isFresh: boolean },
  ): Promise<Existence> {
    const subject = this.#subjectOf(list, kind);
    for (const type of this.#usableTypes(subject, prefix).slice(0, 2)) {
      const existence = await this.#queryType(subject, prefix, type);
      if (existence.kind === "exists" && (existence.isFresh || !isFresh)) return existence;
      // NXDOMAIN counts only for a type that is known to find entries.
      if (existence.kind === "absent" && subject.isReliable.get(groupOf(type)) === true) return existence;
    }
    return UNDECIDED;
  }

  /**
   * Queries the A record again after two seconds. Null when the response is a cached copy (its TTL is lower); otherwise
   * the list itself sent it, as without a caching resolver in between.
   */
  async queryLater(
    list: Blocklist,
    prefix: string,
    { ttlS }: Pick<ListResponse, "ttlS">,
  ): Promise<ListResponse | null> {
    await wait(this.runtime.clock, LATER_MS);
    const later = await this.client.query(list, prefix);
    return later.decoded.outcome !== "listed" || later.ttlS >= ttlS ? later : null;
  }

  #subjectOf(list: Blocklist, kind: TargetKind): Subject {
    const key = `${list.id} ${kind}`;
    const subject = this.#subjects.get(key) ?? {
      list,
      kind,
      aliveMs: Number.NEGATIVE_INFINITY,
      running: null,
      isReliable: new Map<TypeGroup, boolean>(),
      doubtful: new Set<TypeGroup>(),
    };
    this.#subjects.set(key, subject);
    return subject;
  }

  async #attempt(subject: Subject, sinceMs: number): Promise<Liveness> {
    const { list, kind } = subject;
    const startedMs = this.runtime.clock.monotonicMs();
    const point = list.testPoints[kind]?.positive[0];
    if (point === undefined) throw new Error(`${list.id} has no test point for ${kind}.`);
    const prefix = literalName({ kind, value: point.value }) ?? point.value;
    const response = await this.client.query(list, prefix);
    const finding = judgePositive(point, response);
    if (finding?.state !== "healthy") return { kind: "failed", finding };
    const sentAfterMs = this.#freshness.observe(`${list.id} ${prefix} A`, response.ttlS);
    subject.aliveMs = Math.max(subject.aliveMs, sentAfterMs);
    if (sentAfterMs >= startedMs) await this.#learnTypes(subject, prefix);
    if (subject.aliveMs >= sinceMs) return { kind: "alive" };

    const proof = await this.#proveByOtherTypes(subject, prefix, point.value);
    if (proof?.kind === "alive") subject.aliveMs = Math.max(subject.aliveMs, startedMs);
    if (proof !== null) return proof;

    const later = await this.queryLater(list, prefix, response);
    if (later === null) {
      return { kind: "unproven", untilMs: this.runtime.clock.monotonicMs() + response.ttlS * 1000 };
    }
    const laterFinding = judgePositive(point, later);
    if (laterFinding?.state !== "healthy") return { kind: "failed", finding: laterFinding };
    subject.aliveMs = Math.max(subject.aliveMs, startedMs);
    await this.#learnTypes(subject, prefix);
    return { kind: "alive" };
  }

  async #proveByOtherTypes(subject: Subject, prefix: string, value: string): Promise<Liveness | null> {
    const { isReliable, doubtful } = subject;
    for (const type of this.#usableTypes(subject, prefix)) {
      const group = groupOf(type);
      if (isReliable.get(group) === false || doubtful.has(group)) continue;
      const existence = await this.#queryType(subject, prefix, type);
      if (existence.kind === "exists") {
        isReliable.set(group, true);
        if (existence.isFresh) return { kind: "alive" };
      }
      if (existence.kind === "absent") {
        if (isReliable.get(group) === true) return { kind: "failed", finding: goneFinding(value) };
        doubtful.add(group);
      }
    }
    return null;
  }

  /** After a fresh A record: what the other types say about the same name shows which of them are reliable. */
  async #learnTypes(subject: Subject, prefix: string) {
    const { isReliable, doubtful } = subject;
    for (const group of doubtful) isReliable.set(group, false);
    doubtful.clear();
    const unknown = this.#usableTypes(subject, prefix).filter((type) => !isReliable.has(groupOf(type)));
    const onePerGroup = unknown.filter(
      (type, at) => unknown.findIndex((other) => groupOf(other) === groupOf(type)) === at,
    );
    await Promise.all(
      onePerGroup.map(async (type) => {
        const { kind } = await this.#queryType(subject, prefix, type);
        if (kind !== "undecided") isReliable.set(groupOf(type), kind === "exists");
      }),
    );
  }

  /** Types that may be reliable and are not cached: TXT first, because only TXT may have records, then the others at random. */
  #usableTypes({ list, isReliable }: Subject, prefix: string): readonly PresenceType[] {
    const nowMs = this.runtime.clock.monotonicMs();
    const others = PRESENCE_TYPES.filter((type) => type !== "TXT")
      .map((type) => ({ type, order: this.runtime.random.integer(1 << 16) }))
      .toSorted((a, b) => a.order - b.order)
      .map(({ type }) => type);
    return (["TXT", ...others] as const).filter(
      (type) =>
        isReliable.get(groupOf(type)) !== false &&
        this.#freshness.cachedUntilMs(`${list.id} ${prefix} ${type}`) <= nowMs,
    );
  }

  async #queryType({ list, kind, isReliable }: Subject, prefix: string, type: PresenceType): Promise<Existence> {
    const startedMs = this.runtime.clock.monotonicMs();
    const presence = await this.client.queryPresence(list, prefix, type);
    if (presence.kind === "unknown") return UNDECIDED;
    const { ttlS } = presence;
    if (presence.kind === "absent") return { kind: "absent", isFresh: false, ttlS };
    const sentAfterMs = this.#freshness.observe(`${list.id} ${prefix} ${type}`, ttlS);
    if (presence.kind === "records") return { kind: "exists", isFresh: sentAfterMs >= startedMs, ttlS };
    const random = await this.client.queryPresence(list, canaryPrefix(kind, this.runtime.random), type);
    if (random.kind === "absent") return { kind: "exists", isFresh: ttlS >= random.ttlS - 1, ttlS };
    if (random.kind !== "unknown") isReliable.set(groupOf(type), false);
    return UNDECIDED;
  }
}

const goneFinding = (value: string): ListFinding => ({
  state: "silent",
  reason: `The list no longer has its own test point ${value}; your resolver still returns it from its cache.`,
  remedy: "The list was emptied or shut down, or it no longer serves your resolver. Contact the operator of the list.",
});

interface Observation {
  readonly seenMs: number;
  /** When a cached copy of the record expires. */
  readonly expiresMs: number;
  readonly sentAfterMs: number;
  /** The highest TTL seen for this name. */
  readonly ttlMaxS: number;
  /** Whether `ttlMaxS` is the TTL that the list itself sends. */
  readonly isTtlKnown: boolean;
}

const OBSERVATIONS_MAX = 20_000;
/** TTLs are whole seconds, rounded up or down at every hop. */
const ROUNDING_MS = 1500;
/** Operators set TTLs of whole minutes. One in sixty cached copies looks the same; relevant for the first response only. */
const WHOLE_MINUTE_S = 60;

/**
 * Distinguishes responses of a list from copies in a resolver's cache. A resolver counts the TTL of a cached record down,
 * so a TTL below the highest one seen is a copy, and the difference is its age.
 *
 * True for unbound (also with prefetch, serve-expired and cache-min-ttl), BIND, Knot Resolver and PowerDNS. Not true for
 * a resolver that returns copies with a constant TTL (dnsmasq with `max-ttl`).
 */
export class ResponseFreshness {
  readonly #observations = new BoundedMap<string, Observation>(OBSERVATIONS_MAX);

  constructor(private readonly clock: Clock) {}

  /**
   * Records the TTL of a positive response. Returns the monotonic time after which the list must have sent it: now for a
   * fresh response, -Infinity when the age of a copy is unknown.
   */
  observe(key: string, ttlS: number): number {
    const nowMs = this.clock.monotonicMs();
    const known = this.#observations.get(key);
    const { sentAfterMs, isTtlKnown } = judge(known, ttlS, nowMs);
    const ttlMaxS = Math.max(ttlS, known?.ttlMaxS ?? 0);
    this.#observations.set(key, { seenMs: nowMs, expiresMs: nowMs + ttlS * 1000, sentAfterMs, ttlMaxS, isTtlKnown });
    return sentAfterMs;
  }

  /** Until when caches may hold a copy of a response that was observed (monotonic); -Infinity for none. */
  cachedUntilMs(key: string): number {
    return this.#observations.get(key)?.expiresMs ?? Number.NEGATIVE_INFINITY;
  }
}

const judge = (
  known: Observation | undefined,
  ttlS: number,
  nowMs: number,
): Pick<Observation, "sentAfterMs" | "isTtlKnown"> => {
  if (ttlS === 0) return { sentAfterMs: nowMs, isTtlKnown: known?.isTtlKnown ?? false };
  if (known === undefined) {
    const isTtlKnown = ttlS % WHOLE_MINUTE_S === 0;
    return { sentAfterMs: isTtlKnown ? nowMs : Number.NEGATIVE_INFINITY, isTtlKnown };
  }
  const expiresMs = nowMs + ttlS * 1000;
  if (nowMs < known.expiresMs && expiresMs <= known.expiresMs + ROUNDING_MS) return known;
  const isExpired = nowMs >= known.expiresMs;
  const isHighest = ttlS >= known.ttlMaxS && (known.isTtlKnown || isExpired);
  const byAgeMs = known.isTtlKnown ? nowMs - Math.max(0, known.ttlMaxS - ttlS) * 1000 : Number.NEGATIVE_INFINITY;
  const renewedMs = isExpired ? known.expiresMs : known.seenMs;
  return {
    sentAfterMs: isHighest ? nowMs : Math.max(known.sentAfterMs, byAgeMs, renewedMs),
    isTtlKnown: known.isTtlKnown || isExpired,
  };
};
