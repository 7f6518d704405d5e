/** A parser to be fuzzed: its seeds, and what must hold for any bytes. */
export interface FuzzTarget {
  readonly name: string;
  readonly seeds: readonly Uint8Array[];
  /** Throws or rejects when an invariant is violated. */
  readonly check: (input: Uint8Array) => void | Promise<void>;
}

/** Throws `what` unless an invariant holds. */
export const must = (isTrue: boolean, what: string): void => {
  if (!isTrue) throw new Error(what);
};
