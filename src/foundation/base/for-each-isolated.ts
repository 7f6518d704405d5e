export interface Isolation<T> {
  /** Called for each item that failed; the others go on. */
  readonly onFailure: (item: T, error: unknown) => void | Promise<void>;
  /** No further item is begun once it returns true. */
  readonly isStopping?: () => boolean;
}

/**
 * Does the same for each item, one after the other. A failure of one stops none of the others: every pass over
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
    } catch (error) {
      await onFailure(item, error);
    }
  }
};
