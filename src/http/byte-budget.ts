/** What all callers together may hold, and one of them, in bytes. */
export interface ByteLimits {
  readonly all: number;
  readonly each: number;
}

/** Counts bytes that are held for callers, so that neither one of them nor all together take the memory of the process. */
export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #byOwner = new Map<string, number>();
  #held = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Bytes held at this moment for everybody. */
  get held(): number {
    return this.#held;
  }

  /** False, and nothing is taken, when that would be more than the owner or all may hold. */
  take(owner: string, bytes: number): boolean {
    const own = (this.#byOwner.get(owner) ?? 0) + bytes;
    if (own > this.#limits.each || this.#held + bytes > this.#limits.all) return false;
    this.#byOwner.set(owner, own);
    this.#held += bytes;
    return true;
  }

  /** Gives back what was taken. */
  give(owner: string, bytes: number): void {
    const own = (this.#byOwner.get(owner) ?? 0) - bytes;
    if (own === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, own);
    this.#held -= bytes;
  }
}
