import { sumFields, sumOf } from "../../../foundation/base/sums.ts";
import {
  failingMessages,
  type AdviceFacts,
  type AdvisedSource,
  weighMail,
  type Advice,
  type AdviceAction,
  type AdviceNote,
  type AdviceObstacle,
  type AdviceRequirement,
  type AdviceStage,
  type AdviceStep,
} from "./advice-model.ts";
import {
  POLICY_STRENGTH,
  correctedPolicy,
  fixOf,
  hasTag,
  nonePassed,
  questionOf,
  requirementsFor,
  strengthened,
  type SourceFix,
} from "./advice-requirements.ts";
import { percentOf } from "../sources/rollup-rows.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";
import { parseRecord } from "../../records/record/record.ts";

/**
 * Advises the next step towards enforcement (RFC 9989 §5): monitoring, a rehearsal with `t=y`, quarantine, and where nobody writes to
 * mailing lists, reject; each for at least 14 days with reports. Pure. It never advises to publish what protects less than the present
 * record: no policy, alignment or test mode is ever relaxed.
 */
export const advise = (facts: AdviceFacts): Advice => {
  const stage = stageOf(facts.policy);
  const requirements = requirementsFor(stage, facts);
  const ready = requirements.every(({ met }) => met);
  const next = nextStep({ facts, stage, requirements, ready });
  const counted = sumOf(facts.sources, "messages");
  const unauthenticated_percent = percentOf(facts.unauthenticated, counted + facts.unauthenticated);
  const obstacles = obstaclesOf({ facts, stage, requirements, ready });
  return { stage, ready, next, requirements, obstacles, notes: notesOf(stage, facts), unauthenticated_percent };
};

/**
 * The advice that holds whatever any single unknown reporter says. `first`: by all that decides; `others`: by parts of it. When the
 * first one moves on, but another one does not, that one is the advice.
 */
export const mostCautious = (first: Advice, others: readonly Advice[]): Advice =>
  isCautious(first) ? first : others.reduce((worst, one) => (openOf(one) > openOf(worst) ? one : worst), first);

const isCautious = ({ ready, next }: Advice) => !ready && next?.record == null;

/** How much speaks against the next stage. */
const openOf = ({ requirements, next }: Advice) =>
  2 * requirements.filter(({ met }) => !met).length + (next?.record == null ? 1 : 0);

const stageOf = (policy: StatePolicy | null) => {
  if (policy === null) return "none";
  if (policy.p === "none") return "monitoring";
  if (policy.p === "quarantine") return policy.t === "y" ? "rehearsal" : "quarantine";
  return policy.t === "y" ? "reject_rehearsal" : "reject";
};

interface Situation {
  readonly facts: AdviceFacts;
  readonly stage: AdviceStage;
  readonly requirements: readonly AdviceRequirement[];
  readonly ready: boolean;
}

const step = (action: AdviceAction, why: string, record: string | null = null) => ({
  action,
  record,
  why,
  source: null,
  steps: [],
});

const nextStep = (situation: Situation) => {
  const { facts, stage, ready } = situation;
  const first = recordStep(facts);
  if (first !== null) return first;
  if (facts.record === null) return parentStep(facts, stage);
  if (facts.sendsMail === false) return rejectAllStep(facts, facts.record, situation);
  const higher = ready ? higherStep(stage, facts.record) : null;
  return higher ?? obstacleStep(situation) ?? belowStep(facts, stage, facts.record) ?? waitStep(situation);
};

/** Without reports nothing is known: the record is the first step. */
const recordStep = ({ domain, status, failing, record, policy }: AdviceFacts): AdviceStep | null => {
  if (status === "action_required") {
    const what = failing.map(({ message }) => message).join(" ");
    return step(
      "fix_record",
      `Publish the dns_records of the domain, so that reports arrive.${what === "" ? "" : ` ${what}`}`,
    );
  }
  const corrected = record === null ? null : correctedPolicy(record);
  if (corrected !== null && status === "active") return step("fix_record", corrected.why, corrected.text);
  if (status === "pending" || (record === null && policy === null)) {
    return step("publish_record", `Publish the dns_records of ${domain}, then call verify.`);
  }
  return null;
};

