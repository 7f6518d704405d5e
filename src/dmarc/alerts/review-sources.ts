import { parseDay } from "../sources/day-range.ts";
import type { KeyedSource } from "../sources/source-keys.ts";
import { isForeign } from "../sources/domain-sources.ts";
import type { Source } from "../sources/source-response.ts";
import { judgeNewcomer } from "./learning.ts";
import { sourcesAlert } from "./alert-texts.ts";
import { type Review, together } from "./review.ts";

/** The rules wait so long for the reverse name of an address: it may show that the sender is another one. */
const REVERSE_NAME_WAIT_MS = 60 * 60_000;
/** Somebody who can send aligned mail is news with few messages. */
const ALIGNED_MESSAGES_MIN = 5;

/**
 * New senders whose mail could be the user's: it is aligned, or authenticates for some domain, or comes from a known service or the
 * domain's own network. Unauthenticated mail of others is no news, however much it is: see `review-spoofing.ts`.
 */
export const reviewSources = (review: Review): boolean => {
  const { tx, domain, nowMs, recent, rules, raise } = review;
  const unreviewed = new Set(rules.unreviewedSources(domain.number));
  if (unreviewed.size === 0) return false;
  const placed = review.placed(recent);
  const isKnown = createKnown(
    placed.filter((source) => !unreviewed.has(source.number) && provesAnything(source)),
    review,
  );
  const shown = review.shown(recent);
  const groups = Map.groupBy(
    placed.filter(({ number }) => unreviewed.has(number)),
    ({ shownKey }) => shownKey,
  );
  const settled: number[] = [];
  const found: Source[] = [];
  let waits = false;
  for (const [key, members] of groups) {
    // Nothing is looked up for test keys.
    const isWaiting =
      domain.mode === "live" &&
      members.some(({ isNamePending, firstSeenAtMs }) => isNamePending && nowMs - firstSeenAtMs < REVERSE_NAME_WAIT_MS);
    waits ||= isWaiting;
    if (isWaiting) continue;
    const judgement = isKnown(key, members) ? "reviewed" : judgeSource(key, members, shown.get(key), review);
    if (judgement === "wait") continue;
    settled.push(...members.map(({ number }) => number));
    const source = shown.get(key);
    if (judgement === "alert" && source !== undefined) found.push(source);
  }
  rules.markSources(tx, settled);
  for (const group of together(found.toSorted((a, b) => b.messages - a.messages))) raise(sourcesAlert(group));
  return waits;
};

const provesAnything = ({ evidence: { signer, envelope, foreign } }: KeyedSource): boolean =>
  signer !== null || envelope !== null || foreign !== null;

/** What a sender without aligned mail sent within so many days says whether it was known before its mail became aligned. */
const KNOWN_DAYS = 35;

const isOwnProof = ({ evidence: { signer } }: KeyedSource): boolean => signer !== null;

/**
 * Whether a sender is among those that were reviewed. One that signs for the domain now, and never did, was too small to be noticed
 * unless what it sent had weight: else a few messages would hide that somebody can sign for the domain.
 */
const createKnown = (reviewed: readonly KeyedSource[], review: Review) => {
  const before = Map.groupBy(reviewed, ({ shownKey }) => shownKey);
  return (key: string, members: readonly KeyedSource[]): boolean => {
    const known = before.get(key);
    if (known === undefined) return false;
    if (
      !members.some(isOwnProof) ||
      known.some(({ evidence, isPlausible }) => evidence.signer !== null || (isPlausible && evidence.envelope !== null))
    )
      return true;
    const { today, placed, domain, thresholds, reading } = review;
    const range = { fromDay: today - KNOWN_DAYS, toDay: today };
    const numbers = new Set(known.map(({ number }) => number));
    const messages = placed(range).reduce(
      (sum, { number, totals }) => sum + (numbers.has(number) ? totals.messages : 0),
      0,
    );
    const all = reading.totals(domain.number, range).messages;
    return messages >= thresholds.new_source_messages && messages * 100 >= thresholds.new_source_percent * all;
  };
};

const judgeSource = (
  key: string,
  members: readonly KeyedSource[],
  source: Source | undefined,
  review: Review,
): "alert" | "reviewed" | "wait" => {
  // Mail without a signature that came earlier does not make a signature known.
  const signing = members.filter(isOwnProof);
  const firstDay = Math.min(...(signing.length > 0 ? signing : members).map((member) => member.firstDay));
  const isOlder = source !== undefined && signing.length === 0;
  const first = isOlder ? Math.min(firstDay, parseDay(source.first_day) ?? firstDay) : firstDay;
  if (source?.classified_by === "user") return "reviewed";
  // What was alerted once is known; an identity without any proof leaves no other trace.
  if (review.alerts.lastRaisedMs(review.domain.number, "new_source", key) !== null) return "reviewed";
  const isPlausible = source !== undefined && couldBeOwn(source, members);
  return judgeNewcomer({ firstDay: first, hasWeight: isPlausible && hasWeight(source, review) }, review);
};

const couldBeOwn = (source: Source, members: readonly KeyedSource[]): boolean => {
  const { kind, aligned, authenticated_unaligned } = source;
  // What turns out later to be no forwarder is still new then.
  if (isForeign(source)) return false;
  if (aligned > 0 || authenticated_unaligned > 0) return true;
  return kind === "own" || kind === "service" || members.some(({ isBesideOwn }) => isBesideOwn);
};

/** Mail that passes DMARC has weight soon; other mail needs a number of messages and a share of the domain's mail. */
const hasWeight = ({ messages, aligned }: Source, { thresholds, shown, recent }: Review): boolean => {
  if (aligned >= ALIGNED_MESSAGES_MIN) return true;
  if (messages < thresholds.new_source_messages) return false;
  let all = 0;
  for (const source of shown(recent).values()) all += source.classification === "threat" ? 0 : source.messages;
  return messages * 100 >= thresholds.new_source_percent * all;
};
