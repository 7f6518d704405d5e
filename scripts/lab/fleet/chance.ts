/** Random numbers that are the same for the same seed, on every machine. */
export interface Chance {
  /** From 0 up to 1, without 1. */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  whole(low: number, high: number): number;
  pick<T>(from: readonly T[]): T;
  /** True with this probability. */
  hits(probability: number): boolean;
  /** Divides a number of messages by weights; the parts add up to it. */
  split(count: number, weights: readonly number[]): number[];
  /** Other numbers for each name, whatever was drawn here before. */
  named(name: string): Chance;
}

const TWO_32 = 2 ** 32;
/** Up to this number of messages are thrown one by one; more are divided and only the rest is thrown. */
const ONE_BY_ONE_MAX = 40;

/** mulberry32: small, quick, and good enough for mail. */
const numbersOf = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / TWO_32;
  };
};

export const createChance = (seed: number): Chance => {
  const next = numbersOf(seed);
  const whole = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  const pick = <T>(from: readonly T[]): T => {
    const found = from[Math.floor(next() * from.length)];
    if (found === undefined) throw new Error("nothing to pick from");
    return found;
  };
  const throwOne = (weights: readonly number[], sum: number): number => {
    let left = next() * sum;
    const at = weights.findIndex((weight) => {
      left -= weight;
      return left < 0;
    });
    return at === -1 ? weights.length - 1 : at;
  };
  return {
    next,
    whole,
    pick,
    hits: (probability) => next() < probability,
    split(count, weights) {
      const sum = weights.reduce((total, weight) => total + weight, 0);
      const parts = weights.map((weight) => (count > ONE_BY_ONE_MAX ? Math.floor((count * weight) / sum) : 0));
      const thrown = count - parts.reduce((total, part) => total + part, 0);
      for (let n = 0; n < thrown; n++) {
        const at = throwOne(weights, sum);
        parts[at] = (parts[at] ?? 0) + 1;
      }
      return parts;
    },
    named: (name) => createChance(seed ^ Bun.hash.crc32(name)),
  };
};