const parentStep = ({ domain, policy }: AdviceFacts, stage: AdviceStage) => {
  const from = policy?.inherited_from;
  if (from == null || stage === "reject" || stage === "quarantine") return null;
  return step("raise_parent", `${domain} has no record of its own: the policy published at ${from} applies.`);
};

const higherStep = (stage: AdviceStage, record: string): AdviceStep | null => {
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
      return publish(
        "end_rehearsal",
        record,
        [["t", "n"]],
        "Nearly all mail passed in test mode: let receivers apply quarantine.",
      );
    case "quarantine":
      return publish("reject", record, [["p", "reject"]], "Nearly all mail passes: let receivers reject what fails.");
    case "reject_rehearsal":
      return publish(
        "end_rehearsal",
        record,
        [["t", "n"]],
        "Nearly all mail passed in test mode: let receivers apply reject.",
      );
    case "reject":
      return null;
    default:
      return stage satisfies never;
  }
};

const REHEARSE =
  "Nearly all mail passes: test quarantine. With t=y receivers apply none; older ones that do not know t apply quarantine.";
const NO_REHEARSAL =
  "Nearly all mail passes: publish quarantine in one step, because t=y would also relax sp or np, which protect subdomains today.";

const publish = (action: AdviceAction, record: string, tags: Parameters<typeof strengthened>[1], why: string) => {
  const text = strengthened(record, tags);
  return text === null || text === record ? null : step(action, why, text);
};

/**
 * Protects subdomains, when no larger step is open. Never before `p` is enforced: the rehearsal by `t=y` would relax their policy
 * (RFC 9989 §4.7).
 */
const belowStep = (facts: AdviceFacts, stage: AdviceStage, record: string) => {
  if (stage !== "quarantine" && stage !== "reject") return null;
  return missingNamesStep(facts, record) ?? subdomainsStep(facts, record);
};

/** A name that does not exist sends no mail, so `np=reject` is safe (RFC 9989 §4.7). */
const missingNamesStep = (facts: AdviceFacts, record: string) => {
  const isSafe = facts.names.every(({ exists }) => exists === true);
  const isOpen = facts.policy?.np !== "reject" && !hasTag(record, "np");
  if (!facts.isOrganisational || !isSafe || !isOpen || facts.reportedDays === 0) return null;
  const why = "Subdomains that do not exist send no mail: let receivers reject forged mail from them.";
  return publish("protect_missing_names", record, [["np", "reject"]], why);
};

const SUBDOMAIN_SHARE_MIN = 0.99;

/** `sp` may follow `p` when the mail of the names below passes. */
const subdomainsStep = ({ policy, names, isOrganisational }: AdviceFacts, record: string) => {
  if (policy === null || !isOrganisational || !hasTag(record, "sp") || policy.sp === policy.p) return null;
  const { messages, aligned } = sumFields(names, "messages", "aligned");
  if (aligned < messages * SUBDOMAIN_SHARE_MIN) return null;
  const why = `sp=${policy.sp} protects subdomains less than p=${policy.p} protects the domain, and their mail passes.`;
  return publish("protect_subdomains", record, [["sp", policy.p]], why);
};

/** A domain without mail needs no rehearsal: all mail from it is forged. */
const rejectAllStep = (
  { isOrganisational, passedLately, reportedLately }: AdviceFacts,
  record: string,
  situation: Situation,
): AdviceStep | null => {
  if (passedLately > 0) return waitStep(situation);
  const reports = reportedLately === 0 ? "" : ` ${nonePassed(reportedLately)}`;
  const why = `You declared that this domain sends no mail: let receivers reject all mail from it.${reports}`;
  const below = isOrganisational ? (["sp", "np"] as const).filter((tag) => hasTag(record, tag)) : [];
  const test = hasTag(record, "t") ? ([["t", "n"]] as const) : [];
  return publish(
    "reject_all",
    record,
    [["p", "reject"], ...below.map((tag) => [tag, "reject"] as const), ...test],
    why,
  );
};

