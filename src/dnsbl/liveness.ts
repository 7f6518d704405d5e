import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { Random } from "../base/secrets.ts";
import type { ListResponse, ListClient, NamePresence, PresenceType } from "./list-client.ts";
import { PRESENCE_TYPES } from "./list-client.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import { type ListFinding, judgePositive } from "./list-finding.ts";
import type { Freshness } from "./freshness.ts";
import { literalName } from "./query-name.ts";
import { canaryPrefix } from "./list-sample.ts";

/**
 * Whether a list still answers for itself.
 *
 * - `alive`: the list itself gave its positive test point since the time asked about.
 * - `failed`: it did not, and says so; null when the list could not be asked.
 * - `unproven`: only a copy in a resolver's cache says so. At `untilMs` (monotonic) the copy has run out.
 */
export type Liveness =
  | { readonly kind: "alive" }
  | { readonly kind: "failed"; readonly finding: ListFinding | null }
  | { readonly kind: "unproven"; readonly untilMs: number };

/** What a list says about a name by another type than A. `undecided`: the type tells nothing on this list, or nobody answered. */
export interface Existence {
  readonly kind: "exists" | "absent" | "undecided";
  /** For an entry that exists: whether the list itself said so now. */
  readonly isFresh: boolean;
  readonly ttlS: number;
}

/** Proves that lists are alive, and finds out whether a name exists, past the caches of resolvers. */
export interface LivenessProber {
  /**
   * Proves that a list has given its positive test point since `sinceMs` (monotonic). Equal proofs at the same time are
   * one. The list must have a positive test point of that kind.
   */
  prove(list: Blocklist, kind: TargetKind, sinceMs: number): Promise<Liveness>;
  /**
   * Asks whether a list has an entry for a name, by types other than A, which reach the list itself. With `isFresh`, an
   * entry that may come from a cache does not count.
   */
  queryExistence(
    list: Blocklist,
    kind: TargetKind,
    name: { readonly prefix: string; readonly isFresh: boolean },
  ): Promise<Existence>;
  /**
   * Asks for the A record again after two seconds. Null when the answer comes from a cache, where its time to live has
   * become less; else the list itself gave it, as where no caching resolver stands between.
   */
  queryLater(list: Blocklist, prefix: string, earlier: Pick<ListResponse, "ttlS">): Promise<ListResponse | null>;
}

interface ListState {
  /** Monotonic time at which the list itself gave its test point. */
  aliveMs: number;
  running: Promise<Liveness> | null;
  /** By group of types: whether it tells existing names from others on this list; absent while that is not known. */
  readonly tells: Map<string, boolean>;
  /** Groups whose answer for the test point was NXDOMAIN while the A record may have been a copy. */
  readonly doubtful: Set<string>;
}

/** Servers treat all types without records alike, so one speaks for the others. */
const groupOf = (type: PresenceType): string => (type === "TXT" ? "TXT" : "others");
const UNDECIDED: Existence = { kind: "undecided", isFresh: false, ttlS: 0 };
const PROOFS_MAX = 3;
/** After so long a cached copy has at least a second less to live, however it was rounded. */
const LATER_MS = 2100;
const RETRY_MS = 60_000;

