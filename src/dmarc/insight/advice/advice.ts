import { sumFields, sumOf } from "../../../foundation/base/sums.ts";
import { isoDay } from "../../../foundation/base/days.ts";
import {
  type AdvisedSource,
  type AdviceFacts,
  type AdviceSituation,
  failingMessages,
  newFailures,
  shareWithoutRecovered,
  weighMail,
} from "./advice-facts.ts";
import type {
  Advice,
  AdviceAction,
  AdviceObstacle,
  AdviceRequirement,
  AdviceStage,
  AdviceStep,
} from "./advice-model.ts";
import { ALIGNED_SHARE_MIN, requirementsFor } from "./advice-requirements.ts";
import { correctedPolicy, hasTag, strengthened } from "./record-edit.ts";
import { fixOf, keyErrors, recoveredText, questionOf, type SourceFix } from "./source-fix.ts";
import { recoveryDay, notBeforeOf } from "./advice-dates.ts";
import { historicPct, notesOf, silenceText } from "./advice-notes.ts";
import { percentOf } from "../sources/rollup-rows.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";

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
  const notes = notesOf({ facts, stage, requirements, ready });
  const not_before = notBeforeOf({ facts, stage, requirements });
  return { stage, ready, next, requirements, obstacles, notes, not_before, unauthenticated_percent };
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

const step = (action: AdviceAction, why: string, record: string | null = null, steps: readonly string[] = []) => ({
  action,
  record,
  why,
  source: null,
  steps: [...steps],
});

const nextStep = (situation: AdviceSituation) => {
  const { facts, stage, ready } = situation;
  const first = recordStep(facts);
  if (first !== null) return first;
  if (facts.record === null) return parentStep(facts, stage);
  if (facts.sendsMail === false) return rejectAllStep(facts, facts.record, situation);
  const urgent = keyStep(facts) ?? (ready ? higherStep(stage, facts.record) : null) ?? silenceStep(stage, facts);
  if (urgent !== null) return urgent;
  const below = belowStep(facts, stage, facts.record) ?? pctStep(situation, facts.record);
  return obstacleStep(situation) ?? below ?? waitStep(situation);
};

/** Signatures with a key that has an error fail, whatever the policy is. */
const keyStep = (facts: AdviceFacts) => {
  const [first] = keyErrors(facts);
  if (first === undefined) return null;
  const selector = first.key?.selector;
  const user = weighMail(facts.sources).failing.find(({ key, history }) => {
    const isOver = history === null || history.hasRecovered;
    return !isOver && selector !== undefined && facts.detailOf(key)?.selectors.has(selector) === true;
  });
  if (user !== undefined) return fixStep(user, facts);
  return step("fix_key", first.message, null, first.fix === null ? [] : [first.fix]);
};

/** Whether a domain that shows no mail of its own sends any decides about every other step. */
const silenceStep = (stage: AdviceStage, facts: AdviceFacts) => {
  const why = silenceText(facts);
  if (why === null || stage === "reject") return null;
  return step("set_sends_mail", why, null, [
    "If it sends none, set sends_mail to false: then p=reject is advised at once.",
    `If it does, set sends_mail to true, and set up SPF and DKIM for ${facts.domain} at its senders.`,
  ]);
};

/** Older receivers apply the policy to a part of the mail only. */
const pctStep = ({ stage, requirements, facts }: AdviceSituation, record: string) => {
  const isOpenYet = requirements.some(({ code, met }) => !met && code !== "few_forwarded");
  if (isOpenYet || historicPct(facts) === null || (stage !== "quarantine" && stage !== "reject")) return null;
  const why = `${historicPct(facts) ?? ""} Remove pct, so that all of them apply it to all mail.`;
  return publish("remove_pct", record, [["pct", null]], why);
};

const PUBLISH_STEPS = ["Publish the record of the domain.", "Have the DNS checked."];

