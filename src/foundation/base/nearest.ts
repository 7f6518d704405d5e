/** A name is near when at most a third of its letters differ: `PROT` and `PORT`, never `METRICS_TOKEN` and `TLS_KEY`. */
const NEAR_SHARE = 1 / 3;
/** Two steps are near even in a short name. */
const NEAR_STEPS_MIN = 2;
/** Longer words are not a typo, and comparing them takes time. */
const WORD_CHARACTERS_MAX = 100;

/**
 * Insertions, deletions, substitutions and swaps of neighbouring letters, no letter touched twice (optimal string
 * alignment). Infinity as soon as it is certain to exceed `distanceMax`.
 */
export const editDistance = (from: string, to: string, distanceMax = Number.POSITIVE_INFINITY): number => {
  if (Math.abs(from.length - to.length) > distanceMax) return Number.POSITIVE_INFINITY;
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    let least = row;
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let distance = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (isSwap) distance = Math.min(distance, (beforeLast[column - 2] ?? 0) + 1);
      current.push(distance);
      if (distance < least) least = distance;
    }
    // A swap reaches back two rows, but costs one: a row that is too far by one already cannot come back.
    if (least > distanceMax) return Number.POSITIVE_INFINITY;
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
};

/** The name that was probably meant by a mistyped one; null when none is near. Letter case counts. */
export const nearestName = (word: string, names: Iterable<string>): string | null => {
  if (word.length > WORD_CHARACTERS_MAX) return null;
  let best: { readonly name: string; readonly steps: number } | null = null;
  for (const name of names) {
    const steps = editDistance(word, name);
    const isNear =
      steps < Math.min(word.length, name.length) && steps <= Math.max(NEAR_STEPS_MIN, word.length * NEAR_SHARE);
    if (isNear && steps < (best?.steps ?? Number.POSITIVE_INFINITY)) best = { name, steps };
  }
  return best?.name ?? null;
};
