/** A name is near when at most a third of its letters differ: `PROT` and `PORT`, never `METRICS_TOKEN` and `TLS_KEY`. */
const NEAR_SHARE = 1 / 3;
/** Two letters that changed places count as two steps. */
const NEAR_STEPS_MIN = 2;
/** Longer words are no slip of the finger, and comparing them takes time. */
const WORD_CHARACTERS_MAX = 100;

/** Steps of one letter (inserted, removed, changed) from one text to the other. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (letter === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
};

/** The name that was probably meant by a mistyped one; null when none is near. Letter case counts. */
export const nearestName = (word: string, names: Iterable<string>): string | null => {
  if (word.length > WORD_CHARACTERS_MAX) return null;
  let best: { readonly name: string; readonly steps: number } | null = null;
  for (const name of names) {
    const steps = distance(word, name);
    const isNear =
      steps < Math.min(word.length, name.length) && steps <= Math.max(NEAR_STEPS_MIN, word.length * NEAR_SHARE);
    if (isNear && steps < (best?.steps ?? Number.POSITIVE_INFINITY)) best = { name, steps };
  }
  return best?.name ?? null;
};
