/** Addresses by the time of their retry, the earliest first: a binary heap in two arrays of numbers. */
export class RetryHeap {
  readonly #times: number[] = [];
  readonly #positions: number[] = [];
  #latestMs = 0;

  get size(): number {
    return this.#times.length;
  }

  /** The earliest time; null when the heap is empty. */
  get nextMs(): number | null {
    return this.#times[0] ?? null;
  }

  /** The latest time added since the heap was last empty; null when it is empty. */
  get latestMs(): number | null {
    return this.size === 0 ? null : this.#latestMs;
  }

  add(dueAtMs: number, position: number): void {
    this.#latestMs = this.size === 0 ? dueAtMs : Math.max(this.#latestMs, dueAtMs);
    this.#times.push(dueAtMs);
    this.#positions.push(position);
    for (let at = this.size - 1, parent = (at - 1) >> 1; at > 0; at = parent, parent = (at - 1) >> 1) {
      if (this.#timeAt(at) >= this.#timeAt(parent)) return;
      this.#swap(at, parent);
    }
  }

  /** Removes and returns the earliest position that is due; null when none is. */
  take(nowMs: number): number | null {
    const position = this.#positions[0];
    if (position === undefined || this.#timeAt(0) > nowMs) return null;
    this.#swap(0, this.size - 1);
    this.#times.pop();
    this.#positions.pop();
    this.#sinkFirst();
    return position;
  }

  #sinkFirst(): void {
    for (let at = 0; ;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const smaller = this.#timeAt(right) < this.#timeAt(left) ? right : left;
      if (this.#timeAt(smaller) >= this.#timeAt(at)) return;
      this.#swap(at, smaller);
      at = smaller;
    }
  }

  #timeAt(at: number): number {
    return this.#times[at] ?? Number.POSITIVE_INFINITY;
  }

  #swap(a: number, b: number): void {
    [this.#times[a], this.#times[b]] = [this.#timeAt(b), this.#timeAt(a)];
    [this.#positions[a], this.#positions[b]] = [this.#positions[b] ?? 0, this.#positions[a] ?? 0];
  }
}
