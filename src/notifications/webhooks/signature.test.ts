import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { systemClock } from "../../foundation/base/clock.ts";
import { newWebhookSecret, signatureHeaders } from "./secret-store.ts";

const NOW_MS = systemClock.nowMs;
const body = '{"type":"webhook.test","timestamp":"2026-01-01T00:00:00.000Z","data":{}}';

describe("a signature", () => {
  test("is accepted by the reference verifier, whatever the body", () => {
    fc.assert(
      fc.property(fc.json(), fc.uuid(), (text, id) => {
        const secret = newWebhookSecret();
        const headers = signatureHeaders([secret], { id, atMs: NOW_MS(), body: text });
        expect(new Webhook(secret).verify(text, { ...headers })).toEqual(JSON.parse(text));
      }),
      { numRuns: 50 },
    );
  });

  test("is refused with another secret, body, id or time", () => {
    const [secret, other] = [newWebhookSecret(), newWebhookSecret()];
    const headers = signatureHeaders([secret], { id: "a", atMs: NOW_MS(), body });
    const verify = (with_: string, text: string, changed: Record<string, string>) => () =>
      new Webhook(with_).verify(text, { ...headers, ...changed });
    expect(verify(secret, body, {})).not.toThrow();
    expect(verify(other, body, {})).toThrow();
    expect(verify(secret, body.replace("test", "tost"), {})).toThrow();
    expect(verify(secret, body, { "webhook-id": "b" })).toThrow();
    expect(verify(secret, body, { "webhook-timestamp": String(Math.floor(NOW_MS() / 1000) - 1) })).toThrow();
    expect(verify(secret, body, { "webhook-timestamp": "1" })).toThrow();
  });

  test("of two secrets is accepted with either", () => {
    const secrets = [newWebhookSecret(), newWebhookSecret()];
    const headers = signatureHeaders(secrets, { id: "a", atMs: NOW_MS(), body });
    for (const secret of secrets) expect(() => new Webhook(secret).verify(body, { ...headers })).not.toThrow();
    expect(headers["webhook-signature"].split(" ")).toHaveLength(2);
  });
});

test("secrets have the form of the standard and are unique", () => {
  const secrets = Array.from({ length: 100 }, newWebhookSecret);
  expect(new Set(secrets).size).toBe(100);
  for (const secret of secrets) expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
});
