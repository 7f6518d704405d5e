import type { Random } from "../base/secrets.ts";
import type { ListAnswer, ListAsker } from "./ask-list.ts";
import type { TargetAnswer } from "./ask-target.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import type { Decoded } from "./decode.ts";
import type { Finding } from "./list-test.ts";
import { canaryPrefix, judgeNegative, judgePositive, testedKind } from "./list-test.ts";
import { literalName } from "./query-name.ts";

interface AnswerToConfirm {
  readonly asker: ListAsker;
  readonly random: Random;
  readonly list: Blocklist;
  readonly kind: TargetKind;
  /** The listing ids known before, of whatever list. */
  readonly previous: readonly string[];
  /** Listing ids whose coming and going is no change. */
  readonly muted?: readonly string[] | undefined;
  readonly first: TargetAnswer;
  /** Puts the same question once more. */
  askAgain(): Promise<TargetAnswer>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Confirms an answer that changes what was known: the list must say the same again, for a new listing its negative test
 * point must be free, for a vanished one its positive test point must be listed. The first answer when nothing changed
 * or all agree; else `failed`, which leaves what was known as it was.
 */
export const confirmAnswer = async (question: AnswerToConfirm): Promise<TargetAnswer> => {
  const { first, previous, list, muted = [] } = question;
  const counts = (id: string): boolean => !muted.includes(id);
  const now = listingIds(first.decoded)?.filter(counts);
  if (now === undefined) return first;
  const before = previous.filter((id) => counts(id) && list.codes.some((code) => code.id === id));
  const isNew = now.some((id) => !before.includes(id));
  const isGone = before.some((id) => !now.includes(id));
  if (!isNew && !isGone) return first;

  const [again, free, held] = await Promise.all([
    question.askAgain(),
    isNew ? askNegative(question) : AGREES,
    isGone ? askPositive(question) : AGREES,
  ]);
  const evidence = { ...first, answers: [...new Set([...first.answers, ...again.answers])] };
  const repeated = listingIds(again.decoded)?.filter(counts);
  if (repeated === undefined) return { ...evidence, decoded: again.decoded };
  if (!isSame(now, repeated))
    return { ...evidence, decoded: unconfirmed("The list gave two different answers in a row.") };
  const doubt = [free, held].find((finding) => finding?.state !== "healthy");
  if (doubt === undefined) return first;
  return { ...evidence, decoded: unconfirmed(doubt?.reason ?? "The change could not be confirmed by a test point.") };
};

const AGREES: Finding = { state: "healthy", reason: null, remedy: null };

const unconfirmed = (reason: string): Decoded => ({ outcome: "failed", cause: "unconfirmed", reason });

/** The ids an answer lists; null when it says nothing about the target. */
const listingIds = (decoded: Decoded): readonly string[] | null => {
  if (decoded.outcome === "listed") return decoded.listings.map(({ id }) => id);
  return decoded.outcome === "not_listed" ? [] : null;
};

const isSame = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((id) => b.includes(id));

const askNegative = async (question: AnswerToConfirm): Promise<Finding | null> => {
  const kind = testedKind(question.list, question.kind);
  const value = question.list.testPoints[kind]?.negative[0];
  const canary = canaryPrefix(kind, question.random);
  return judgeNegative(value ?? canary, await askPrefix(question, (value && literalName({ kind, value })) ?? canary));
};

const askPositive = async (question: AnswerToConfirm): Promise<Finding | null> => {
  const kind = testedKind(question.list, question.kind);
  const point = question.list.testPoints[kind]?.positive[0];
  if (point === undefined) return AGREES;
  return judgePositive(point, await askPrefix(question, literalName({ kind, value: point.value }) ?? point.value));
};

const askPrefix = ({ asker, list, signal }: AnswerToConfirm, prefix: string): Promise<ListAnswer> =>
  asker.ask(list, prefix, signal);
