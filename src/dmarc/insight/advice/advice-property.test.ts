import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { facts, historyOf, policyOf, RUA, source, TODAY } from "../../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";
import type { AdviceFacts } from "./advice-facts.ts";
import { isWeaker } from "../../records/domains/dns-changes.ts";
import { parseRecord } from "../../records/record/record.ts";

const NAME = { name: "a", messages: 10, aligned: 10 };

describe("whatever the record and the mail are", () => {
  const tag = fc.constantFrom(
    ...["p=none", "p=quarantine", "P = Reject ", "sp=none", "sp=reject", "np=none", "np = quarantine", "t=y", "t=n"],
    ...["adkim=s", "aspf=s", "pct=10", "p=x", "sp=x", "x=1", "", RUA],
  );
  const records = fc.array(tag, { maxLength: 7 }).map((tags) => ["v=DMARC1", ...tags].join("; "));
  const counts = fc.record({
    ...{ key: fc.constant("service:mailchimp"), name: fc.constant("n") },
    kind: fc.constantFrom("own", "service", "organization", "network", "unauthenticated"),
    service_id: fc.constantFrom(null, "mailchimp"),
    authenticated_unaligned: fc.constantFrom(0, 9, 100),
    ...{ first_day: fc.constant("2026-01-01"), last_day: fc.constantFrom("2026-01-02", "2026-01-30") },
    dkim: fc.constantFrom([], [{ domain: "a.example.com", selector: null, aligned: true, messages: 1 }]),
    history: fc.constantFrom(
      null,
      historyOf(),
      historyOf({ hasPassedBefore: true }),
      historyOf({ lastDay: TODAY - 9, hasRecovered: true }),
    ),
    classification: fc.constantFrom("authorized", "misconfigured", "forwarder", "unknown", "threat"),
    messages: fc.constantFrom(0, 1, 9, 100, 10_000),
    aligned: fc.constantFrom(0, 1, 9, 100),
    forwarded: fc.constantFrom(0, 1),
  });
  const situations = fc.record({
    isOrganisational: fc.boolean(),
    sendsMail: fc.constantFrom(true, false, null),
    status: fc.constantFrom("active", "active", "active", "active", "pending", "action_required"),
    reportedDays: fc.constantFrom(0, 30, 30),
    policyDays: fc.constantFrom(0, 13, 14, 30, 30),
    reporters: fc.constantFrom(0, 2, 2),
    sources: fc.array(counts, { maxLength: 4 }),
    recentSources: fc.constantFrom([], [source()], [source({ aligned: 0 })]),
    names: fc.constantFrom(
      [],
      [{ ...NAME, exists: null }],
      [{ ...NAME, exists: true }],
      [{ ...NAME, aligned: 0, exists: true }],
    ),
  });

  test("no advice weakens: no policy, no alignment, no test mode over a policy in force", () => {
    fc.assert(
      fc.property(records, situations, (record, situation) => {
        const { next } = advise(facts(record, situation as unknown as Partial<AdviceFacts>));
        if (next?.record == null) return;
        const [before, after] = [policyOf(record), policyOf(next.record)];
        expect(isWeaker(before, after)).toBe(false);
        expect([after?.adkim, after?.aspf]).toEqual([before?.adkim, before?.aspf]);
        const { tags } = parseRecord(next.record);
        expect(tags.some(({ name }) => name === "pct")).toBe(false);
        expect(tags.find(({ name }) => name === "t")?.value.toLowerCase()).not.toBe("n");
        expect(next.record).not.toBe(record);
        const kept = (text: string) =>
          parseRecord(text).tags.filter(({ name }) => name !== "pct" && name !== "t").length;
        expect(kept(next.record)).toBeGreaterThanOrEqual(kept(record));
      }),
      { numRuns: 2000 },
    );
  });

  test("following the advice again and again ends", () => {
    fc.assert(
      fc.property(records, (start) => {
        let record = start;
        for (let steps = 0; steps < 8; steps++) {
          const next = advise(facts(record)).next?.record ?? null;
          if (next === null) return;
          record = next;
        }
        throw new Error(`no end from ${start}`);
      }),
      { numRuns: 500 },
    );
  });
});
