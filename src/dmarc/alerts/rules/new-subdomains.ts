import { isoDay } from "../../../foundation/base/days.ts";
import { plural } from "../../../notifications/mail/mail-text.ts";
import type { Alert } from "../../records/domains/raise.ts";
import type { AlertData } from "./alert-data.ts";
import {
  judgeNewcomer,
  groupFindings,
  NO_ALERTS,
  type ReviewFacts,
  type RuleResult,
  subjectOfMany,
} from "./review-facts.ts";

type NewName = AlertData<"new_subdomain">["names"][number];

/** Names of one review, those with the most mail; the next review continues. */
const NAMES_MAX = 20_000;
/** Spoofers make names up; mail that passes DMARC is the owner's. */
const ALIGNED_MIN = 3;
const ALERT_NAMES_MAX = 10;

/** New names in From below the domain whose mail passes DMARC. */
export const findNewSubdomains = (facts: ReviewFacts): RuleResult => {
  const { domain, recent, rules } = facts;
  const names = rules.unreviewedNames(domain.number, recent, NAMES_MAX);
  if (names.length === 0) return NO_ALERTS;
  const all = names.map(({ name }) => name);
  const days = Map.groupBy(rules.nameDays(domain.number, recent, all), ({ name }) => name);
  const reviewedNames: string[] = [];
  const found: NewName[] = [];
  for (const { name, firstDay } of names) {
    const own = days.get(name) ?? [];
    const messages = own.reduce((sum, day) => sum + day.messages, 0);
    const aligned = own.reduce((sum, day) => sum + day.aligned, 0);
    const judgement = name.endsWith(`.${domain.domain}`)
      ? judgeNewcomer({ firstDay, hasWeight: aligned >= ALIGNED_MIN }, facts)
      : "reviewed";
    if (judgement === "wait") continue;
    reviewedNames.push(name);
    if (judgement === "alert") found.push({ name, first_day: isoDay(firstDay), messages, aligned });
  }
  const alerts = groupFindings(found.toSorted((a, b) => b.messages - a.messages)).map(newSubdomainsAlert);
  return { alerts, reviewedNames, isPending: names.length === NAMES_MAX && reviewedNames.length > 0 };
};

/** One name, or many together; the most messages first. */
const newSubdomainsAlert = (names: readonly NewName[]): Alert => {
  const [first] = names;
  const isOne = names.length === 1 && first !== undefined;
  const data: AlertData<"new_subdomain"> = { count: names.length, names: names.slice(0, ALERT_NAMES_MAX) };
  return {
    rule: "new_subdomain",
    subject: isOne ? first.name : subjectOfMany(names.map(({ name }) => name)),
    data,
    summary: isOne
      ? `new subdomain ${first.name}: ${plural(first.messages, "message")}, ${first.aligned} passed DMARC`
      : `${names.length} new subdomains`,
    cooldown: true,
  };
};
