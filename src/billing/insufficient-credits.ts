import { AppError } from "../base/errors.ts";
import type { TooFewCredits } from "./store.ts";

/** The 402 of everything that costs credits. */
export const insufficientCredits = ({ required, available }: TooFewCredits): AppError =>
  new AppError("insufficient_credits", {
    message: `Insufficient credits: ${required} required, ${available} available.`,
    body: { required, available },
  });
