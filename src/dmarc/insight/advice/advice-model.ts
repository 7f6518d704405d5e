import { mostFirst, sumBy } from "../../../foundation/base/sums.ts";
import type { Source } from "../sources/source-response.ts";
import { isSendingService } from "../../records/services/services.ts";
import { UNRELATED_SUFFIX } from "../sources/source-keys.ts";
import type { HealthFinding } from "../health/health-schema.ts";
import type { DomainStatus } from "../../records/domains/domain-store.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";
import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { flagField, integerField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";

/** A source, with the counts of the days that advice is about. */
export type AdvisedSource = Pick<
  Source,
  | "key"
  | "kind"
  | "name"
  | "service_id"
  | "classification"
  | "messages"
  | "aligned"
  | "forwarded"
  | "authenticated_unaligned"
  | "first_day"
  | "last_day"
  | "dkim"
  | "addresses"
> & {
  /** The keys of the sources of which this is the sum: see `bundleStrangers`. */
  readonly bundled?: readonly string[];
};

/** A subdomain that sent mail which passes DMARC. */
export interface AdvisedName {
  readonly name: string;
  /** Whether the name exists in the DNS; null when the DNS did not say. */
  readonly exists: boolean | null;
  readonly messages: number;
  readonly aligned: number;
}

/** Reporters that are neither known nor accepted by the owner. */
export interface UnknownReporters {
  /** The domains of these reporters. */
  readonly names: readonly string[];
  /** Messages of the last 30 days in their reports. */
  readonly messages: number;
  /** Whether known reporters cover the domain: see `ReporterStore`. Then the others change nothing. */
  readonly isCovered: boolean;
  /** Why nobody vouches for the other reports: see `unvouchedWords`. */
  readonly unvouchedWords: string;
}

/** A check of the domain that fails. */
interface FailingCheck {
  readonly code: string;
  readonly message: string;
}

/** What advice is based on. */
export interface AdviceFacts {
  readonly domain: string;
  /** The record of another domain does not apply to the names below it (RFC 9989 §4.10.1). */
  readonly isOrganisational: boolean;
  /** As the user declared; null when the user did not. */
  readonly sendsMail: boolean | null;
  /** Whether reports can arrive, by the last DNS check. */
  readonly status: DomainStatus;
  readonly failing: readonly FailingCheck[];
  /** The text of the one record at the domain itself; null when there is none, several, or nothing is known yet. */
  readonly record: string | null;
  /** What receivers apply; null when there is no policy or nothing is known yet. */
  readonly policy: StatePolicy | null;
  /** Days of the last 30 with reports. */
  readonly reportedDays: number;
  /** The days on which the present policy (`p` and `t`) was published all day; before the enrolment, by the reports. */
  readonly policyDays: number;
  /** Reporters of the last 30 days that reported about at least two of them. */
  readonly reporters: number;
  /** Sources of the last 30 days. */
  readonly sources: readonly AdvisedSource[];
  /** Sources of the last seven days with reports: an earlier good month must not hide a bad week. */
  readonly recentSources: readonly AdvisedSource[];
  /** Days of the last 14 with reports. */
  readonly reportedLately: number;
  /** Messages of the last 14 days that passed DMARC, from any source. */
  readonly passedLately: number;
  /** Messages of the last 30 days that only reports in unauthenticated mail name. They are counted nowhere else. */
  readonly unauthenticated: number;
  /** The unknown reporters of the domain; without any, all reports decide. */
  readonly unknownReporters: UnknownReporters;
  /** Subdomains of the last 30 days. */
  readonly names: readonly AdvisedName[];
  /** Errors and warnings of the last health check, errors first. */
  readonly health: readonly AdvisedFinding[];
}

/** A finding of the health check that breaks or weakens something. */
export type AdvisedFinding = Pick<HealthFinding, "code" | "severity" | "message" | "fix">;

/** Mail that counts for enforcement: that of the user's own sources, without forwarded, forged and unknown mail. */
export interface MailWeight {
  readonly messages: number;
  readonly aligned: number;
  /** Of `messages` and `aligned`, 0 to 1; 0 without messages. */
  readonly alignedShare: number;
  /** All mail of the days but for threats. */
  readonly all: number;
  readonly forwarded: number;
  /** Unclassified sources that could be the user's. The most messages first. */
  readonly unknown: readonly AdvisedSource[];
  /** Counted sources whose mail fails, the worst first. */
  readonly failing: readonly AdvisedSource[];
}

/**
 * An unknown source is relevant from this many messages and this share of all mail; without any authentication, and for mail of a
 * provider's users that may have been forwarded, from the larger share.
 */
const UNKNOWN_MESSAGES_MIN = 10;
const UNKNOWN_SHARE_MIN = 0.001;
const UNKNOWN_SHARE_LARGE = 0.01;
/** A source without any authentication could be the user's server when it sends for this many days. */
const PERSISTENT_DAYS = 14;

/** Sums up the sources of some days. */
export const weighMail = (sources: readonly AdvisedSource[]): MailWeight => {
  const sum = (rows: readonly AdvisedSource[], count: (row: AdvisedSource) => number) => sumBy(rows, count);
  const all = sum(
    sources.filter(({ kind, classification }) => kind !== "unauthenticated" && classification !== "threat"),
    ({ messages }) => messages,
  );
  const counting = sources.filter(
    ({ classification }) => classification === "authorized" || classification === "misconfigured",
  );
  const forwarders = sources.filter(({ classification }) => classification === "forwarder");
  const messages = sum(counting, (row) => row.messages - row.forwarded);
  const aligned = sum(counting, (row) => row.aligned);
  return {
    messages,
    aligned,
    alignedShare: messages === 0 ? 0 : aligned / messages,
    all,
    forwarded: sum(counting, (row) => row.forwarded) + sum(forwarders, (row) => row.messages - row.aligned),
    unknown: sources.filter((source) => isOpen(source, all)).toSorted(mostFirst("messages")),
    failing: counting
      .filter((row) => failingMessages(row) > 0)
      .toSorted((a, b) => failingMessages(b) - failingMessages(a)),
  };
};

/** Whether a source could be the user's, and sends enough that it has to be classified. */
const isOpen = (source: AdvisedSource, all: number) => {
  const { kind, key, classification, service_id, messages, aligned, authenticated_unaligned } = source;
  if (classification !== "unknown" || kind === "unauthenticated") return false;
  // `other`: addresses beyond the limit of stored sources, which nobody can classify.
  if (messages < UNKNOWN_MESSAGES_MIN || key === "other") return false;
  const isOthers = key.endsWith(UNRELATED_SUFFIX);
  const isProven = aligned > 0 || authenticated_unaligned > 0 || isSendingService(service_id);
  if (!isOthers && isProven) return messages >= all * UNKNOWN_SHARE_MIN;
  const direct = isOthers ? failingMessages(source) : messages;
  return direct >= Math.max(UNKNOWN_MESSAGES_MIN, all * UNKNOWN_SHARE_LARGE) && isPersistent(source);
};

const isPersistent = ({ first_day, last_day }: AdvisedSource) =>
  Date.parse(last_day) - Date.parse(first_day) >= PERSISTENT_DAYS * DAY_MS;

/** Messages of a source that fail DMARC and were not forwarded. */
export const failingMessages = ({ messages, aligned, forwarded }: AdvisedSource): number =>
  Math.max(0, messages - aligned - forwarded);

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
  "classify_sources",
  "fix_sources",
  "wait",
] as const;
export type AdviceAction = (typeof ADVICE_ACTIONS)[number];

const REQUIREMENT_CODES = [
  "record_in_order",
  "reported_days",
  "reporters",
  "messages",
  "aligned_share",
  "recent_share",
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
  "health",
] as const;

const stepSchema = z.object({
  action: z.enum(ADVICE_ACTIONS).describe("The kind of step."),
  record: nullableText(
    "The whole text to publish at the `_dmarc` name in place of the present record; only the tags concerned differ from it. Null for other steps.",
  ),
  why: textField("What blocks progress, or what the step does."),
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
