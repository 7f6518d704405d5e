import { describe, expect, test } from "bun:test";
import { createTestClock } from "../testing/clock.ts";
import { createStopSignals } from "./io.ts";

const start = () => {
  const clock = createTestClock();
  const exits: number[] = [];
  return { clock, exits, signals: createStopSignals(clock, (status) => exits.push(status)) };
};

describe("signals", () => {
  test("the first asks to end; the same one that a parent forwards does not end at once", async () => {
    const { clock, exits, signals } = start();
    signals.onSignal("SIGINT");
    expect(await signals.first).toBe("SIGINT");
    await clock.advance(100);
    signals.onSignal("SIGINT");
    expect(exits).toEqual([]);
  });

  test("a second one, a while later, ends at once", async () => {
    const { clock, exits, signals } = start();
    signals.onSignal("SIGTERM");
    await clock.advance(600);
    signals.onSignal("SIGINT");
    expect(exits).toEqual([130]);
  });
});
