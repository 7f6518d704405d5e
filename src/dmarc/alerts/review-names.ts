import { isoDay } from "../../base/days.ts";
import { judgeNewcomer } from "./learning.ts";
import { namesAlert } from "./alert-texts.ts";
import { type Review, together } from "./review.ts";

/** Names looked at in one review, those with most mail; the rest are looked at in the next. */
const NAMES_MAX = 20_000;
/** Whoever forges a domain makes names up; mail that passes DMARC is the owner's. */
const ALIGNED_MIN = 3;

/** New names in `From` below the domain whose mail passes DMARC. */
export const reviewNames = ({ tx, domain, today, recent, learning, rules, raise }: Review): boolean => {
  const names = rules.unreviewedNames(domain.number, recent, NAMES_MAX);
  if (names.length === 0) return false;
  const all = names.map(({ name }) => name);
  const days = Map.groupBy(rules.nameDays(domain.number, recent, all), ({ name }) => name);
  const settled: string[] = [];
  const found: { name: string; first_day: string; messages: number; aligned: number }[] = [];
  for (const { name, firstDay } of names) {
    const own = days.get(name) ?? [];
    const messages = own.reduce((sum, day) => sum + day.messages, 0);
    const aligned = own.reduce((sum, day) => sum + day.aligned, 0);
    const isBelow = name.endsWith(`.${domain.domain}`);
    const judgement = isBelow
      ? judgeNewcomer({ firstDay, hasWeight: aligned >= ALIGNED_MIN }, { today, learning })
      : "reviewed";
    if (judgement === "wait") continue;
    settled.push(name);
    if (judgement === "alert") found.push({ name, first_day: isoDay(firstDay), messages, aligned });
  }
  rules.markNames(tx, domain.number, settled);
  for (const group of together(found.toSorted((a, b) => b.messages - a.messages))) raise(namesAlert(group));
  return names.length === NAMES_MAX && settled.length > 0;
};
