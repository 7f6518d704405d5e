import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Blocklist, TargetKind } from "../dnsbl/blocklist.ts";
import type { DnsblHealth } from "../dnsbl/health.ts";

export interface BreakerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly health: DnsblHealth;
  /** How many targets are watched. */
  readonly countTargets: () => number;
}

/** A change that a list tells of. */
export interface Movement {
  readonly list: Blocklist;
  readonly kind: TargetKind;
  readonly targetId: string;
}

const WINDOW_MS = 60 * 60_000;
const MOVED_MIN = 5;
const MOVED_SHARE = 0.3;
/** For how long a list that moves too much is not believed before it is tested again. */
const HOLD_MS = 30 * 60_000;
/** A list that stood the test is believed for as long as it takes until every target has been checked. */
const BELIEVED_MS = 7 * 60 * 60_000;

const COUNTED_MS = 60_000;

interface Watch {
  /** Target id → when it moved. */
  readonly moved: Map<string, number>;
  heldUntilMs: number | null;
  believedUntilMs: number;
}

/**
 * Holds a list back that moves more targets within an hour than is likely: more than five and more than 30 % of all.
 * While it is held, what it said before stands. Then its test points decide: it is believed, or held on.
 */
export const createBreaker = ({ clock, log, health, countTargets }: BreakerDeps) => {
  const watches = new Map<string, Watch>();
  let counted = { atMs: Number.NEGATIVE_INFINITY, targets: 0 };

  /** Counting takes its time where there are very many, and need not be exact to the minute. */
  const targetsWatched = (): number => {
    const nowMs = clock.nowMs();
    if (nowMs - counted.atMs >= COUNTED_MS) counted = { atMs: nowMs, targets: countTargets() };
    return counted.targets;
  };

  const watchOf = (id: string): Watch => {
    const watch = watches.get(id) ?? { moved: new Map(), heldUntilMs: null, believedUntilMs: 0 };
    watches.set(id, watch);
    return watch;
  };

  const hold = (watch: Watch, { list, kind }: Movement): number => {
    const heldUntilMs = clock.nowMs() + HOLD_MS;
    watch.heldUntilMs = heldUntilMs;
    log.error("a blocklist moves too many targets at once; its changes are held back and it is tested again", {
      list: list.id,
      targets: watch.moved.size,
    });
    // A doubt makes the next question about the list's health a fresh test.
    health.note(list, kind, { outcome: "failed", cause: "unconfirmed", reason: "It moved too many targets at once." });
    return heldUntilMs;
  };

  const testAgain = async (watch: Watch, movement: Movement): Promise<number | null> => {
    const { state } = await health.ensureFresh(movement.list, movement.kind);
    // Others may have waited for the same test.
    if (clock.nowMs() < watch.believedUntilMs) return null;
    if (watch.heldUntilMs !== null && clock.nowMs() < watch.heldUntilMs) return watch.heldUntilMs;
    if (state !== "healthy") return hold(watch, movement);
    log.warn("a blocklist that moved many targets stood its test; its changes are believed", {
      list: movement.list.id,
    });
    watch.heldUntilMs = null;
    watch.believedUntilMs = clock.nowMs() + BELIEVED_MS;
    watch.moved.clear();
    return null;
  };

  return {
    /** Takes note of a change; answers until when it must not be believed, or null when it may be. */
    async judge(movement: Movement): Promise<number | null> {
      const nowMs = clock.nowMs();
      const watch = watchOf(movement.list.id);
      if (nowMs < watch.believedUntilMs) return null;
      if (watch.heldUntilMs !== null) {
        return nowMs < watch.heldUntilMs ? watch.heldUntilMs : testAgain(watch, movement);
      }
      for (const [id, atMs] of watch.moved) if (atMs <= nowMs - WINDOW_MS) watch.moved.delete(id);
      watch.moved.set(movement.targetId, nowMs);
      if (watch.moved.size <= Math.max(MOVED_MIN, MOVED_SHARE * targetsWatched())) return null;
      return hold(watch, movement);
    },
  };
};

export type Breaker = ReturnType<typeof createBreaker>;
