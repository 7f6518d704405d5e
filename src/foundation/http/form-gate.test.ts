import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { FormGate } from "./form-gate.ts";

const RULES = {
  key: "",
  origins: ["https://shop.example"],
  visitorPerHour: 20,
  perDay: 1_000,
  check: "mailbox",
} as const;
const POST = new Request("http://localhost/", { method: "POST" });

const open = () => {
  const from = { client: "" };
  const gate = new FormGate({ clock: createTestClock(), countSince: () => 0, readOrigins: () => new Set() });
  gate.attach({ of: () => from.client });
  /** How many of `times` requests the gate lets through. */
  const allowed = (clients: readonly string[], keyId = "key"): number =>
    clients.filter((client) => {
      from.client = client;
      return gate.takeVisitor(keyId, RULES, POST) === 0;
    }).length;
  return { gate, allowed };
};

const times = (count: number, client: (n: number) => string): string[] =>
  Array.from({ length: count }, (_, n) => client(n));

describe("the limit of a visitor", () => {
  test("counts an IPv4 address, the /64 of an IPv6 address, and each key alone", () => {
    const { allowed } = open();
    expect(allowed(times(20, () => "192.0.2.1"))).toBe(10);
    expect(allowed(["192.0.2.2"])).toBe(1);
    expect(allowed(["192.0.2.1"], "another key")).toBe(1);
    expect(allowed(times(20, (n) => `2001:db8::${n}`))).toBe(10);
    expect(allowed(["2001:db8:0:1::1"])).toBe(1);
  });

  test.each([
    ["a /48", (n: number) => `2001:db8:0:${n.toString(16)}::1`, "2001:db8:1::1"],
    ["a /24", (n: number) => `192.0.2.${n % 256}`, "192.0.3.1"],
  ])("is shared within %s, and leaves other networks theirs", (_what, clientOf, other) => {
    const { allowed } = open();
    expect(allowed(times(1_000, clientOf))).toBe(100);
    expect(allowed([other])).toBe(1);
  });

  test("a visitor that sends too much uses up nothing of its network", () => {
    const { allowed } = open();
    allowed(times(10_000, () => "192.0.2.1"));
    expect(allowed(times(90, (n) => `192.0.2.${2 + n}`))).toBe(90);
  });

  test("a flood from 50,000 networks leaves memory as it is, and refuses no visitor of another", () => {
    const { gate, allowed } = open();
    allowed(times(50_000, (n) => `2001:${(n >> 8).toString(16)}:${(n & 255).toString(16)}::1`));
    expect(gate.counted()).toEqual({ visitors: 20_000, networks: 20_000 });
    expect(allowed(["192.0.2.1"])).toBe(1);
  });
});
