import { type AdviceFacts, type AdviceSituation, weighMail } from "./advice-facts.ts";
import type { AdviceNote, AdviceRequirement, AdviceStage } from "./advice-model.ts";
import { POLICY_STRENGTH } from "./record-edit.ts";
import { findingWithFix } from "./source-fix.ts";
import { parseRecord } from "../../records/record/record.ts";

const NAMES_MAX = 5;
const HEALTH_MAX = 10;

/** What the owner of a domain should know about its policy. */
export const notesOf = ({ stage, facts, requirements }: AdviceSituation): AdviceNote[] => {
  const openAlerts = openAlertsText(facts);
  const notes: ReadonlyArray<readonly [AdviceNote["code"], string | null]> = [
    ["open_alerts", openAlerts],
    ["mailing_lists", mailingLists(facts, requirements)],
    ["subdomain_policy_weaker", weakerSubdomains(facts)],
    ["names_unchecked", uncheckedNames(facts)],
    ["pct_historic", historicPct(facts)],
    ["test_mode", testMode(stage)],
    ["publish_spf_none", noSpf(facts)],
    ["sends_mail_unset", stage === "reject" ? silenceText(facts) : null],
    ["policy_inherited", inheritedPolicy(facts)],
    ["unauthenticated_reports", unauthenticatedReports(facts)],
    ["unknown_reporters", unknownReporters(facts)],
    ...facts.health.slice(0, HEALTH_MAX).map((finding) => ["health", findingWithFix(finding)] as const),
  ];
  return notes.flatMap(([code, message]) => (message === null ? [] : [{ code, message }]));
};

const openAlertsText = ({ openAlerts }: AdviceFacts) => {
  const [first] = openAlerts;
  if (first === undefined) return null;
  return openAlerts.length === 1
    ? `1 alert is open: ${first}.`
    : `${openAlerts.length} alerts are open; the first: ${first}.`;
};

/** RFC 9989 §7.4: a domain whose users write to mailing lists should not publish reject. */
const mailingLists = ({ domain, sources }: AdviceFacts, requirements: readonly AdviceRequirement[]) => {
  const isAhead = requirements.some(({ code }) => code === "few_forwarded");
  const { all, forwarded } = weighMail(sources);
  return !isAhead || (all > 0 && forwarded === 0)
    ? null
    : `If people write from ${domain}, and so to mailing lists, stay at p=quarantine: lists change mail, and with p=reject it is rejected. Use p=reject for domains whose mail is sent only by machines.`;
};

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
  return `np=reject has to wait: mail from ${namesText(missing)} passes, but the names were not found in the DNS. Publish a record at each of them first.`;
};

/** What `pct` below 100 means today; null without one. */
export const historicPct = ({ record }: AdviceFacts) => {
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

const inheritedPolicy = ({ domain, policy }: AdviceFacts) =>
  policy?.inherited_from == null ? null : `The policy of ${policy.inherited_from} applies to ${domain}.`;

/** Anybody with a domain can be a reporter. */
const unknownReporters = ({ unknownReporters: { names, messages, isCovered } }: AdviceFacts) => {
  if (names.length === 0) return null;
  const who = namesText(names);
  return isCovered
    ? `This advice leaves out ${messages.toLocaleString("en-US")} messages of the last 30 days in reports of unknown reporters: ${who}. Accept those that you know.`
    : `Fewer than two known reporters cover this domain. Every requirement must therefore hold without each single one of the unknown reporters: ${who}. Accept those that you know.`;
};

/** Anybody can send a report; what nobody authenticates changes no policy. */
const unauthenticatedReports = ({ unauthenticated, unauthenticatedNames, unknownReporters }: AdviceFacts) => {
  if (unauthenticated === 0) return null;
  const names = unauthenticatedNames.length === 0 ? "" : ` (${namesText(unauthenticatedNames)})`;
  const messages = unauthenticated === 1 ? "1 message" : `${unauthenticated.toLocaleString("en-US")} messages`;
  return `${messages} of the last 30 days ${unauthenticated === 1 ? "is" : "are"} left out: the mail with the reports about them ${unknownReporters.unvouchedWords}${names}.`;
};

const namesText = (names: readonly string[]) => {
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  return `${names.slice(0, NAMES_MAX).join(", ")}${more}`;
};

/** Whether reports or records say that a domain sends no mail, which its owner did not say; null when they do not. */
export const silenceText = ({ domain, sendsMail, sources, silentDays, declaredSilent }: AdviceFacts): string | null => {
  if (sendsMail !== null || weighMail(sources).messages > 0) return null;
  if (silentDays !== null) return `No mail of ${domain} has passed DMARC in ${silentDays} days. Does it send any?`;
  return declaredSilent === null ? null : `${declaredSilent} Does ${domain} send any mail?`;
};
