import { BoundedMap } from "./bounded-map.ts";
import type { Clock } from "./clock.ts";

/** What a token bucket has left, in the terms of the `RateLimit-*` headers. */
export interface Allowance {
  readonly allowed: boolean;
  /** Requests that can be made right now. */
  readonly remaining: number;
  /** Whole seconds until the full burst is available again. */
  readonly resetS: number;
  /** Whole seconds until the next request is allowed; 0 when one is allowed now. */
  readonly retryAfterS: number;
}

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
  /** The rate of the last request: by it the bucket refills until the next one. */
  rate: Rate;
}

/** Above this many buckets the full ones are evicted: a full bucket and a new one are the same. */
const BUCKETS_BEFORE_SWEEP = 10_000;

/** Rounds away the dust of floating-point refills, so that "just refilled" is not "one short". */
const settled = (tokens: number) => Math.round(tokens * 1e6) / 1e6;

/**
 * Token buckets by name, in memory. An unknown name has a full bucket; `take` removes one token or refuses. Where strangers choose the
 * names, `bucketsMax` limits the memory: the oldest bucket gives way.
 */
export const createTokenBuckets = (clock: Clock, bucketsMax = Infinity) => {
  const buckets = new BoundedMap<string, Bucket>(bucketsMax);
  let sweepAt = BUCKETS_BEFORE_SWEEP;

  const refill = (bucket: Bucket, rate: Rate, nowMs: number) => {
    bucket.tokens = settled(Math.min(rate.burst, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * rate.perSecond));
    bucket.atMs = nowMs;
    bucket.rate = rate;
  };

  const isFull = ({ tokens, atMs, rate }: Bucket, nowMs: number) =>
    ((nowMs - atMs) / 1000) * rate.perSecond >= rate.burst - tokens;

  const sweep = (nowMs: number) => {
    for (const [name, bucket] of buckets) if (isFull(bucket, nowMs)) buckets.delete(name);
    sweepAt = Math.max(BUCKETS_BEFORE_SWEEP, buckets.size * 2);
  };

  return {
    take(name: string, rate: Rate): Allowance {
      const nowMs = clock.monotonicMs();
      let bucket = buckets.get(name);
      if (bucket === undefined) {
        if (buckets.size >= sweepAt) sweep(nowMs);
        bucket = { tokens: rate.burst, atMs: nowMs, rate };
        buckets.set(name, bucket);
      } else {
        refill(bucket, rate, nowMs);
      }
      const allowed = bucket.tokens >= 1;
      if (allowed) bucket.tokens -= 1;
      return {
        allowed,
        remaining: Math.floor(bucket.tokens),
        resetS: Math.ceil(settled((rate.burst - bucket.tokens) / rate.perSecond)),
        retryAfterS: allowed ? 0 : Math.max(1, Math.ceil(settled((1 - bucket.tokens) / rate.perSecond))),
      };
    },
    size: () => buckets.size,
  };
};

export type TokenBuckets = ReturnType<typeof createTokenBuckets>;
