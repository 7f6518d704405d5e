import { AppError } from "../../foundation/base/errors.ts";
import type { Rate } from "../../foundation/base/limits.ts";
import type { TooFewCredits } from "./store.ts";

export const PLAN_NAMES = ["free", "starter", "growth", "scale"] as const;
export type PlanName = (typeof PLAN_NAMES)[number];

/** Sustained requests per second of the verify call by plan; the burst is two seconds' worth (specification, "Limits"). */
const REQUESTS_PER_SECOND: Readonly<Record<PlanName, number>> = { free: 1, starter: 3, growth: 10, scale: 25 };

/** Credits that every new account begins with. */
export const SIGN_UP_CREDITS = 100;

/** The limits that an account may have instead of those of its plan; null for those of the plan. */
export interface CustomRate {
  readonly ratePerSecond: number | null;
  readonly rateBurst: number | null;
}

/** The highest rate and burst of an account. */
export const CUSTOM_RATE_MAX = 10_000;

/** The rate limit of an account. A rate of its own has the burst of two seconds, as plans do, unless that is set too. */
export const rateOf = ({ plan, ratePerSecond, rateBurst }: CustomRate & { readonly plan: PlanName }): Rate => {
  const perSecond = ratePerSecond ?? REQUESTS_PER_SECOND[plan];
  return { perSecond, burst: rateBurst ?? perSecond * 2 };
};

/** The 402 of everything that costs credits. */
export const insufficientCredits = ({ required, available }: TooFewCredits): AppError =>
  new AppError("insufficient_credits", {
    message: `Insufficient credits: ${required} required, ${available} available.`,
    body: { required, available },
  });