const isOpen = (requirements: readonly AdviceRequirement[], ...codes: readonly AdviceRequirement["code"][]) =>
  requirements.some(({ code, met }) => !met && codes.includes(code));

/** The sender with the most mail that keeps the domain from the next stage. */
const obstacleStep = ({ facts, requirements }: Situation) => {
  const month = weighMail(facts.sources);
  const worst = month.failing[0] ?? weighMail(facts.recentSources).failing[0];
  const failing = isOpen(requirements, "aligned_share", "recent_share") ? worst : undefined;
  const unknown = isOpen(requirements, "unknown_sources") ? month.unknown[0] : undefined;
  if (failing !== undefined && (unknown === undefined || failingMessages(failing) >= unknown.messages)) {
    return about("fix_sources", failing, fixOf(failing, facts));
  }
  return unknown === undefined ? null : about("classify_sources", unknown, questionOf(unknown, facts));
};

const OBSTACLES_MAX = 20;

/** All senders that keep an open requirement from being met. */
const obstaclesOf = ({ facts, requirements }: Situation): AdviceObstacle[] => {
  const month = weighMail(facts.sources);
  const view = (problem: AdviceObstacle["problem"], source: AdvisedSource) => ({
    source: source.key,
    name: source.name,
    problem,
    messages: source.messages,
    failing: failingMessages(source),
  });
  return [
    ...(isOpen(requirements, "aligned_share", "recent_share")
      ? month.failing.map((source) => view("failing", source))
      : []),
    ...(isOpen(requirements, "unknown_sources") ? month.unknown.map((source) => view("unclassified", source)) : []),
  ]
    .toSorted((a, b) => concerned(b) - concerned(a))
    .slice(0, OBSTACLES_MAX);
};

const concerned = ({ problem, messages, failing }: AdviceObstacle) => (problem === "failing" ? failing : messages);

const about = (action: AdviceAction, { key, bundled }: AdvisedSource, { why, steps }: SourceFix) => ({
  action,
  record: null,
  source: bundled === undefined ? key : null,
  steps: [...steps],
  why: [why, ...steps.slice(0, 1)].join(" "),
});

/** Time alone meets what is missing. */
const waitStep = ({ stage, requirements, ready }: Situation) => {
  if (stage === "reject" || ready) return null;
  const open = requirements.filter(({ met }) => !met);
  const isFinal = open.every(({ code }) => code === "few_forwarded");
  return isFinal ? null : step("wait", open.map(({ message }) => message).join(" "));
};

const NAMES_MAX = 5;
const HEALTH_MAX = 10;

/** What the owner of a domain should know about its policy. */
const notesOf = (stage: AdviceStage, facts: AdviceFacts): AdviceNote[] => {
  const notes: ReadonlyArray<readonly [AdviceNote["code"], string | null]> = [
    ["mailing_lists", mailingLists(stage, facts)],
    ["subdomain_policy_weaker", weakerSubdomains(facts)],
    ["names_unchecked", uncheckedNames(facts)],
    ["pct_historic", historicPct(facts)],
    ["test_mode", testMode(stage)],
    ["publish_spf_none", noSpf(facts)],
    ["sends_mail_unset", sendsMailUnset(facts)],
    ["policy_inherited", inheritedPolicy(facts)],
    ["unauthenticated_reports", unauthenticatedReports(facts)],
    ["unknown_reporters", unknownReporters(facts)],
    ...facts.health.slice(0, HEALTH_MAX).map(({ message, fix }) => {
      const text = fix === null ? message : `${message} ${fix}`;
      return ["health", text] as const;
    }),
  ];
  return notes.flatMap(([code, message]) => (message === null ? [] : [{ code, message }]));
};

