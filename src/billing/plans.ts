import { AppError } from "../base/errors.ts";
import type { Rate } from "../base/limits.ts";
import type { TooFewCredits } from "./store.ts";

export const PLAN_NAMES = ["free", "starter", "growth", "scale"] as const;
export type PlanName = (typeof PLAN_NAMES)[number];

/** Sustained requests per second of the verify call by plan; the burst is two seconds' worth (specification, "Limits"). */
const REQUESTS_PER_SECOND: Readonly<Record<PlanName, number>> = { free: 1, starter: 3, growth: 10, scale: 25 };

/** Credits that every new account begins with. */
export const SIGN_UP_CREDITS = 100;

export const rateOf = (plan: PlanName): Rate => ({
  perSecond: REQUESTS_PER_SECOND[plan],
  burst: REQUESTS_PER_SECOND[plan] * 2,
});

/** The 402 of everything that costs credits. */
export const insufficientCredits = ({ required, available }: TooFewCredits): AppError =>
  new AppError("insufficient_credits", {
    message: `Insufficient credits: ${required} required, ${available} available.`,
    body: { required, available },
  });
