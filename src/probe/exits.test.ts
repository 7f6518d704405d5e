import { describe, expect, test } from "bun:test";
import type { Connector } from "../net/connector.ts";
import { createTestClock } from "../testing/clock.ts";
import { createExits, type Exit } from "./exits.ts";

const connector: Connector = () => Promise.resolve({ ok: false, error: "refused_or_unreachable" });
const exit = (name: string, localAddress: string | null = null): Exit => ({ name, connector, localAddress });
const at = (provider: string, address = "192.0.2.1") => ({ address, provider });
const HOUR_MS = 3_600_000;

describe("exits", () => {
  test("take turns", () => {
    const exits = createExits([exit("a"), exit("b"), exit("c")], createTestClock());
    const names = Array.from({ length: 6 }, () => exits.choose(at("x"), null)?.name);
    expect(names).toEqual(["a", "b", "c", "a", "b", "c"]);
  });

  test("a retry leaves by the exit of the try before", () => {
    const exits = createExits([exit("a"), exit("b")], createTestClock());
    expect(Array.from({ length: 3 }, () => exits.choose(at("x"), "b")?.name)).toEqual(["b", "b", "b"]);
  });

  test("one that a provider blocked rests there, and only there", async () => {
    const clock = createTestClock();
    const exits = createExits([exit("a"), exit("b")], clock);
    exits.rest("a", "x");
    expect([exits.choose(at("x"), "a")?.name, exits.choose(at("x"), null)?.name]).toEqual(["b", "b"]);
    expect(exits.choose(at("y"), "a")?.name).toBe("a");
    await clock.advance(15 * 60_000);
    expect(exits.choose(at("x"), "a")?.name).toBe("a");
  });

  test("rests do not notice that the wall clock is set", async () => {
    const clock = createTestClock();
    let stepMs = 0;
    const exits = createExits([exit("a")], { ...clock, nowMs: () => clock.nowMs() + stepMs });
    exits.rest("a", "x");
    exits.noteBroken("a");
    stepMs = 24 * HOUR_MS;
    expect(exits.choose(at("x"), null)).toBeNull();
    stepMs = -24 * HOUR_MS;
    await clock.advance(60_000);
    expect(exits.choose(at("y"), null)?.name).toBe("a");
    await clock.advance(15 * 60_000);
    expect(exits.choose(at("x"), null)?.name).toBe("a");
  });

  test("each further block doubles the rest up to four hours, a welcome ends it", async () => {
    const clock = createTestClock();
    const exits = createExits([exit("a")], clock);
    for (let n = 0; n < 6; n++) exits.rest("a", "x");
    await clock.advance(4 * HOUR_MS - 1);
    expect(exits.choose(at("x"), null)).toBeNull();
    await clock.advance(1);
    expect(exits.choose(at("x"), null)?.name).toBe("a");
    exits.rest("a", "x");
    exits.welcome("a", "x");
    expect(exits.choose(at("x"), null)?.name).toBe("a");
  });

  test("those that were tried are not chosen again, and when none is left there is none", () => {
    const exits = createExits([exit("a"), exit("b")], createTestClock());
    expect(exits.choose(at("x"), null, new Set(["a"]))?.name).toBe("b");
    expect(exits.choose(at("x"), null, new Set(["a", "b"]))).toBeNull();
  });

  test("when all rest, the one that ends first is there anyway", async () => {
    const clock = createTestClock();
    const exits = createExits([exit("a"), exit("b")], clock);
    exits.rest("b", "x");
    await clock.advance(1_000);
    exits.rest("a", "x");
    expect(exits.choose(at("x"), null)).toBeNull();
    expect(exits.chooseAnyway(at("x"))?.name).toBe("b");
  });

  test("a local address is only used for its own family", () => {
    const exits = createExits([exit("v4", "192.0.2.9"), exit("v6", "2001:db8::9")], createTestClock());
    expect(exits.choose(at("x", "198.51.100.1"), "v6")?.name).toBe("v4");
    expect(exits.choose(at("x", "2001:db8::1"), null)?.name).toBe("v6");
  });

  test("of the wrong IP version are none, not even when there is no other", () => {
    const exits = createExits([exit("v4", "192.0.2.9")], createTestClock());
    const ipv6 = at("x", "2001:db8::1");
    expect([exits.choose(ipv6, "v4"), exits.chooseAnyway(ipv6)]).toEqual([null, null]);
  });

  test("one that is broken is left alone everywhere for a minute, or until it works", async () => {
    const clock = createTestClock();
    const exits = createExits([exit("a"), exit("b")], clock);
    exits.noteBroken("a");
    expect([exits.choose(at("x"), "a")?.name, exits.choose(at("y"), "a")?.name]).toEqual(["b", "b"]);
    exits.rest("b", "x");
    expect(exits.chooseAnyway(at("x"))?.name).toBe("a");
    exits.welcome("a", "x");
    expect(exits.choose(at("y"), "a")?.name).toBe("a");
    exits.noteBroken("a");
    await clock.advance(60_000);
    expect(exits.choose(at("y"), "a")?.name).toBe("a");
  });

  test("the memory of rests is bounded", () => {
    const exits = createExits([exit("a")], createTestClock());
    for (let n = 0; n < 10_001; n++) exits.rest("a", `p${n}`);
    expect(exits.choose(at("p0"), null)?.name).toBe("a");
    expect(exits.choose(at("p1"), null)).toBeNull();
  });
});
