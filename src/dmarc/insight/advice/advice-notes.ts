import { parseRecord } from "../../records/record/record.ts";
import type { AdviceFacts } from "./advice-facts.ts";
import { nonePassed } from "./advice-requirements.ts";
import type { AdviceNote, AdviceStage } from "./advice-schema.ts";
import { POLICY_STRENGTH } from "./record-edit.ts";

const NAMES_MAX = 5;
const HEALTH_MAX = 10;

/** What the owner of a domain should know about its policy. */
export const notesOf = (stage: AdviceStage, facts: AdviceFacts): AdviceNote[] => {
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
const mailingLists = (stage: AdviceStage, { domain, sendsMail }: AdviceFacts): string | null =>
  sendsMail === false || (stage !== "quarantine" && stage !== "reject" && stage !== "reject_rehearsal")
    ? null
    : `If people write from ${domain}, and so to mailing lists, stay at p=quarantine: lists change mail, and with p=reject it is rejected. Use p=reject for domains whose mail is sent only by machines.`;

const weakerSubdomains = ({ policy, isOrganisational }: AdviceFacts): string | null => {
  if (policy === null || !policy.own || !isOrganisational) return null;
  const weaker = (["sp", "np"] as const).filter((tag) => POLICY_STRENGTH[policy[tag]] < POLICY_STRENGTH[policy.p]);
  if (weaker.length === 0) return null;
  const tags = weaker.map((tag) => `${tag}=${policy[tag]}`).join(", ");
  return `${tags} protects subdomains less than p=${policy.p} protects the domain: spoofers use subdomains instead.`;
};

const uncheckedNames = ({ policy, isOrganisational, names }: AdviceFacts): string | null => {
  const missing = names.filter(({ exists }) => exists !== true).map(({ name }) => name);
  if (!isOrganisational || policy === null || policy.np === "reject" || missing.length === 0) return null;
  const more = missing.length > NAMES_MAX ? ` and ${missing.length - NAMES_MAX} more` : "";
  return `np=reject has to wait: mail from ${missing.slice(0, NAMES_MAX).join(", ")}${more} passes, but the names were not found in the DNS. Publish a record at each of them first.`;
};

const historicPct = ({ record }: AdviceFacts): string | null => {
  const pct = record === null ? undefined : parseRecord(record).values?.pct;
  return pct === undefined || pct >= 100
    ? null
    : `pct=${pct} is historic: current receivers apply the policy to all mail, older ones to ${pct} % of the failing mail.`;
};

const testMode = (stage: AdviceStage): string | null =>
  stage === "rehearsal" || stage === "reject_rehearsal"
    ? `With t=y receivers are asked to apply ${stage === "rehearsal" ? "nothing" : "quarantine"}; older ones do not know t and apply p in full.`
    : null;

const noSpf = ({ domain, sendsMail }: AdviceFacts): string | null =>
  sendsMail === false
    ? `A domain that sends no mail should say so in SPF as well. Publish ${domain} TXT "v=spf1 -all".`
    : null;

/** Without reports nothing is known about the mail of the domain. */
const sendsMailUnset = ({ sendsMail, passedLately, reportedLately }: AdviceFacts): string | null =>
  sendsMail !== null || passedLately > 0 || reportedLately === 0
    ? null
    : `${nonePassed(reportedLately)} If the domain sends no mail, set sends_mail to false: then p=reject is advised at once.`;

const inheritedPolicy = ({ domain, policy }: AdviceFacts): string | null =>
  policy?.inherited_from == null ? null : `The policy of ${policy.inherited_from} applies to ${domain}.`;

/** Anybody with a domain can be a reporter. */
const unknownReporters = ({ unknownReporters: { names, messages, isCovered } }: AdviceFacts): string | null => {
  if (names.length === 0) return null;
  const more = names.length > NAMES_MAX ? ` and ${names.length - NAMES_MAX} more` : "";
  const who = `${names.slice(0, NAMES_MAX).join(", ")}${more}`;
  return isCovered
    ? `This advice leaves out ${messages.toLocaleString("en-US")} messages of the last 30 days in reports of unknown reporters: ${who}. Accept those that you know.`
    : `Fewer than two known reporters cover this domain. Every requirement must therefore hold without each single one of the unknown reporters: ${who}. Accept those that you know.`;
};

/** Anybody can send a report; what nobody authenticates changes no policy. */
const unauthenticatedReports = ({
  unauthenticated,
  unknownReporters: { unvouchedWords },
}: AdviceFacts): string | null =>
  unauthenticated === 0
    ? null
    : `This advice leaves out ${unauthenticated.toLocaleString("en-US")} messages of the last 30 days: only reports name them whose mail ${unvouchedWords}.`;
