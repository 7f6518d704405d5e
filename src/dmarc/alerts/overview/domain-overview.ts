import { z } from "zod";
import { ADVICE_ACTIONS } from "../../insight/advice/advice-schema.ts";

/** The next step of a domain, as the advice gave it. */
const nextStepSchema = z.object({
  action: z.enum(ADVICE_ACTIONS),
  why: z.string(),
  /** The key and the name of the source that it is about; null for others. */
  source: z.string().nullable(),
  sourceName: z.string().nullable(),
});
export type NextStep = Readonly<z.output<typeof nextStepSchema>>;

export const overviewBodySchema = z.object({
  /** The first of the 30 days, since 1970 (UTC). */
  fromDay: z.int(),
  /** Messages of each of the 30 days; null for a day that no report covers. */
  messages: z.array(z.int().nullable()),
  failing: z.array(z.int().nullable()),
  /** Null when nothing is left to do. */
  next: nextStepSchema.nullable(),
});
export type DomainOverviewBody = Readonly<z.output<typeof overviewBodySchema>>;

/** What lists show of a domain, computed at one point in time: counts of the last 7 and 30 days, and the next step. */
export interface DomainOverview extends DomainOverviewBody {
  readonly computedAtMs: number;
  readonly messages7: number;
  readonly aligned7: number;
  readonly messages30: number;
  readonly aligned30: number;
  /** Failing messages of 30 days that somebody must act on: neither forwarded nor forged. */
  readonly actionable30: number;
}
