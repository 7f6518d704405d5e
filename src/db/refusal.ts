import { AppError } from "../base/errors.ts";

/**
 * What a client is refused, as a value of a `commit`; whatever else is thrown stays thrown. For work that decides before
 * it writes: nothing is undone for a value.
 */
export const orRefusal = <T>(work: () => T): T | AppError => {
  try {
    return work();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
};
