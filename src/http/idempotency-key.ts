import { AppError } from "../base/errors.ts";

const CHARACTERS_MAX = 200;

/** Returns the `Idempotency-Key` of a request, or null. Throws 400 for one that is not 1 to 200 characters long. */
export const readIdempotencyKey = ({ headers }: Request): string | null => {
  const key = headers.get("idempotency-key");
  const characters = key === null ? 1 : [...key].length;
  if (characters >= 1 && characters <= CHARACTERS_MAX) return key;
  throw new AppError("Invalid idempotency key", {
    message: `An Idempotency-Key must have 1 to ${CHARACTERS_MAX} characters; this one has ${characters}.`,
  });
};
