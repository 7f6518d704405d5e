/** One parser under fire: what it starts from, and what must hold for any bytes whatever. */
export interface FuzzTarget {
  readonly name: string;
  readonly seeds: readonly Uint8Array[];
  /** Throws, or rejects, when something that must hold does not. */
  readonly check: (input: Uint8Array) => void | Promise<void>;
}

/** Throws when a claim does not hold; `what` says in a few words what went wrong. */
export const must = (isTrue: boolean, what: string): void => {
  if (!isTrue) throw new Error(what);
};
