import { mostFirst, sumFields } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { isoDay } from "../../../foundation/base/days.ts";
import { integerField, textField } from "../../../foundation/http/schema-fields.ts";
import { action, shortName } from "../../../notifications/mail/mail-content.ts";
import { alertRule, SENDER_FIELDS, domainLink, items, passed } from "./alert-rule.ts";
import {
  judgeNewcomer,
  groupFindings,
  NO_ALERTS,
  type ReviewFacts,
  type RuleResult,
  subjectOfMany,
} from "./review-facts.ts";

const data = z.object({
  count: integerField("Number of new subdomains; more than ten come as one event."),
  names: z
    .array(z.object({ name: textField("The domain in the From header field."), ...SENDER_FIELDS }))
    .describe("The ten with the most messages."),
});
type NewNames = z.output<typeof data>;
type NewName = NewNames["names"][number];

/** Names of one review, those with the most mail; the next review continues. */
const NAMES_MAX = 20_000;
/** Spoofers make names up; mail that passes DMARC is the owner's. */
const ALIGNED_MIN = 3;
const ALERT_NAMES_MAX = 10;

/** New names in From below the domain whose mail passes DMARC. */
const findNewSubdomains = (facts: ReviewFacts): RuleResult => {
  const { domain, recent, rules } = facts;
  const names = rules.unreviewedNames(domain.number, recent, NAMES_MAX);
  if (names.length === 0) return NO_ALERTS;
  const all = names.map(({ name }) => name);
  const days = Map.groupBy(rules.nameDays(domain.number, recent, all), ({ name }) => name);
  const reviewedNames: string[] = [];
  const found: NewName[] = [];
  for (const { name, firstDay } of names) {
    const own = days.get(name) ?? [];
    const { messages, aligned } = sumFields(own, "messages", "aligned");
    const judgement = name.endsWith(`.${domain.domain}`)
      ? judgeNewcomer({ firstDay, hasWeight: aligned >= ALIGNED_MIN }, facts)
      : "reviewed";
    if (judgement === "wait") continue;
    reviewedNames.push(name);
    if (judgement === "alert") found.push({ name, first_day: isoDay(firstDay), messages, aligned });
  }
  const alerts = groupFindings(found.toSorted(mostFirst("messages"))).map(newSubdomainsAlert);
  return { alerts, reviewedNames, isPending: names.length === NAMES_MAX && reviewedNames.length > 0 };
};

export const NEW_SUBDOMAIN = alertRule({
  name: "new_subdomain",
  words: "New subdomain",
  description: "Mail from a new name below the domain passed DMARC.",
  summary: "Mail that passes DMARC has a subdomain in From that was not seen before",
  title: "new subdomains in reports",
  data,
  example: {
    count: 1,
    names: [{ name: "news.example.com", first_day: "2026-01-01", messages: 412, aligned: 410 }],
  },
  review: findNewSubdomains,
  mail: ({ count, names }, domain) => [
    items(
      names.map((name) => ({ text: `${shortName(name.name)}: ${passed(name)}` })),
      count,
    ),
    action("If it is not yours, somebody else uses your domain. np=reject protects names that do not exist."),
    domainLink(domain, "advice", "Your next step"),
  ],
});

/** One name, or many together; the most messages first. */
const newSubdomainsAlert = (names: readonly NewName[]) => {
  const [first] = names;
  const isOne = names.length === 1 && first !== undefined;
  const found: NewNames = { count: names.length, names: names.slice(0, ALERT_NAMES_MAX) };
  return {
    rule: "new_subdomain",
    subject: isOne ? first.name : subjectOfMany(names.map(({ name }) => name)),
    data: found,
    summary: isOne ? `new subdomain ${first.name}: ${passed(first)}` : `${names.length} new subdomains`,
    cooldown: true,
  };
};
