export interface Isolation<T> {
  /** Told of each item that failed; the others go on. */
  readonly onFailure: (item: T, cause: unknown) => void | Promise<void>;
  /** No item is begun any more when it says so. */
  readonly isStopping?: () => boolean;
}

/**
 * Does the same for each item, one after the other. What fails for one of them stops none of the others: every pass over
 * domains, targets or recipients goes through here.
 */
export const forEachIsolated = async <T>(
  items: Iterable<T>,
  work: (item: T) => unknown,
  { onFailure, isStopping }: Isolation<T>,
): Promise<void> => {
  for (const item of items) {
    if (isStopping?.() === true) return;
    try {
      await work(item);
    } catch (cause) {
      await onFailure(item, cause);
    }
  }
};
