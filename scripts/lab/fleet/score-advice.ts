import type { SeenAdvice } from "./observed.ts";
import type { Checkpoint } from "./plan.ts";
import type { Simulated } from "./simulate.ts";

/** Advice beside an expert's. */
export interface AdviceScore {
  readonly domain: string;
  readonly day: number;
  readonly expert: string;
  readonly said: string;
  readonly problems: readonly string[];
  readonly isRight: boolean;
}

const wordsOf = ({ next, requirements, notes }: SeenAdvice): string =>
  [
    next?.action ?? "nothing",
    next?.why ?? "",
    ...requirements.filter(({ met }) => !met).map(({ message }) => message),
    ...notes.map(({ code, message }) => `${code}: ${message}`),
  ].join("\n");

const problemsOf = ({ actions, names, never }: Checkpoint, seen: SeenAdvice): string[] => {
  const action = seen.next?.action ?? null;
  const step = `${seen.next?.action ?? ""}\n${seen.next?.why ?? ""}\n${seen.next?.record ?? ""}`;
  // A step must say itself what it is about; without one, what is open says it.
  const told =
    action === null || action === "wait" ? wordsOf(seen) : `${step}\n${wordsOf({ ...seen, requirements: [] })}`;
  return [
    ...(actions.includes(action)
      ? []
      : [`the step is ${action ?? "none"}, not ${actions.map((one) => one ?? "none").join(" or ")}`]),
    ...(names === null || names.test(told) ? [] : [`${String(names)} is not named`]),
    ...(never?.test(step) === true ? [`${String(never)} is advised`] : []),
  ];
};

export const adviceScoresOf = ({ plan, advice }: Simulated): AdviceScore[] =>
  advice.map(({ checkpoint, seen }) => {
    const problems = problemsOf(checkpoint, seen);
    const said = `${seen.stage}, ${seen.next?.action ?? "nothing"}: ${(seen.next?.why ?? "").slice(0, 220)}`;
    return {
      ...{ domain: plan.name, day: checkpoint.day, expert: checkpoint.expert, said, problems },
      isRight: problems.length === 0,
    };
  });
