import { type AdviceStage, progressOf } from "./advice-model.ts";
import { expect, test } from "bun:test";

const written = (stage: AdviceStage) =>
  progressOf({ stage, requirements: [], not_before: null }).steps.map(
    ({ policy, state, isRehearsal }) => `${policy} ${state}${isRehearsal ? " t=y" : ""}`,
  );

test.each<[AdviceStage, string[]]>([
  ["none", ["none ahead", "quarantine ahead", "reject ahead"]],
  ["monitoring", ["none present", "quarantine ahead", "reject ahead"]],
  ["rehearsal", ["none done", "quarantine present t=y", "reject ahead"]],
  ["quarantine", ["none done", "quarantine present", "reject ahead"]],
  ["reject_rehearsal", ["none done", "quarantine done", "reject present t=y"]],
  ["reject", ["none done", "quarantine done", "reject present"]],
])("the stage %s", (stage, steps) => {
  expect(written(stage)).toEqual(steps);
});

test("counts the requirements that are met, and has the day of the advice", () => {
  const requirement = { code: "reported_days", observed: 6, expected: 14, message: "" } as const;
  const requirements = [
    { ...requirement, met: false },
    { ...requirement, met: true },
  ];
  expect(progressOf({ stage: "monitoring", requirements, not_before: "1970-01-05" })).toMatchObject({
    ...{ met: 1, requirements: 2, notBeforeDay: 4 },
  });
  expect(progressOf({ stage: "monitoring", requirements: [], not_before: null }).notBeforeDay).toBeNull();
});