/** RFC 9989 §7.4: a domain whose users write to mailing lists should not publish reject. */
const mailingLists = (stage: AdviceStage, { domain, sendsMail }: AdviceFacts) =>
  sendsMail === false || (stage !== "quarantine" && stage !== "reject" && stage !== "reject_rehearsal")
    ? null
    : `If people write from ${domain}, and so to mailing lists, stay at p=quarantine: lists change mail, and with p=reject it is rejected. Use p=reject for domains whose mail is sent only by machines.`;

const weakerSubdomains = ({ policy, isOrganisational }: AdviceFacts) => {
  if (policy === null || !policy.own || !isOrganisational) return null;
  const weaker = (["sp", "np"] as const).filter((tag) => POLICY_STRENGTH[policy[tag]] < POLICY_STRENGTH[policy.p]);
  if (weaker.length === 0) return null;
  const tags = weaker.map((tag) => `${tag}=${policy[tag]}`).join(", ");
  return `${tags} protects subdomains less than p=${policy.p} protects the domain: spoofers use subdomains instead.`;
};

const uncheckedNames = ({ policy, isOrganisational, names }: AdviceFacts) => {
  const missing = names.filter(({ exists }) => exists !== true).map(({ name }) => name);
  if (!isOrganisational || policy === null || policy.np === "reject" || missing.length === 0) return null;
  const more = missing.length > NAMES_MAX ? ` and ${missing.length - NAMES_MAX} more` : "";
  return `np=reject has to wait: mail from ${missing.slice(0, NAMES_MAX).join(", ")}${more} passes, but the names were not found in the DNS. Publish a record at each of them first.`;
};

const historicPct = ({ record }: AdviceFacts) => {
  const pct = record === null ? undefined : parseRecord(record).values?.pct;
  return pct === undefined || pct >= 100
    ? null
    : `pct=${pct} is historic: current receivers apply the policy to all mail, older ones to ${pct} % of the failing mail.`;
};

const testMode = (stage: AdviceStage) =>
  stage === "rehearsal" || stage === "reject_rehearsal"
    ? `With t=y receivers are asked to apply ${stage === "rehearsal" ? "nothing" : "quarantine"}; older ones do not know t and apply p in full.`
    : null;

const noSpf = ({ domain, sendsMail }: AdviceFacts) =>
  sendsMail === false
    ? `A domain that sends no mail should say so in SPF as well. Publish ${domain} TXT "v=spf1 -all".`
    : null;

/** Without reports nothing is known about the mail of the domain. */
const sendsMailUnset = ({ sendsMail, passedLately, reportedLately }: AdviceFacts) =>
  sendsMail !== null || passedLately > 0 || reportedLately === 0
    ? null
    : `${nonePassed(reportedLately)} If the domain sends no mail, set sends_mail to false: then p=reject is advised at once.`;

const inheritedPolicy = ({ domain, policy }: AdviceFacts) =>
  policy?.inherited_from == null ? null : `The policy of ${policy.inherited_from} applies to ${domain}.`;

/** Anybody with a domain can be a reporter. */
const unknownReporters = ({ unknownReporters: { names, messages, isCovered } }: AdviceFacts) => {
  if (names.length === 0) return null;
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  const who = `${names.slice(0, NAMES_MAX).join(", ")}${more}`;
  return isCovered
    ? `This advice leaves out ${messages.toLocaleString("en-US")} messages of the last 30 days in reports of unknown reporters: ${who}. Accept those that you know.`
    : `Fewer than two known reporters cover this domain. Every requirement must therefore hold without each single one of the unknown reporters: ${who}. Accept those that you know.`;
};

/** Anybody can send a report; what nobody authenticates changes no policy. */
const unauthenticatedReports = ({ unauthenticated, unknownReporters: { unvouchedWords } }: AdviceFacts) =>
  unauthenticated === 0
    ? null
    : `This advice leaves out ${unauthenticated.toLocaleString("en-US")} messages of the last 30 days: only reports name them whose mail ${unvouchedWords}.`;
