import { AppError } from "../base/errors.ts";

/**
 * Returns an AppError that `work` throws, so that a refusal is a value of a `commit`; other errors are thrown. For work
 * that decides before it writes, because a value undoes nothing.
 */
export const orRefusal = <T>(work: () => T): T | AppError => {
  try {
    return work();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
};
