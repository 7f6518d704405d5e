/** Limits in bytes: over all callers, and for each. */
export interface ByteLimits {
  readonly all: number;
  readonly each: number;
}

/** Counts bytes held for callers, so that neither one nor all together exhaust the memory of the process. */
export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #byOwner = new Map<string, number>();
  #held = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Bytes held now, over all callers. */
  get held(): number {
    return this.#held;
  }

  /** Returns false and takes nothing if that would exceed a limit. */
  take(owner: string, bytes: number): boolean {
    const own = (this.#byOwner.get(owner) ?? 0) + bytes;
    if (own > this.#limits.each || this.#held + bytes > this.#limits.all) return false;
    this.#byOwner.set(owner, own);
    this.#held += bytes;
    return true;
  }

  /** Releases bytes that were taken. */
  give(owner: string, bytes: number): void {
    const own = (this.#byOwner.get(owner) ?? 0) - bytes;
    if (own === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, own);
    this.#held -= bytes;
  }
}
