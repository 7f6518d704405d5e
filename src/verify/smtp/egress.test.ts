import { describe, expect, test } from "bun:test";
import { createLog } from "../../foundation/base/log.ts";
import type { Connector } from "../../foundation/net/connector.ts";
import { createTestClock } from "../../testing/clock.ts";
import { EgressPool, type Egress } from "./open.ts";

const connector: Connector = () => Promise.resolve({ ok: false, error: "refused_or_unreachable" });
const egress = (name: string, localAddress: string | null = null): Egress => ({
  name,
  connector,
  localAddress,
  isProxy: false,
});
const at = (provider: string, address = "192.0.2.1") => ({ address, provider });
const HOUR_MS = 3_600_000;

describe("egresses", () => {
  test("take turns", () => {
    const egresses = new EgressPool([egress("a"), egress("b"), egress("c")], createTestClock());
    const names = Array.from({ length: 6 }, () => egresses.choose(at("x"), null)?.name);
    expect(names).toEqual(["a", "b", "c", "a", "b", "c"]);
  });

  test("a retry uses the egress of the attempt before", () => {
    const egresses = new EgressPool([egress("a"), egress("b")], createTestClock());
    expect(Array.from({ length: 3 }, () => egresses.choose(at("x"), "b")?.name)).toEqual(["b", "b", "b"]);
  });

  test("one that a provider blocked is on cooldown there, and only there", async () => {
    const clock = createTestClock();
    const egresses = new EgressPool([egress("a"), egress("b")], clock);
    egresses.block("a", "x");
    expect([egresses.choose(at("x"), "a")?.name, egresses.choose(at("x"), null)?.name]).toEqual(["b", "b"]);
    expect(egresses.choose(at("y"), "a")?.name).toBe("a");
    await clock.advance(15 * 60_000);
    expect(egresses.choose(at("x"), "a")?.name).toBe("a");
  });

  test("are described with their cooldowns, and why they are broken", async () => {
    const clock = createTestClock();
    const egresses = new EgressPool([egress("a"), egress("b")], clock);
    for (let n = 0; n < 25; n++) egresses.block("a", `p${n}`);
    egresses.noteProblem("b", "refuses the password.");
    egresses.markBroken("b");
    await clock.advance(60_000);
    const [a, b] = egresses.states();
    expect(a).toMatchObject({ name: "a", problem: null, cooldownCount: 25 });
    expect(a?.cooldowns).toHaveLength(20);
    expect(a?.cooldowns[0]).toEqual({ provider: "p0", leftMs: 14 * 60_000 });
    expect(b).toEqual({ name: "b", problem: "refuses the password.", cooldowns: [], cooldownCount: 0 });
    await clock.advance(14 * 60_000);
    expect(egresses.states()[0]?.cooldownCount).toBe(0);
  });

  test("cooldowns do not depend on the wall clock", async () => {
    const clock = createTestClock();
    let stepMs = 0;
    const egresses = new EgressPool([egress("a")], { ...clock, nowMs: () => clock.nowMs() + stepMs });
    egresses.block("a", "x");
    egresses.markBroken("a");
    stepMs = 24 * HOUR_MS;
    expect(egresses.choose(at("x"), null)).toBeNull();
    stepMs = -24 * HOUR_MS;
    await clock.advance(60_000);
    expect(egresses.choose(at("y"), null)?.name).toBe("a");
    await clock.advance(15 * 60_000);
    expect(egresses.choose(at("x"), null)?.name).toBe("a");
  });

  test("each further block doubles the cooldown up to four hours, a success ends it", async () => {
    const clock = createTestClock();
    const egresses = new EgressPool([egress("a")], clock);
    for (let n = 0; n < 6; n++) egresses.block("a", "x");
    await clock.advance(4 * HOUR_MS - 1);
    expect(egresses.choose(at("x"), null)).toBeNull();
    await clock.advance(1);
    expect(egresses.choose(at("x"), null)?.name).toBe("a");
    egresses.block("a", "x");
    egresses.markWorking("a", "x");
    expect(egresses.choose(at("x"), null)?.name).toBe("a");
  });

  test("those that were tried are not chosen again, and when none is left there is none", () => {
    const egresses = new EgressPool([egress("a"), egress("b")], createTestClock());
    expect(egresses.choose(at("x"), null, new Set(["a"]))?.name).toBe("b");
    expect(egresses.choose(at("x"), null, new Set(["a", "b"]))).toBeNull();
  });

  test("when all are on cooldown, the one that ends first can be had", async () => {
    const clock = createTestClock();
    const egresses = new EgressPool([egress("a"), egress("b")], clock);
    egresses.block("b", "x");
    await clock.advance(1_000);
    egresses.block("a", "x");
    expect(egresses.choose(at("x"), null)).toBeNull();
    expect(egresses.chooseAny(at("x"))?.name).toBe("b");
  });

  test("a local address is only used for its own family", () => {
    const egresses = new EgressPool([egress("v4", "192.0.2.9"), egress("v6", "2001:db8::9")], createTestClock());
    expect(egresses.choose(at("x", "198.51.100.1"), "v6")?.name).toBe("v4");
    expect(egresses.choose(at("x", "2001:db8::1"), null)?.name).toBe("v6");
  });

  test("of the wrong IP version are none, not even when there is no other", () => {
    const egresses = new EgressPool([egress("v4", "192.0.2.9")], createTestClock());
    const ipv6 = at("x", "2001:db8::1");
    expect([egresses.choose(ipv6, "v4"), egresses.chooseAny(ipv6)]).toEqual([null, null]);
  });

  test("one that is broken is left alone everywhere for a minute, or until it works", async () => {
    const clock = createTestClock();
    const egresses = new EgressPool([egress("a"), egress("b")], clock);
    egresses.markBroken("a");
    expect([egresses.choose(at("x"), "a")?.name, egresses.choose(at("y"), "a")?.name]).toEqual(["b", "b"]);
    egresses.block("b", "x");
    expect(egresses.chooseAny(at("x"))?.name).toBe("a");
    egresses.markWorking("a", "x");
    expect(egresses.choose(at("y"), "a")?.name).toBe("a");
    egresses.markBroken("a");
    await clock.advance(60_000);
    expect(egresses.choose(at("y"), "a")?.name).toBe("a");
  });

  test("the number of cooldowns is bounded", () => {
    const egresses = new EgressPool([egress("a")], createTestClock());
    for (let n = 0; n < 10_001; n++) egresses.block("a", `p${n}`);
    expect(egresses.choose(at("p0"), null)?.name).toBe("a");
    expect(egresses.choose(at("p1"), null)).toBeNull();
  });

  test("one that breaks again and again is tried less and less often, up to eight minutes", async () => {
    const clock = createTestClock();
    const egresses = new EgressPool([egress("a")], clock);
    const waits: number[] = [];
    for (let n = 0; n < 6; n++) {
      egresses.markBroken("a");
      // Sessions that were under way fail too; they do not prolong it.
      egresses.markBroken("a");
      let minutes = 0;
      while (egresses.choose(at("x"), null) === null) {
        await clock.advance(60_000);
        minutes++;
      }
      waits.push(minutes);
    }
    expect(waits).toEqual([1, 2, 4, 8, 8, 8]);
    egresses.markWorking("a", "x");
    egresses.markBroken("a");
    await clock.advance(60_000);
    expect(egresses.choose(at("x"), null)?.name).toBe("a");
  });

  test("a broken proxy is reported with its problem until it works, or until nobody has tried it for long", async () => {
    const clock = createTestClock();
    const lines: string[] = [];
    const log = createLog("info", clock, (line) => lines.push(line));
    const proxy = { ...egress("socks5://192.0.2.9:1080"), isProxy: true };
    const egresses = new EgressPool([proxy, egress("192.0.2.1", "192.0.2.1")], clock, log);
    expect(egresses.findings()).toEqual([]);
    egresses.noteProblem(proxy.name, "refuses the login.");
    egresses.markBroken(proxy.name);
    egresses.markBroken(proxy.name);
    egresses.markBroken("192.0.2.1");
    expect(egresses.findings()).toEqual([
      "The proxy socks5://192.0.2.9:1080 (POSTWARDEN_SOCKS_PROXIES) refuses the login.",
      "No connection can be opened from 192.0.2.1 (POSTWARDEN_SOURCE_ADDRESSES).",
    ]);
    egresses.markWorking("192.0.2.1", "x");
    expect(egresses.findings()).toHaveLength(1);
    await clock.advance(16 * 60_000);
    expect(egresses.findings()).toEqual([]);
    const logged = lines.map((line) => JSON.parse(line) as { message: string; egress: string; problem?: string });
    expect(logged.map(({ message, egress: name, problem }) => [message, name, problem])).toEqual([
      ["an egress is not usable", proxy.name, "refuses the login."],
      ["an egress is not usable", "192.0.2.1", "is not usable."],
      ["the egress is usable again", "192.0.2.1", undefined],
    ]);
  });
});
