import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { createLog } from "../../foundation/base/log.ts";
import { createTestClock, settle } from "../../testing/clock.ts";
import { BackgroundChecks } from "./background-checks.ts";

/** Verifications that the test ends one by one. */
const create = ({ perDay = 1_000, begunToday = 0 } = {}) => {
  const clock = createTestClock();
  const lines: string[] = [];
  const counts: Record<string, number> = {};
  const begun: string[] = [];
  const held: Array<{ resolve: () => void; reject: (error: unknown) => void }> = [];
  const background = new BackgroundChecks(
    { clock, log: createLog("info", clock, (line) => lines.push(line)) },
    {
      checks: {
        request: (caller, { email, source }) => {
          begun.push(email);
          expect([caller.keyId, caller.accountId, caller.mode, source]).toEqual(["policy", "a1", "live", "policy"]);
          return new Promise((resolve, reject) => {
            held.push({ resolve: () => resolve(undefined as never), reject });
          });
        },
      },
      store: { countSince: () => begunToday },
      perDay,
      count(outcome) {
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      },
    },
  );
  const add = (name: string, source = "unix") => {
    const email = `${name}@x.example`;
    background.add({ accountId: "a1", email, normalizedEmail: email }, source);
  };
  return { clock, lines, counts, begun, held, background, add, names: () => begun.map((email) => email.split("@")[0]) };
};

describe("recipients to verify", () => {
  test("run four at a time, each once", async () => {
    const { add, held, names, counts, background } = create();
    for (const name of ["a", "b", "c", "d", "e", "a"]) add(name);
    expect(names()).toEqual(["a", "b", "c", "d"]);
    held[0]?.resolve();
    await settle();
    expect(names()).toEqual(["a", "b", "c", "d", "e"]);
    for (const one of held) one.resolve();
    await settle();
    expect(background.waiting).toBe(0);
    add("a");
    expect(counts).toEqual({ queued: 5, known: 2, verified: 5 });
  });

  test("are verified again after an hour", async () => {
    const { add, held, names, clock } = create();
    add("a");
    held[0]?.resolve();
    await clock.advance(60 * 60_000);
    add("a");
    expect(names()).toEqual(["a", "a"]);
  });

  test("of several mail servers have their turn, and one server leaves room for others", async () => {
    const { add, held, names, counts, background } = create({ perDay: 100_000 });
    for (let n = 0; n < 5_001; n++) add(`flood${n}`, "192.0.2.1");
    expect(counts).toEqual({ queued: 5_000, queue_full: 1 });
    add("quiet", "192.0.2.2");
    held[0]?.resolve();
    held[1]?.resolve();
    await settle();
    expect(names().slice(4)).toContain("quiet");
    expect(background.waiting).toBeLessThanOrEqual(5_001);
  });

  test("are ten thousand at most", () => {
    const { add, counts } = create({ perDay: 100_000 });
    for (const source of ["192.0.2.1", "192.0.2.2"]) for (let n = 0; n < 5_000; n++) add(`${source} ${n}`, source);
    add("late", "192.0.2.3");
    expect(counts).toEqual({ queued: 10_000, queue_full: 1 });
  });

  test("that could not be verified leave their place of the day to others", async () => {
    const { add, held, counts, clock } = create({ perDay: 1 });
    add("a");
    held[0]?.reject(new Error("full"));
    await settle();
    await clock.advance(5 * 60_000);
    add("b");
    expect(counts).toEqual({ queued: 2, failed: 1 });
  });

  test("are as many in a day as the setting says, those before a restart included", async () => {
    const { add, held, counts, clock } = create({ perDay: 3, begunToday: 1 });
    for (const name of ["a", "b", "c"]) add(name);
    expect(counts).toEqual({ queued: 2, day_full: 1 });
    for (const one of held) one.resolve();
    await settle();
    add("c");
    expect(counts).toMatchObject({ day_full: 2 });
    await clock.advance(DAY_MS);
    add("c");
    expect(counts).toMatchObject({ queued: 3 });
  });

  test("are none where that is switched off", () => {
    const { add, begun, counts } = create({ perDay: 0 });
    add("a");
    expect([begun, counts]).toEqual([[], {}]);
  });

  test("wait without credits, which is logged once, and are tried again", async () => {
    const { add, held, names, counts, lines, clock } = create();
    const refusal = { message: "Insufficient credits: 1 required, 0 available." };
    for (const name of ["a", "c"]) add(name);
    for (const one of held) one.reject(new AppError("insufficient_credits", refusal));
    await settle();
    add("b");
    add("a");
    expect(names()).toEqual(["a", "c"]);
    expect(counts).toEqual({ queued: 4, failed: 2 });
    await clock.advance(5 * 60_000);
    add("b");
    expect(names()).toEqual(["a", "c", "b", "a"]);
    expect(lines.filter((line) => line.includes("recipients of outgoing mail are not verified"))).toHaveLength(1);
  });

  test("end with the service", async () => {
    const { add, begun, background, clock, held } = create();
    for (const name of ["a", "b", "c", "d", "e"]) add(name);
    const stopped = background.stop();
    held[0]?.resolve();
    await clock.advance(1_000);
    await stopped;
    add("f");
    expect(begun).toHaveLength(4);
  });
});