/** Without reports nothing is known: the record is the first step. */
const recordStep = ({ domain, status, failing, record, policy }: AdviceFacts): AdviceStep | null => {
  if (status === "action_required") {
    const what = failing.map(({ message }) => message).join(" ");
    return step("fix_record", what === "" ? "No reports can arrive." : what, null, PUBLISH_STEPS);
  }
  const corrected = record === null ? null : correctedPolicy(record);
  if (corrected !== null && status === "active") return step("fix_record", corrected.why, corrected.text);
  if (status === "pending" || (record === null && policy === null)) {
    const why = `No report can arrive before the record of ${domain} is published and has its reporting address.`;
    return step("publish_record", why, null, PUBLISH_STEPS);
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
        [["t", null]],
        "Nearly all mail passed in test mode: let receivers apply quarantine.",
      );
    case "quarantine":
      return publish("reject", record, [["p", "reject"]], "Nearly all mail passes: let receivers reject what fails.");
    case "reject_rehearsal":
      return publish(
        "end_rehearsal",
        record,
        [["t", null]],
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
  { isOrganisational, passedLately }: AdviceFacts,
  record: string,
  situation: AdviceSituation,
): AdviceStep | null => {
  if (passedLately > 0) return waitStep(situation);
  const why = "You declared that this domain sends no mail: let receivers reject all mail from it.";
  const below = isOrganisational ? (["sp", "np"] as const).filter((tag) => hasTag(record, tag)) : [];
  const test = hasTag(record, "t") ? ([["t", null]] as const) : [];
  return publish(
    "reject_all",
    record,
    [["p", "reject"], ...below.map((tag) => [tag, "reject"] as const), ...test],
    why,
  );
};

const isOpen = (requirements: readonly AdviceRequirement[], ...codes: readonly AdviceRequirement["code"][]) =>
  requirements.some(({ code, met }) => !met && codes.includes(code));

/**
 * The sender that keeps the domain from the next stage: the newest failure of one that used to pass, else the one with the most mail.
 * A recovered sender needs no step.
 */
const obstacleStep = ({ facts, requirements }: AdviceSituation) => {
  const [newest] = newFailures(facts);
  if (newest !== undefined) return fixStep(newest, facts);
  const month = weighMail(facts.sources);
  const failing = isOpen(requirements, "aligned_share", "recent_share") ? worstOf(facts) : undefined;
  const unknown = isOpen(requirements, "unknown_sources")
    ? month.unknown.find(({ isAwaited }) => !isAwaited)
    : undefined;
  if (failing !== undefined && (unknown === undefined || failingMessages(failing) >= unknown.messages)) {
    return fixStep(failing, facts);
  }
  return unknown === undefined ? null : about("classify_sources", unknown, questionOf(unknown, facts));
};

/** The source with the most failures that has not recovered; undefined where time alone brings the share. */
const worstOf = ({ sources, recentSources }: AdviceFacts) => {
  const weights = [weighMail(sources), weighMail(recentSources)];
  if (weights.every((weight) => weight.failing.length === 0 || shareWithoutRecovered(weight) >= ALIGNED_SHARE_MIN)) {
    if (weights.some(({ failing }) => failing.some(({ history }) => history?.hasRecovered === true))) return undefined;
  }
  return weights.flatMap(({ failing }) => failing).find(({ history }) => history?.hasRecovered !== true);
};

const fixStep = (source: AdvisedSource, facts: AdviceFacts) => {
  const known = { history: source.history, detail: source.history === null ? null : facts.detailOf(source.key) };
  return about("fix_sources", source, fixOf(source, facts, known));
};

const OBSTACLES_MAX = 20;

/** All senders that keep an open requirement from being met. */
const obstaclesOf = ({ facts, requirements }: AdviceSituation): AdviceObstacle[] => {
  const month = weighMail(facts.sources);
  const isFailing = isOpen(requirements, "aligned_share", "recent_share");
  const failing = (isFailing ? month.failing : newFailures(facts)).filter(
    ({ history }) => history?.hasRecovered !== true,
  );
  const view = (problem: AdviceObstacle["problem"], source: AdvisedSource) => ({
    source: source.key,
    name: source.name,
    problem,
    messages: source.messages,
    failing: failingMessages(source),
  });
  return [
    ...failing.map((source) => view("failing", source)),
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
  why,
});

const NO_REPORTS =
  "No report about the last 30 days has arrived. Receivers send the first ones a day or two after the record is published.";

/** Time alone meets what is missing. */
const waitStep = ({ facts, stage, requirements, ready }: AdviceSituation) => {
  const open = requirements.filter(({ met }) => !met);
  const recovered = isOpen(open, "aligned_share", "recent_share") ? recoveredSteps(facts) : [];
  if ((stage === "reject" && recovered.length === 0) || ready) return null;
  if (facts.reportedDays === 0 && facts.unauthenticated === 0) return step("wait", NO_REPORTS);
  const isFinal = open.every(({ code }) => code === "few_forwarded");
  const others = open.filter(
    ({ code }) => recovered.length === 0 || (code !== "aligned_share" && code !== "recent_share"),
  );
  const texts = [...recovered, ...others.map(({ message }) => message)];
  return isFinal ? null : step("wait", texts.join(" "));
};

const RECOVERED_MAX = 3;

/** What passes again, and when the share of the last 30 days is reached. */
const recoveredSteps = (facts: AdviceFacts): readonly string[] => {
  const recovered = weighMail(facts.sources).failing.filter(({ history }) => history?.hasRecovered === true);
  const day = recoveryDay(facts);
  if (day === null) return [];
  return [
    ...recovered
      .slice(0, RECOVERED_MAX)
      .flatMap((one) => (one.history === null ? [] : recoveredText(one, one.history))),
    `There is nothing to do: 99 % of the mail of 30 days will have passed on about ${isoDay(day)}.`,
  ];
};
