import { expect, test } from "bun:test";
import type { Clock } from "../../foundation/base/clock.ts";
import { settle } from "../../testing/clock.ts";
import { createWebhookHarness, deliveryResult } from "../../testing/webhook-harness.ts";
import { POLL_MS } from "./dispatcher.ts";
import type { Sender } from "./send.ts";

const newHarness = createWebhookHarness();
const of = (accountId: string, n: number) => ({ accountId, mode: "live", subject: `target:${accountId}${n}` }) as const;
const DEAD = "https://dead.example/";
const ALIVE = "https://alive.example/";
const REQUEST_TIMEOUT_MS = 15_000;

/** A sender without a network: requests to the dead host hang until they are aborted or time out, all others succeed. */
const hangingSender = () => {
  const started = new Set<string>();
  let isDead = true;
  const sender = (clock: Clock): Sender => {
    return ({ id, url, signal }) => {
      started.add(id);
      if (!isDead || !url.startsWith(DEAD))
        return Promise.resolve(deliveryResult({ delivered: true, httpStatus: 204 }));
      const { promise, resolve } = Promise.withResolvers<ReturnType<typeof deliveryResult>>();
      const timeOut = () => resolve(deliveryResult({ problem: "timeout", timedOut: true }));
      signal?.addEventListener("abort", timeOut);
      clock.after(REQUEST_TIMEOUT_MS, timeOut);
      return promise;
    };
  };
  const revive = () => {
    isDead = false;
  };
  return { sender, started, revive };
};

test("a thousand hanging URLs of an account delay neither another account nor, for long, its own URLs that respond", async () => {
  const harness = newHarness({ sender: hangingSender().sender });
  const statusOf = (id: string) => harness.store.find(id)?.status;
  // The URL of the account has responded before; the other account's is called for the first time.
  const known = harness.event(ALIVE, {}, of("one", 0));
  harness.dispatcher.start();
  await settle();
  expect(statusOf(known)).toBe("delivered");
  const hanging = Array.from({ length: 1_000 }, (_, n) => harness.event(`${DEAD}?${n}`, {}, of("one", n)));
  await harness.look();
  const good = [harness.event(ALIVE, {}, of("one", 2_000)), harness.event(`${ALIVE}?other`, {}, of("two", 0))];
  await harness.look();
  expect(good.map(statusOf)).toEqual(["delivered", "delivered"]);
  // An unknown URL behind all of them in its own account is called before they have timed out.
  const last = harness.event(`${ALIVE}?last`, {}, of("one", 3_000));
  for (let second = 0; second < 40 && statusOf(last) !== "delivered"; second++) await harness.clock.advance(POLL_MS);
  expect(statusOf(last)).toBe("delivered");
  expect(new Set(hanging.map(statusOf))).toEqual(new Set(["pending"]));
});

test("an aborted request is not a failed attempt and is repeated with its full timeout", async () => {
  const { sender, started, revive } = hangingSender();
  const harness = newHarness({ sender });
  const ids = Array.from({ length: 200 }, (_, n) => harness.event(`${DEAD}?${n}`, {}, of("one", n)));
  harness.dispatcher.start();
  await settle();
  expect(started.size).toBeGreaterThan(50);
  expect(started.size).toBeLessThan(ids.length);
  // Every URL is called before the first request times out, although fewer may hang at the same time.
  await harness.clock.advance(REQUEST_TIMEOUT_MS - POLL_MS);
  expect(started.size).toBe(ids.length);
  expect(ids.every((id) => harness.find(id).attempts === 0)).toBe(true);
  revive();
  await harness.clock.advance(2 * REQUEST_TIMEOUT_MS);
  expect(ids.every((id) => harness.find(id).attempts >= 1)).toBe(true);
  expect(ids.some((id) => harness.find(id).status === "delivered")).toBe(true);
});
