import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import type { Advice, AdviceStage } from "./advice-schema.ts";

/** The published policies on the way to enforcement, and where a domain stands. */
export interface AdviceProgress {
  readonly steps: ReadonlyArray<{
    readonly policy: "none" | "quarantine" | "reject";
    readonly state: "done" | "present" | "ahead";
    /** Whether receivers are asked to apply the step below for now (`t=y`). */
    readonly isRehearsal: boolean;
  }>;
  readonly met: number;
  readonly requirements: number;
  /** The first UTC day on which the next stage can be advised, if a report arrives about each day; null when time alone decides nothing. */
  readonly notBeforeDay: number | null;
}

const POSITIONS: Readonly<Record<AdviceStage, number>> = {
  none: -1,
  monitoring: 0,
  rehearsal: 1,
  quarantine: 1,
  reject_rehearsal: 2,
  reject: 2,
};
const REHEARSALS: ReadonlySet<AdviceStage> = new Set(["rehearsal", "reject_rehearsal"]);

/** How far a domain has come, by the advice about it. Pure. */
export const progressOf = (
  { stage, requirements }: Pick<Advice, "stage" | "requirements">,
  nowMs: number,
): AdviceProgress => {
  const position = POSITIONS[stage];
  const days = requirements.find(({ code }) => code === "reported_days");
  const missing = days === undefined || days.met ? 0 : Number(days.expected) - Number(days.observed);
  return {
    steps: (["none", "quarantine", "reject"] as const).map((policy, at) => ({
      policy,
      state: at < position ? "done" : at === position ? "present" : "ahead",
      isRehearsal: at === position && REHEARSALS.has(stage),
    })),
    met: requirements.filter(({ met }) => met).length,
    requirements: requirements.length,
    // A report about a day arrives on the next one.
    notBeforeDay: missing > 0 && stage !== "reject" ? dayOfTime(nowMs + missing * DAY_MS) + 1 : null,
  };
};
