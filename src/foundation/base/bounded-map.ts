/** A map of limited size: an entry that is set becomes the newest, and in a full map the oldest gives way. */
export class BoundedMap<K, V> extends Map<K, V> {
  /** Stands at the oldest entry: one that begins anew would pass by every entry that was deleted. */
  readonly #oldest = this.keys();

  constructor(private readonly sizeMax: number) {
    super();
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size <= this.sizeMax) return this;
    const oldest = this.#oldest.next();
    if (oldest.done !== true) this.delete(oldest.value);
    return this;
  }
}

/**
 * Caches what a pure function returns for texts, at most `sizeMax` results: a full cache is emptied, because what is frequent is soon
 * there again.
 */
export const cached = <K extends string, V>(sizeMax: number, compute: (key: K) => V): ((key: K) => V) => {
  const results = new Map<K, V>();
  return (key) => {
    const known = results.get(key);
    if (known !== undefined || results.has(key)) return known as V;
    const result = compute(key);
    if (results.size >= sizeMax) results.clear();
    results.set(key, result);
    return result;
  };
};
