import { expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createLog } from "./log.ts";
import { RepeatedError } from "./repeated-error.ts";

test("an error is logged once in ten seconds, with how many there were in between", async () => {
  const clock = createTestClock();
  const lines: string[] = [];
  const repeated = new RepeatedError("disk full", {
    log: createLog("error", clock, (line) => lines.push(line)),
    clock,
  });
  for (let id = 0; id < 3; id++) repeated.log({ id });
  await clock.advance(9_999);
  repeated.log({ id: 3 });
  expect(lines).toHaveLength(1);
  await clock.advance(1);
  repeated.log({ id: 4 });
  await clock.advance(10_000);
  repeated.log({ id: 5 });
  const logged = lines.map((line) => JSON.parse(line));
  expect(logged.map(({ message, id, others }) => [message, id, others])).toEqual([
    ["disk full", 0, undefined],
    ["disk full", 4, 3],
    ["disk full", 5, undefined],
  ]);
});