export const createLivenessProber = (deps: {
  client: ListClient;
  clock: Clock;
  random: Random;
  freshness: Freshness;
}): LivenessProber => {
  const { client, clock, random, freshness } = deps;
  const states = new Map<string, ListState>();

  const stateOf = (list: Blocklist, kind: TargetKind): ListState => {
    const key = `${list.id} ${kind}`;
    const state = states.get(key) ?? {
      aliveMs: Number.NEGATIVE_INFINITY,
      running: null,
      tells: new Map<string, boolean>(),
      doubtful: new Set<string>(),
    };
    states.set(key, state);
    return state;
  };

  /** A type in random order, TXT first: only TXT may have records, which need no comparison. */
  const typesOf = (list: Blocklist, prefix: string, state: ListState): readonly PresenceType[] => {
    const nowMs = clock.monotonicMs();
    const others = PRESENCE_TYPES.filter((type) => type !== "TXT")
      .map((type) => ({ type, place: random.integer(1 << 16) }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ type }) => type);
    return (["TXT", ...others] as const).filter(
      (type) =>
        state.tells.get(groupOf(type)) !== false && freshness.cachedUntilMs(`${list.id} ${prefix} ${type}`) <= nowMs,
    );
  };

  const askType = async (list: Blocklist, kind: TargetKind, prefix: string, type: PresenceType): Promise<Existence> => {
    const startedMs = clock.monotonicMs();
    const seen = await client.queryPresence(list, prefix, type);
    if (seen.kind === "unknown") return UNDECIDED;
    if (seen.kind === "absent") return { kind: "absent", isFresh: false, ttlS: seen.ttlS };
    const afterMs = freshness.see(`${list.id} ${prefix} ${type}`, seen.ttlS);
    const { ttlS } = seen;
    if (seen.kind === "records") return { kind: "exists", isFresh: afterMs >= startedMs, ttlS };
    const other: NamePresence = await client.queryPresence(list, canaryPrefix(kind, random), type);
    if (other.kind === "absent") return { kind: "exists", isFresh: ttlS >= other.ttlS - 1, ttlS };
    if (other.kind !== "unknown") stateOf(list, kind).tells.set(groupOf(type), false);
    return UNDECIDED;
  };

  /** The A record was fresh: what other types say of the same name shows what they are worth. */
  const learn = async (list: Blocklist, kind: TargetKind, prefix: string): Promise<void> => {
    const state = stateOf(list, kind);
    for (const group of state.doubtful) state.tells.set(group, false);
    state.doubtful.clear();
    const unlearned = typesOf(list, prefix, state).filter((type) => !state.tells.has(groupOf(type)));
    const wanted = unlearned.filter(
      (type, n) => unlearned.findIndex((other) => groupOf(other) === groupOf(type)) === n,
    );
    await Promise.all(
      wanted.map(async (type) => {
        const { kind: existence } = await askType(list, kind, prefix, type);
        if (existence !== "undecided") state.tells.set(groupOf(type), existence === "exists");
      }),
    );
  };

  const pastCaches = async (
    list: Blocklist,
    kind: TargetKind,
    prefix: string,
    value: string,
  ): Promise<Liveness | null> => {
    const state = stateOf(list, kind);
    for (const type of typesOf(list, prefix, state)) {
      if (state.tells.get(groupOf(type)) === false || state.doubtful.has(groupOf(type))) continue;
      const existence = await askType(list, kind, prefix, type);
      if (existence.kind === "exists") {
        state.tells.set(groupOf(type), true);
        if (existence.isFresh) return { kind: "alive" };
      }
      if (existence.kind === "absent") {
        if (state.tells.get(groupOf(type)) === true) return { kind: "failed", finding: goneFinding(value) };
        state.doubtful.add(groupOf(type));
      }
    }
    return null;
  };

  const queryLater: LivenessProber["queryLater"] = async (list, prefix, { ttlS }) => {
    await wait(clock, LATER_MS);
    const later = await client.query(list, prefix);
    return later.decoded.outcome !== "listed" || later.ttlS >= ttlS ? later : null;
  };

  const attempt = async (list: Blocklist, kind: TargetKind, sinceMs: number): Promise<Liveness> => {
    const state = stateOf(list, kind);
    const startedMs = clock.monotonicMs();
    const point = list.testPoints[kind]?.positive[0];
    if (point === undefined) throw new Error(`${list.id} has no test point for ${kind}.`);
    const prefix = literalName({ kind, value: point.value }) ?? point.value;
    const answer = await client.query(list, prefix);
    const finding = judgePositive(point, answer);
    if (finding?.state !== "healthy") return { kind: "failed", finding };
    const afterMs = freshness.see(`${list.id} ${prefix} A`, answer.ttlS);
    state.aliveMs = Math.max(state.aliveMs, afterMs);
    if (afterMs >= startedMs) await learn(list, kind, prefix);
    if (state.aliveMs >= sinceMs) return { kind: "alive" };
    const proof = await pastCaches(list, kind, prefix, point.value);
    if (proof?.kind === "alive") state.aliveMs = Math.max(state.aliveMs, startedMs);
    if (proof !== null) return proof;
    const later = await queryLater(list, prefix, answer);
    if (later !== null) {
      const laterFinding = judgePositive(point, later);
      if (laterFinding?.state !== "healthy") return { kind: "failed", finding: laterFinding };
      state.aliveMs = Math.max(state.aliveMs, startedMs);
      await learn(list, kind, prefix);
      return { kind: "alive" };
    }
    return { kind: "unproven", untilMs: clock.monotonicMs() + (answer.ttlS > 0 ? answer.ttlS * 1000 : RETRY_MS) };
  };

  const proveOnce = (list: Blocklist, kind: TargetKind, sinceMs: number): Promise<Liveness> => {
    const state = stateOf(list, kind);
    state.running ??= attempt(list, kind, sinceMs).finally(() => {
      state.running = null;
    });
    return state.running;
  };

  return {
    queryLater,

    async prove(list, kind, sinceMs) {
      const state = stateOf(list, kind);
      let proof: Liveness = { kind: "unproven", untilMs: clock.monotonicMs() + RETRY_MS };
      // A proof that was under way may have begun too early for this caller.
      for (let proofs = 0; proofs < PROOFS_MAX; proofs += 1) {
        if (state.aliveMs > sinceMs) return { kind: "alive" };
        const isJoined = state.running !== null;
        proof = await proveOnce(list, kind, sinceMs);
        if (proof.kind === "failed" || !isJoined) return proof;
      }
      return state.aliveMs > sinceMs ? { kind: "alive" } : proof;
    },

    async queryExistence(list, kind, { prefix, isFresh }) {
      const state = stateOf(list, kind);
      for (const type of typesOf(list, prefix, state).slice(0, 2)) {
        const existence = await askType(list, kind, prefix, type);
        if (existence.kind === "exists" && (existence.isFresh || !isFresh)) return existence;
        // NXDOMAIN counts where the type is known to find entries.
        if (existence.kind === "absent" && state.tells.get(groupOf(type)) === true) return existence;
      }
      return UNDECIDED;
    },
  };
};

const goneFinding = (value: string): ListFinding => ({
  state: "silent",
  reason: `The list no longer has its own test entry ${value}; what your resolver still answers comes from its cache.`,
  remedy: "The list was emptied or ended, or it does not serve this resolver any more: ask its operator.",
});
