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
