import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Blocklist, TargetKind } from "../dnsbl/blocklist.ts";
import type { DnsblHealth } from "../dnsbl/health.ts";

export interface BreakerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly health: Pick<DnsblHealth, "testAgain">;
  /** How many targets are watched. */
  readonly countTargets: () => number;
}

/** A change that a list tells of. */
export interface ListMovement {
  readonly list: Blocklist;
  readonly kind: TargetKind;
  readonly targetId: string;
}

const WINDOW_MS = 60 * 60_000;
const MOVED_MIN = 5;
const MOVED_SHARE = 0.3;
/** For how long a list that did not stand its test is not believed before it is tested again. */
const HOLD_MS = 30 * 60_000;
/** The same where the test could not be made, or nobody was heard: that is soon tried again. */
const HOLD_UNTESTED_MS = 5 * 60_000;
/** A list that stood the test is believed for as long as it takes until every target has been checked. */
const BELIEVED_MS = 7 * 60 * 60_000;

const COUNTED_MS = 60_000;

interface Watch {
  /** Target id → when it moved. */
  readonly moved: Map<string, number>;
  heldUntilMs: number | null;
  believedUntilMs: number;
  /** The test that decides; whoever comes meanwhile waits for it too. */
  testing: Promise<number | null> | null;
}

/**
 * Doubts a list that moves more targets within an hour than is likely: more than five and more than 30 % of all. Its
 * test points decide at once: when it stands a fresh test it is believed, else it is held back, and tested again later.
 * While it is held, what it said before stands.
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
    const watch = watches.get(id) ?? { moved: new Map(), heldUntilMs: null, believedUntilMs: 0, testing: null };
    watches.set(id, watch);
    return watch;
  };

  const decide = async (watch: Watch, { list, kind }: ListMovement): Promise<number | null> => {
    const { health: found, isTested } = await health.testAgain(list, kind);
    const { state } = found;
    const facts = { list: list.id, targets: watch.moved.size };
    if (isTested && state === "healthy") {
      log.warn("a blocklist that moves many targets at once stood its test; its changes are believed", facts);
      watch.heldUntilMs = null;
      watch.believedUntilMs = clock.nowMs() + BELIEVED_MS;
      watch.moved.clear();
      return null;
    }
    const hasFailed = isTested && state !== "unreachable" && state !== "unknown";
    watch.heldUntilMs = clock.nowMs() + (hasFailed ? HOLD_MS : HOLD_UNTESTED_MS);
    log.error("a blocklist moves too many targets at once; its changes are held back and it is tested again", {
      ...facts,
      state: isTested ? state : "not tested",
    });
    return watch.heldUntilMs;
  };

  const testNow = (watch: Watch, movement: ListMovement): Promise<number | null> => {
    watch.testing ??= decide(watch, movement).finally(() => {
      watch.testing = null;
    });
    return watch.testing;
  };

  return {
    /** Takes note of a change, and has the list tested when there are too many; answers until when it must not be believed, or null when it may be. */
    async judge(movement: ListMovement): Promise<number | null> {
      const nowMs = clock.nowMs();
      const watch = watchOf(movement.list.id);
      if (watch.testing !== null) return watch.testing;
      if (nowMs < watch.believedUntilMs) return null;
      if (watch.heldUntilMs !== null) {
        return nowMs < watch.heldUntilMs ? watch.heldUntilMs : testNow(watch, movement);
      }
      for (const [id, atMs] of watch.moved) if (atMs <= nowMs - WINDOW_MS) watch.moved.delete(id);
      watch.moved.set(movement.targetId, nowMs);
      if (watch.moved.size <= Math.max(MOVED_MIN, MOVED_SHARE * targetsWatched())) return null;
      return testNow(watch, movement);
    },
  };
};

export type Breaker = ReturnType<typeof createBreaker>;
