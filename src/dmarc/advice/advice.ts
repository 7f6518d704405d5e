import { type AdvisedSource, type AdviceFacts, failingOf, weigh } from "./advice-facts.ts";
import { type AdviceNote, notesOf } from "./advice-notes.ts";
import { mendedPolicy, namesTag, strengthened } from "./advice-record.ts";
import { nonePassed, type Requirement, requirementsFor } from "./advice-requirements.ts";
import { fixOf, questionOf, type SourceFix } from "./source-fix.ts";
import { percentOf } from "../sources/day-range.ts";
import type { StatePolicy } from "../domains/domain-state.ts";

/**
 * How far a domain has come: no policy, `p=none`, `p=quarantine; t=y` (a rehearsal: receivers are asked to do nothing),
 * `p=quarantine`, `p=reject; t=y` (receivers are asked to quarantine), `p=reject`.
 */
export const STAGES = ["none", "monitoring", "rehearsal", "quarantine", "reject_rehearsal", "reject"] as const;
export type Stage = (typeof STAGES)[number];

export const ADVICE_ACTIONS = [
  "mend_record",
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

export interface AdviceStep {
  readonly action: AdviceAction;
  /** The whole text to publish, where the step is to publish one. */
  readonly record: string | null;
  /** What stands in the way, or what the step does. */
  readonly why: string;
  /** `key` of the source that the step is about; null for others. */
  readonly source: string | null;
  /** What to do, sentence by sentence; empty where publishing `record` is all. */
  readonly steps: readonly string[];
}

/** What to do about the policy of a domain, and why not more. */
export interface Advice {
  readonly stage: Stage;
  /** Whether everything that the next stage needs is there. */
  readonly ready: boolean;
  /** Null when nothing is left to do. */
  readonly next: AdviceStep | null;
  readonly requirements: readonly Requirement[];
  readonly notes: readonly AdviceNote[];
  /** Messages of the last 30 days that are left out, because only reports in mail that is not authenticated tell of them: of all, in percent. */
  readonly unauthenticated_percent: number | null;
}

/**
 * Advises the next step towards enforcement (RFC 9989 §5): look, rehearse with `t=y`, quarantine, and where nobody writes to mailing
 * lists, reject; each for 14 days with reports at least. Pure. It never advises what protects less than the record that is published: no policy, alignment or test mode
 * is ever loosened.
 */
export const advise = (facts: AdviceFacts): Advice => {
  const stage = stageOf(facts.policy);
  const requirements = requirementsFor(stage, facts);
  const ready = requirements.every(({ met }) => met);
  const next = nextStep({ facts, stage, requirements, ready });
  const counted = facts.sources.reduce((sum, { messages }) => sum + messages, 0);
  const unauthenticated_percent = percentOf(facts.unauthenticated, counted + facts.unauthenticated);
  return { stage, ready, next, requirements, notes: notesOf(stage, facts), unauthenticated_percent };
};

const stageOf = (policy: StatePolicy | null): Stage => {
  if (policy === null) return "none";
  if (policy.p === "none") return "monitoring";
  if (policy.p === "quarantine") return policy.t === "y" ? "rehearsal" : "quarantine";
  return policy.t === "y" ? "reject_rehearsal" : "reject";
};

interface Situation {
  readonly facts: AdviceFacts;
  readonly stage: Stage;
  readonly requirements: readonly Requirement[];
  readonly ready: boolean;
}

const step = (action: AdviceAction, why: string, record: string | null = null): AdviceStep => ({
  ...{ action, record, why },
  source: null,
  steps: [],
});

const nextStep = (situation: Situation): AdviceStep | null => {
  const { facts, stage, ready } = situation;
  const first = recordStep(facts);
  if (first !== null) return first;
  if (facts.record === null) return parentStep(facts, stage);
  if (facts.sendsMail === false) return rejectAllStep(facts, facts.record, situation);
  const higher = ready ? higherStep(stage, facts.record) : null;
  return higher ?? obstacleStep(situation) ?? belowStep(facts, stage, facts.record) ?? waitStep(situation);
};

/** Nothing can be said before reports come: the record is the first step. */
const recordStep = ({ domain, status, failing, record, policy }: AdviceFacts): AdviceStep | null => {
  if (status === "action_required") {
    const what = failing.map(({ message }) => message).join(" ");
    return step("mend_record", `Publish what dns_records says, so that reports come.${what === "" ? "" : ` ${what}`}`);
  }
  const mended = record === null ? null : mendedPolicy(record);
  if (mended !== null && status === "active") return step("mend_record", mended.why, mended.text);
  if (status === "pending" || (record === null && policy === null)) {
    return step("publish_record", `Publish what dns_records says for ${domain}, then call verify.`);
  }
  return null;
};

const parentStep = ({ domain, policy }: AdviceFacts, stage: Stage): AdviceStep | null => {
  const from = policy?.inherited_from;
  if (from == null || stage === "reject" || stage === "quarantine") return null;
  return step("raise_parent", `${domain} has no record of its own: what is published at ${from} decides.`);
};

const higherStep = (stage: Stage, record: string): AdviceStep | null => {
  switch (stage) {
    case "none":
    case "monitoring":
      return (
        publish(
          "rehearse_quarantine",
          record,
          [
            ["p", "quarantine"],
            ["t", "y"],
          ],
          REHEARSE,
        ) ?? publish("quarantine", record, [["p", "quarantine"]], NO_REHEARSAL)
      );
    case "rehearsal":
      return publish("end_rehearsal", record, [["t", "n"]], "The rehearsal went well: let receivers apply quarantine.");
    case "quarantine":
      return publish("reject", record, [["p", "reject"]], "Nearly all mail passes: let receivers refuse what fails.");
    case "reject_rehearsal":
      return publish("end_rehearsal", record, [["t", "n"]], "The rehearsal went well: let receivers apply reject.");
    case "reject":
      return null;
    default:
      return stage satisfies never;
  }
};

const REHEARSE =
  "Nearly all mail passes: rehearse quarantine. With t=y receivers apply none, and older ones that do not know t quarantine.";
const NO_REHEARSAL =
  "Nearly all mail passes: let receivers quarantine what fails. A rehearsal with t=y would soften what sp or np protects today.";

const publish = (
  action: AdviceAction,
  record: string,
  tags: Parameters<typeof strengthened>[1],
  why: string,
): AdviceStep | null => {
  const text = strengthened(record, tags);
  return text === null || text === record ? null : step(action, why, text);
};

/**
 * Protects names below the domain, when nothing larger is open. Never before `p` is in force: the rehearsal by `t=y` would soften what
 * protects them (RFC 9989 §4.7), and nothing is ever softened here.
 */
const belowStep = (facts: AdviceFacts, stage: Stage, record: string): AdviceStep | null => {
  if (stage !== "quarantine" && stage !== "reject") return null;
  return missingNamesStep(facts, record) ?? subdomainsStep(facts, record);
};

/** A name that does not exist sends no mail, so that `np=reject` harms nobody (RFC 9989 §4.7). */
const missingNamesStep = (facts: AdviceFacts, record: string): AdviceStep | null => {
  const isSafe = facts.names.every(({ exists }) => exists === true);
  const isOpen = facts.policy?.np !== "reject" && !namesTag(record, "np");
  if (!facts.isOrganisational || !isSafe || !isOpen || facts.reportedDays === 0) return null;
  const why = "Names below the domain that do not exist send no mail: let receivers refuse forged mail from them.";
  return publish("protect_missing_names", record, [["np", "reject"]], why);
};

const SUBDOMAIN_SHARE_MIN = 0.99;

/** `sp` may follow `p` when the mail of the names below passes. */
const subdomainsStep = ({ policy, names, isOrganisational }: AdviceFacts, record: string): AdviceStep | null => {
  if (policy === null || !isOrganisational || !namesTag(record, "sp") || policy.sp === policy.p) return null;
  const messages = names.reduce((sum, name) => sum + name.messages, 0);
  const aligned = names.reduce((sum, name) => sum + name.aligned, 0);
  if (aligned < messages * SUBDOMAIN_SHARE_MIN) return null;
  const why = `sp=${policy.sp} protects subdomains less than p=${policy.p} protects the domain, and their mail passes.`;
  return publish("protect_subdomains", record, [["sp", policy.p]], why);
};

/** A domain without mail needs no rehearsal: what names it is forged. */
const rejectAllStep = (
  { isOrganisational, passedLately, reportedLately }: AdviceFacts,
  record: string,
  situation: Situation,
): AdviceStep | null => {
  if (passedLately > 0) return waitStep(situation);
  const reports = reportedLately === 0 ? "" : ` ${nonePassed(reportedLately)}`;
  const why = `You said that this domain sends no mail: have all mail that names it refused.${reports}`;
  const below = isOrganisational ? (["sp", "np"] as const).filter((tag) => namesTag(record, tag)) : [];
  const test = namesTag(record, "t") ? ([["t", "n"]] as const) : [];
  return publish(
    "reject_all",
    record,
    [["p", "reject"], ...below.map((tag) => [tag, "reject"] as const), ...test],
    why,
  );
};

/** The sender that holds the most mail that is in the way. */
const obstacleStep = ({ facts, requirements }: Situation): AdviceStep | null => {
  const isOpen = (...codes: readonly Requirement["code"][]): boolean =>
    requirements.some(({ code, met }) => !met && codes.includes(code));
  const month = weigh(facts.sources);
  const worst = month.failing[0] ?? weigh(facts.recentSources).failing[0];
  const failing = isOpen("aligned_share", "recent_share") ? worst : undefined;
  const unknown = isOpen("unknown_sources") ? month.unknown[0] : undefined;
  if (failing !== undefined && (unknown === undefined || failingOf(failing) >= unknown.messages)) {
    return about("fix_sources", failing, fixOf(failing, facts));
  }
  return unknown === undefined ? null : about("classify_sources", unknown, questionOf(unknown, facts));
};

const about = (action: AdviceAction, { key }: AdvisedSource, { why, steps }: SourceFix): AdviceStep => ({
  ...{ action, record: null, source: key, steps },
  why: [why, ...steps.slice(0, 1)].join(" "),
});

/** What is missing comes by itself. */
const waitStep = ({ stage, requirements, ready }: Situation): AdviceStep | null => {
  if (stage === "reject" || ready) return null;
  const open = requirements.filter(({ met }) => !met);
  const isFinal = open.every(({ code }) => code === "few_forwarded");
  return isFinal ? null : step("wait", open.map(({ message }) => message).join(" "));
};
