import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { sendPage } from "../../foundation/http/list-page.ts";
import { BULK_ACCOUNT, createBulkHarness } from "../../testing/bulk-harness.ts";
import { createTestClock } from "../../testing/clock.ts";
import {
  SIGNAL_VALUES,
  SUB_STATUSES,
  signalsSchema,
  type VerificationResult,
  VERDICT_OF,
} from "../../verify/result.ts";
import { exportRows, itemSource } from "./job-rows.ts";
import { Throughput, forecast } from "./job-object.ts";
import { toColumns, toResult, toResultJson } from "./result-columns.ts";

const pageSchema = z.object({
  emails: z.array(z.object({ submitted_email: z.string() })),
  next_cursor: z.string().nullable(),
});
const newHarness = createBulkHarness();
const names = signalsSchema.keyof().options;

const results: fc.Arbitrary<VerificationResult> = fc
  .record({
    email: fc.string().map((text) => text.trim()),
    sub_status: fc.constantFrom(...SUB_STATUSES),
    quality_score: fc.integer({ min: 0, max: 100 }),
    confidence: fc.integer({ min: 0, max: 100 }),
    signals: fc.array(fc.constantFrom(...SIGNAL_VALUES), { minLength: names.length, maxLength: names.length }),
    verifiedAtMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  })
  .map(({ email, sub_status, signals, verifiedAtMs, ...scores }) => ({
    email,
    normalized_email: email.toLowerCase(),
    verdict: VERDICT_OF[sub_status],
    sub_status,
    ...scores,
    signals: signalsSchema.parse(Object.fromEntries(names.map((name, at) => [name, signals[at]]))),
    verified_at: new Date(verifiedAtMs).toISOString(),
  }));

test("a result survives the conversion to columns, as an object and as text", () => {
  fc.assert(
    fc.property(results, (result) => {
      const columns = toColumns(result);
      expect(toResult(columns, result.email, result.normalized_email)).toEqual(result);
      expect(toResultJson(columns, result.email, result.normalized_email)).toBe(JSON.stringify(result));
    }),
  );
});

describe("the rows of a job", () => {
  test.each([1, 999, 1_000, 1_001, 4_500])("%d rows: pages and export contain each once, in order", async (count) => {
    const harness = newHarness();
    const { lists } = harness;
    const emails = Array.from({ length: count }, (_, n) => `u${n % 700}@x.example`);
    const { number } = await harness.order(emails);
    const exported: string[] = [];
    for await (const batch of exportRows(lists, number))
      for (const { cells, result } of batch) {
        exported.push(...cells);
        expect(result).toBeNull();
      }
    expect(exported).toEqual(emails);
    const paged: string[] = [];
    const items = itemSource(lists, number, {});
    const request = new Request("http://localhost/");
    for (let after: string | null = null, pages = 0; after !== null || pages === 0; pages++) {
      const answer = await sendPage(request, { name: "emails", page: { cursor: after, limit: 1_000 } }, items);
      const { emails: page, next_cursor } = pageSchema.parse(await answer.json());
      for (const { submitted_email } of page) paged.push(submitted_email);
      expect(page.length).toBeGreaterThan(0);
      after = next_cursor === null ? null : Buffer.from(next_cursor, "base64url").toString();
    }
    expect(paged).toEqual(emails);
  });

  test.each([700, 9_000])(
    "of %d addresses are exported without repeats, and without those of other filters",
    async (many) => {
      const harness = newHarness();
      const { lists } = harness;
      const emails = Array.from({ length: 2 * many }, (_, n) => `u${n % many}@x.example`);
      const { number } = await harness.order([...emails, "no address", "", "U1@x.example"]);
      const exported = async (options: Parameters<typeof exportRows>[2]) => {
        const batches = await Array.fromAsync(exportRows(lists, number, options));
        return batches.flat().map(({ cells }) => cells[0] ?? "");
      };
      expect(await exported({ isDistinct: true })).toEqual([...emails.slice(0, many), "no address"]);
      const text = { results: null, text: "u1@x" } as const;
      expect(await exported({ filters: text })).toEqual(["u1@x.example", "u1@x.example", "U1@x.example"]);
      expect(await exported({ filters: text, isDistinct: true })).toEqual(["u1@x.example"]);
      expect(await exported({ filters: { results: "unfinished", text: "u2@" } })).toEqual([
        "u2@x.example",
        "u2@x.example",
      ]);
      expect(await exported({ filters: { results: ["mailbox_exists"], text: null } })).toEqual([]);
    },
  );

  test("that exceed the credits hold nothing, even if credits are granted during the upload", async () => {
    const harness = newHarness();
    const { ledger, db } = harness;
    db.transact((tx) => {
      ledger.hold(tx, { accountId: BULK_ACCOUNT, reference: "other", atMs: 0 }, 999_998);
    });
    const late = harness.order(["a@x.example", "b@x.example", "c@x.example"]);
    db.transact((tx) => ledger.grant(tx, { accountId: BULK_ACCOUNT, credits: 5, note: "late", atMs: 0 }));
    expect(await late).toMatchObject({ addressesTotal: 3 });
    expect(ledger.balance(BULK_ACCOUNT)).toEqual({ available: 4, held: 1_000_001 });
    const emails = Array.from({ length: 1_500 }, (_, n) => `u${n}@x.example`);
    await expect(harness.order(emails)).rejects.toMatchObject({
      code: "insufficient_credits",
      details: { body: { required: 1_500 } },
    });
    expect(ledger.balance(BULK_ACCOUNT)).toEqual({ available: 4, held: 1_000_001 });
  });
});

describe("the forecast", () => {
  const RATE = { perSecond: 10, assumedPerSecond: 1 };

  test("is the fresh addresses at the throughput, but not before the latest retry", () => {
    expect(forecast({ fresh: 1_000, ...RATE, latestRetryMs: null })).toEqual({
      secondsLeft: 100,
      pollAfterMs: 20_000,
    });
    expect(forecast({ fresh: 1_000, ...RATE, latestRetryMs: 600_000 })).toEqual({
      secondsLeft: 602,
      pollAfterMs: 30_000,
    });
    expect(forecast({ fresh: 0, ...RATE, latestRetryMs: null })).toEqual({ secondsLeft: 1, pollAfterMs: 1_000 });
  });

  test("has no estimate for fresh addresses until the throughput is known, but when to poll again", () => {
    const start = { perSecond: null, assumedPerSecond: 10 };
    expect(forecast({ fresh: 1_000, ...start, latestRetryMs: null })).toEqual({
      secondsLeft: null,
      pollAfterMs: 20_000,
    });
    expect(forecast({ fresh: 2, ...start, latestRetryMs: null })).toEqual({ secondsLeft: null, pollAfterMs: 1_000 });
    expect(forecast({ fresh: 0, ...start, latestRetryMs: 58_500 })).toEqual({ secondsLeft: 60, pollAfterMs: 12_000 });
  });

  test("the throughput is that of the last minute, or since the start", async () => {
    const clock = createTestClock();
    const rate = new Throughput(clock);
    rate.add(100);
    await clock.advance(4_000);
    expect(rate.perSecond).toBeNull();
    await clock.advance(1_000);
    expect(rate.perSecond).toBeCloseTo(100 / 6);
    await clock.advance(4_000);
    expect(rate.perSecond).toBe(10);
    await clock.advance(50_000);
    expect(rate.perSecond).toBeCloseTo(100 / 60);
    await clock.advance(1_000);
    expect(rate.perSecond).toBeNull();
    await clock.advance(4_000);
    rate.add(120);
    expect(rate.perSecond).toBe(2);
  });
});
