import { parseDay } from "../../../foundation/http/day-range.ts";
import { dayField, flagField, integerField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";

/**
 * How far a domain has come: no policy, `p=none`, `p=quarantine; t=y` (a rehearsal: receivers are asked to do nothing),
 * `p=quarantine`, `p=reject; t=y` (receivers are asked to quarantine), `p=reject`.
 */
const ADVICE_STAGES = ["none", "monitoring", "rehearsal", "quarantine", "reject_rehearsal", "reject"] as const;
export type AdviceStage = (typeof ADVICE_STAGES)[number];

export const ADVICE_ACTIONS = [
  "fix_record",
  "publish_record",
  "raise_parent",
  "protect_missing_names",
  "protect_subdomains",
  "rehearse_quarantine",
  "quarantine",
  "end_rehearsal",
  "reject",
  "reject_all",
  "remove_pct",
  "set_sends_mail",
  "fix_key",
  "classify_sources",
  "fix_sources",
  "wait",
] as const;
export type AdviceAction = (typeof ADVICE_ACTIONS)[number];

const REQUIREMENT_CODES = [
  "record_in_order",
  "keys_in_order",
  "reported_days",
  "reporters",
  "messages",
  "aligned_share",
  "recent_share",
  "no_new_failures",
  "unknown_sources",
  "few_forwarded",
  "no_aligned_mail",
] as const;

const NOTE_CODES = [
  "mailing_lists",
  "subdomain_policy_weaker",
  "names_unchecked",
  "pct_historic",
  "test_mode",
  "publish_spf_none",
  "policy_inherited",
  "sends_mail_unset",
  "unauthenticated_reports",
  "unknown_reporters",
  "open_alerts",
  "health",
] as const;

const stepSchema = z.object({
  action: z.enum(ADVICE_ACTIONS).describe("The kind of step."),
  record: nullableText(
    "The whole text to publish at the `_dmarc` name in place of the present record; only the tags concerned differ from it. Null for other steps.",
  ),
  why: textField("What blocks progress, or what the step does. It does not repeat `steps`."),
  source: nullableText("`key` of the source that the step is about; null for others."),
  steps: z.array(z.string()).describe("What to do, in this order; empty where publishing `record` is all."),
});

const requirementSchema = z.object({
  code: z.enum(REQUIREMENT_CODES).describe("The requirement."),
  met: flagField("Whether it is met."),
  observed: z.union([z.number(), z.string()]).describe("The present value."),
  expected: z.union([z.number(), z.string()]).describe("The value that is needed. Shares are numbers from 0 to 1."),
  message: textField("The same in one sentence."),
});

const noteSchema = z.object({
  code: z.enum(NOTE_CODES).describe("The kind of note."),
  message: textField("The note."),
});

const obstacleSchema = z.object({
  source: textField("`key` of the source."),
  name: textField("Its display name."),
  problem: z
    .enum(["failing", "unclassified"])
    .describe("`failing`: mail of yours that does not pass DMARC. `unclassified`: it could be yours; classify it."),
  messages: integerField("Its messages of the last 30 days."),
  failing: integerField("Those that do not pass DMARC and were not forwarded."),
});

/** What to do about the policy of a domain, and why not more, as the API returns it. */
export const adviceSchema = z
  .object({
    stage: z
      .enum(ADVICE_STAGES)
      .describe(
        "The present stage of enforcement: `rehearsal` is `p=quarantine; t=y`, `reject_rehearsal` is `p=reject; t=y`.",
      ),
    ready: flagField("Whether every requirement of the next stage is met."),
    next: stepSchema.nullable().describe("The next step; null when nothing is left to do."),
    requirements: z.array(requirementSchema).describe("What the next stage needs."),
    obstacles: z
      .array(obstacleSchema)
      .describe("The sources that keep unmet requirements from being met, at most 20; the most mail concerned first."),
    notes: z.array(noteSchema).describe("What else to know about the policy."),
    not_before: dayField(
      "The first day on which the next step towards enforcement can be advised, if mail and reports go on as they do; null when nothing shows such a day.",
    ).nullable(),
    unauthenticated_percent: z
      .number()
      .nullable()
      .describe(
        "Share of the messages of the last 30 days that this advice leaves out, because only reports name them whose mail is not authenticated as the reporter's; in percent with one decimal, null without messages.",
      ),
  })
  .meta({ title: "DmarcAdvice" });

export type Advice = z.output<typeof adviceSchema>;
export type AdviceStep = z.output<typeof stepSchema>;
export type AdviceRequirement = z.output<typeof requirementSchema>;
export type AdviceObstacle = Advice["obstacles"][number];
export type AdviceNote = z.output<typeof noteSchema>;

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
  /** The first UTC day on which the next stage can be advised; null when nothing shows such a day. */
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
export const progressOf = ({
  stage,
  requirements,
  not_before,
}: Pick<Advice, "stage" | "requirements" | "not_before">): AdviceProgress => {
  const position = POSITIONS[stage];
  return {
    steps: (["none", "quarantine", "reject"] as const).map((policy, at) => ({
      policy,
      state: at < position ? "done" : at === position ? "present" : "ahead",
      isRehearsal: at === position && REHEARSALS.has(stage),
    })),
    met: requirements.filter(({ met }) => met).length,
    requirements: requirements.length,
    notBeforeDay: not_before === null ? null : parseDay(not_before),
  };
};

/** What follows when no step is left, in a sentence or two. */
export const conclusionOf = ({ stage, notes }: Pick<Advice, "stage" | "notes">): string => {
  const alerts = notes.find(({ code }) => code === "open_alerts");
  const reached = stage === "reject" ? "Policy complete." : "This is as far as the advice goes for now.";
  return alerts === undefined ? reached : `${reached} ${alerts.message}`;
};
