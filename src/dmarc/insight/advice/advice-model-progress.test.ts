import { type Advice, type AdviceStage, progressOf } from "./advice-model.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { expect, test } from "bun:test";

const NOW_MS = 100 * DAY_MS + 1;
const days = (observed: number, met = observed >= 14): Advice["requirements"][number] => ({
  ...{ code: "reported_days", met, observed, expected: 14, message: "" },
});

const written = (stage: AdviceStage) =>
  progressOf({ stage, requirements: [] }, NOW_MS).steps.map(
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

test("the next stage is possible when the missing days with reports have passed, and a day later their reports are there", () => {
  expect(progressOf({ stage: "monitoring", requirements: [days(6)] }, NOW_MS)).toMatchObject({
    ...{ met: 0, requirements: 1, notBeforeDay: 109 },
  });
  expect(progressOf({ stage: "monitoring", requirements: [days(14)] }, NOW_MS)).toMatchObject({
    ...{ met: 1, notBeforeDay: null },
  });
  expect(progressOf({ stage: "reject", requirements: [days(6)] }, NOW_MS).notBeforeDay).toBeNull();
  expect(progressOf({ stage: "monitoring", requirements: [] }, NOW_MS).notBeforeDay).toBeNull();
});
