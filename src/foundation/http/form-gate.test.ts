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
const POLL = new Request("http://localhost/");

const open = () => {
  const from = { client: "" };
  const clock = createTestClock();
  const read = { origins: 0, counts: [] as number[] };
  const gate = new FormGate({
    clock,
    countSince(_, sinceMs) {
      read.counts.push(sinceMs);
      return 0;
    },
    readOrigins() {
      read.origins += 1;
      return new Set(RULES.origins);
    },
  });
  gate.attach({ of: () => from.client }, () => "https://postwarden.example/v1");
  /** How many of `times` requests the gate lets through. */
  const allowed = (clients: readonly string[], keyId = "key"): number =>
    clients.filter((client) => {
      from.client = client;
      return gate.takeVisitor(keyId, RULES, POST) === 0;
    }).length;
  return { gate, allowed, clock, read };
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

test("polls of a visitor are counted for each key alone", () => {
  const { gate } = open();
  const allowed = (keyId: string) => times(30, String).filter(() => gate.takeVisitor(keyId, RULES, POLL) === 0);
  expect([allowed("one").length, allowed("another").length]).toEqual([20, 20]);
});

test("verifications of a day are counted anew on the next one (UTC)", async () => {
  const { gate, clock, read } = open();
  const rules = { ...RULES, perDay: 1 };
  await clock.advance(60_000);
  expect([gate.takeOfDay("key", rules), gate.takeOfDay("key", rules)]).toEqual([0, 86_340]);
  await clock.advance(86_340_000);
  expect(gate.takeOfDay("key", rules)).toBe(0);
  expect(read.counts).toEqual([Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 2)]);
});

test("preflights read the origins of all keys once a second at most", async () => {
  const { gate, clock, read } = open();
  const ask = () => gate.preflight(new Request("http://localhost/", { headers: { origin: RULES.origins[0] } }), {});
  for (let n = 0; n < 3; n++) ask();
  expect(read.origins).toBe(1);
  await clock.advance(1_000);
  ask();
  expect(read.origins).toBe(2);
});

test("pages of the service itself may try a key", () => {
  const { gate } = open();
  const admit = (origin: string) => () =>
    gate.admitOrigin(RULES, new Request("http://localhost/", { headers: { origin } }), {});
  expect(admit("https://postwarden.example")).not.toThrow();
  expect(admit("https://postwarden.example.evil.example")).toThrow();
});
