import { describe, expect, test } from "bun:test";
import { createLog } from "../../foundation/base/log.ts";
import { createTestClock } from "../../testing/clock.ts";
import { deliveryResult } from "../../testing/webhook-harness.ts";
import type { Delivery } from "./delivery-store.ts";
import { FAILING_URLS_MAX, FailingUrls } from "./attempt-recorder.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const FAILED = deliveryResult({ httpStatus: 500, problem: "The receiver responded 500." });
const DELIVERED = deliveryResult({ delivered: true, httpStatus: 200 });

const start = () => {
  const clock = createTestClock();
  const lines: Array<Record<string, unknown>> = [];
  const failing = new FailingUrls({ clock, log: createLog("debug", clock, (line) => lines.push(JSON.parse(line))) });
  const note = (result: typeof FAILED, path = "token", accountId = "a"): void => {
    const url = `https://user:secret@hooks.example:8443/${path}`;
    failing.note({ accountId, mode: "live", url, type: "bulk.completed" } as Delivery, result);
  };
  const messages = () => lines.splice(0).map(({ level, message }) => `${level} ${message}`);
  return { clock, lines, note, messages };
};

const FAILS = "warn webhook endpoint fails; events are kept and retried";
const WORKS = "warn webhook endpoint works again";

describe("failing URLs", () => {
  test("are logged once when they begin to fail and once when they work again, by their host", () => {
    const { lines, note, messages } = start();
    note(DELIVERED);
    expect(lines).toEqual([]);
    for (let attempt = 0; attempt < 3; attempt++) note(FAILED);
    expect(lines).toMatchObject([{ host: "hooks.example:8443", problem: FAILED.problem, account_id: "a" }]);
    expect(JSON.stringify(lines)).not.toMatch(/token|secret/);
    expect(messages()).toEqual([FAILS]);
    note(DELIVERED);
    note(DELIVERED);
    expect(messages()).toEqual([WORKS]);
    note(FAILED);
    expect(messages()).toEqual([FAILS]);
  });

  test("are those of one account, and a URL that was disabled or asks to wait is none", () => {
    const { note, messages } = start();
    note(FAILED, "token", "a");
    note(FAILED, "token", "b");
    expect(messages()).toEqual([FAILS, FAILS]);
    note(deliveryResult({ gone: true, httpStatus: 410 }), "token", "a");
    note(deliveryResult({ rateLimited: true, httpStatus: 429, retryAfterMs: 1_000 }), "other");
    note(DELIVERED, "token", "a");
    expect(messages()).toEqual([]);
    note(deliveryResult({ rateLimited: true, httpStatus: 503 }), "other");
    expect(messages()).toEqual([FAILS]);
  });

  test("are remembered up to a limit, beyond which the log is not filled; those that nobody tries any more make room", async () => {
    const { clock, note, messages } = start();
    for (let url = 0; url < FAILING_URLS_MAX + 5; url++) note(FAILED, String(url));
    expect(messages()).toHaveLength(FAILING_URLS_MAX);
    for (let url = 0; url < FAILING_URLS_MAX + 5; url++) note(FAILED, String(url));
    expect(messages()).toEqual([]);
    await clock.advance(DAY_MS);
    note(FAILED, String(FAILING_URLS_MAX));
    expect(messages()).toEqual([FAILS]);
  });
});
