import type { Stage } from "./advice.ts";
import type { AdviceFacts } from "./advice-facts.ts";
import { nonePassed } from "./advice-requirements.ts";
import { parseRecord } from "../record/record.ts";

export const NOTE_CODES = [
  "mailing_lists",
  "subdomain_policy_weaker",
  "names_unchecked",
  "pct_historic",
  "test_mode",
  "publish_spf_none",
  "policy_inherited",
  "sends_mail_unset",
  "unauthenticated_reports",
  "health",
] as const;

/** Something worth knowing beside the next step. */
export interface AdviceNote {
  readonly code: (typeof NOTE_CODES)[number];
  readonly message: string;
}

const STRENGTH = { none: 0, quarantine: 1, reject: 2 } as const;
const PERCENT_ALL = 100;
const NAMES_MAX = 5;

/** What the owner of a domain should know about its policy. */
export const notesOf = (stage: Stage, facts: AdviceFacts): readonly AdviceNote[] => [
  ...mailingLists(stage, facts),
  ...subdomains(facts),
  ...unchecked(facts),
  ...historic(facts),
  ...testMode(stage),
  ...withoutMail(facts),
  ...inherited(facts),
  ...leftOut(facts),
  ...healthFindings(facts),
];

const HEALTH_MAX = 10;

/** What the domain publishes and what is wrong with it: errors and warnings of the last health check. */
const healthFindings = ({ health }: AdviceFacts): readonly AdviceNote[] =>
  health.slice(0, HEALTH_MAX).map(({ message, fix }) => ({
    code: "health",
    message: fix === null ? message : `${message} ${fix}`,
  }));

/** Anybody can mail a report: what nobody vouches for moves no policy. */
const leftOut = ({ unauthenticated }: AdviceFacts): readonly AdviceNote[] => {
  if (unauthenticated === 0) return [];
  const message = `Reports tell of ${unauthenticated} more messages of the last 30 days in mail that is not authenticated as the reporter's. They are left out here.`;
  return [{ code: "unauthenticated_reports", message }];
};

/** RFC 9989 §7.4: a domain from which people write should not publish reject. */
const mailingLists = (stage: Stage, { domain, sendsMail }: AdviceFacts): readonly AdviceNote[] => {
  if (sendsMail === false || (stage !== "quarantine" && stage !== "reject" && stage !== "reject_rehearsal")) return [];
  const message = `Where people write from ${domain}, and so to mailing lists, p=quarantine is the place to stop: lists change mail, and with p=reject it is refused. Use p=reject for domains whose mail is only sent by machines.`;
  return [{ code: "mailing_lists", message }];
};

const subdomains = ({ policy, isOrganisational }: AdviceFacts): readonly AdviceNote[] => {
  if (policy === null || !policy.own || !isOrganisational) return [];
  const weaker = (["sp", "np"] as const).filter((tag) => STRENGTH[policy[tag]] < STRENGTH[policy.p]);
  if (weaker.length === 0) return [];
  const tags = weaker.map((tag) => `${tag}=${policy[tag]}`).join(", ");
  const message = `${tags} protects names below the domain less than p=${policy.p} protects the domain: forgers use them instead.`;
  return [{ code: "subdomain_policy_weaker", message }];
};

const unchecked = ({ policy, isOrganisational, names }: AdviceFacts): readonly AdviceNote[] => {
  const open = names.filter(({ exists }) => exists !== true);
  if (!isOrganisational || policy === null || policy.np === "reject" || open.length === 0) return [];
  const shown = open.slice(0, NAMES_MAX).map(({ name }) => name);
  const more = open.length > shown.length ? ` and ${open.length - shown.length} more` : "";
  const message = `np=reject waits: mail from ${shown.join(", ")}${more} passes, and no name was found in the DNS for it. Give each a record there first.`;
  return [{ code: "names_unchecked", message }];
};

const historic = ({ record }: AdviceFacts): readonly AdviceNote[] => {
  const pct = record === null ? undefined : parseRecord(record).values?.pct;
  if (pct === undefined || pct >= PERCENT_ALL) return [];
  const message = `pct=${pct} is historic: receivers of today apply the policy to all mail, older ones to ${pct} % of what fails.`;
  return [{ code: "pct_historic", message }];
};

const testMode = (stage: Stage): readonly AdviceNote[] => {
  if (stage !== "rehearsal" && stage !== "reject_rehearsal") return [];
  const soft = stage === "rehearsal" ? "nothing" : "quarantine";
  return [
    {
      code: "test_mode",
      message: `With t=y receivers are asked to apply ${soft}; older ones do not know t and apply p in full.`,
    },
  ];
};

/** Without a report nobody knows whether there is mail. */
const withoutMail = ({ domain, sendsMail, passedLately, reportedLately }: AdviceFacts): readonly AdviceNote[] => {
  if (sendsMail === false) {
    const message = `A domain that sends no mail should say so in SPF as well: ${domain} TXT "v=spf1 -all".`;
    return [{ code: "publish_spf_none", message }];
  }
  if (sendsMail !== null || passedLately > 0 || reportedLately === 0) return [];
  const message = `${nonePassed(reportedLately)} If the domain sends no mail, set sends_mail to false: then p=reject is advised at once.`;
  return [{ code: "sends_mail_unset", message }];
};

const inherited = ({ domain, policy }: AdviceFacts): readonly AdviceNote[] =>
  policy === null || policy.inherited_from === null
    ? []
    : [{ code: "policy_inherited", message: `${domain} has the policy of ${policy.inherited_from}.` }];
