import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { err } from "../../../foundation/base/errors.ts";
import { createHealthCheck } from "./health.ts";
import type { DomainHealth } from "./health-schema.ts";
import { keepLastKnown } from "./last-known.ts";

const DAY_MS = 86_400_000;
const START_MS = Date.UTC(2026, 10, 20);
const SOUND: Zone = {
  "example.com": {
    TXT: ["v=spf1 +all"],
    MX: [
      [10, "mx.example.com"],
      [20, "mx2.example.com"],
    ],
  },
  "mx.example.com": { A: ["10.0.0.5"] },
  "mx2.example.com": { A: ["10.0.0.6"] },
  "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject; rua=mailto:a@example.com"] },
};

const checkAt = async (zone: Zone, atMs: number): Promise<DomainHealth> => {
  const selectors = ["a", "b"].map(
    (selector) => ({ selector, signer: "example.com", origin: "request", seen: null }) as const,
  );
  const check = createHealthCheck({
    resolver: createZoneResolver(zone),
    get: async () => err({ kind: "dns", problem: "No server." }),
    clock: createTestClock(atMs),
  });
  return check({ domain: "example.com", selectors });
};

const messagesOf = ({ sections }: DomainHealth, wanted: string) =>
  sections.flatMap(({ code, findings }) => (code === wanted ? findings.map(({ message }) => message) : []));
const OUTAGE: Zone = Object.fromEntries(
  [...Object.keys(SOUND), "a._domainkey.example.com", "b._domainkey.example.com"].map((name) => [name, "servfail"]),
);

describe("an outage of the DNS", () => {
  test("keeps findings with their date, for 30 days, and the status stays unknown", async () => {
    const before = await checkAt(SOUND, START_MS);
    const first = keepLastKnown(before, await checkAt(OUTAGE, START_MS + DAY_MS));
    const spf = messagesOf(first, "spf");
    expect(spf).toEqual(messagesOf(before, "spf").map((message) => `Last known on 2026-11-20: ${message}`));
    expect(spf).not.toEqual([]);
    expect(messagesOf(first, "dkim")).toHaveLength(2);
    expect(messagesOf(first, "mx")).toHaveLength(2);
    expect(first.sections.find(({ code }) => code === "spf")).toMatchObject({
      status: "unknown",
      findings: [{ last_known_at: before.checked_at }],
    });
    const later = keepLastKnown(first, await checkAt(OUTAGE, START_MS + 30 * DAY_MS));
    expect(messagesOf(later, "spf")).toEqual(spf);
    const last = keepLastKnown(later, await checkAt(OUTAGE, START_MS + 31 * DAY_MS));
    expect(messagesOf(last, "spf")).toEqual([]);
  });

  test("ends with the first response: what was fixed is gone", async () => {
    const before = await checkAt(SOUND, START_MS);
    const outage = keepLastKnown(before, await checkAt(OUTAGE, START_MS + DAY_MS));
    const fixed: Zone = { ...SOUND, "example.com": { TXT: ["v=spf1 mx -all"], MX: [[10, "mx.example.com"]] } };
    const now = await checkAt(fixed, START_MS + 2 * DAY_MS);
    expect(keepLastKnown(outage, now)).toEqual(now);
  });
});

test("only what could not be checked is kept: one key, one mail host", async () => {
  const before = await checkAt(SOUND, START_MS);
  const zone: Zone = {
    ...SOUND,
    "a._domainkey.example.com": "timeout",
    "mx.example.com": "servfail",
    "mx2.example.com": { A: ["8.8.4.4"] },
  };
  const kept = keepLastKnown(before, await checkAt(zone, START_MS + DAY_MS));
  const isKept = (text: string) => text.startsWith("Last known on 2026-11-20");
  expect(messagesOf(kept, "dkim").filter(isKept)).toEqual([expect.stringContaining("a._domainkey.example.com")]);
  expect(messagesOf(kept, "mx").filter(isKept)).toEqual([expect.stringContaining("mx.example.com")]);
});

test("the first check has nothing to keep", async () => {
  const now = await checkAt(OUTAGE, START_MS);
  expect(keepLastKnown(null, now)).toBe(now);
});
