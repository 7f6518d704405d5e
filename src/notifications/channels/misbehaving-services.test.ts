import { describe, expect, test } from "bun:test";
import { createReceivers, type Received } from "../../testing/receiver.ts";
import { createWebhookHarness, until } from "../../testing/webhook-harness.ts";
import { CHANNELS, channelOf } from "./channels.ts";

const newHarness = createWebhookHarness();
const newReceiver = createReceivers();

/** A service at its own name and path, and what it responds when all is well. */
const SERVICES = {
  slack: { host: "hooks.slack.com", path: "/services/T0/B0/abcdefghijklmnopqrstuvwx", ok: new Response("ok") },
  discord: {
    host: "discord.com",
    path: "/api/webhooks/1/abcdefghijklmnopqrstuvwx",
    ok: new Response(null, { status: 204 }),
  },
  telegram: {
    host: "api.telegram.org",
    path: "/bot1:abcdefghijklmnopqrstuvwx/sendMessage?chat_id=5",
    ok: Response.json({ ok: true, result: { message_id: 1 } }),
  },
  ntfy: { host: "ntfy.sh", path: "/alerts-of-postwarden", ok: Response.json({ id: "x", event: "message" }) },
  pagerduty: {
    host: "events.pagerduty.com",
    path: "/v2/enqueue?routing_key=abcdefghijklmnopqrstuvwxyz012345",
    ok: Response.json({ status: "success", dedup_key: "x" }, { status: 202 }),
  },
  opsgenie: {
    host: "api.opsgenie.com",
    path: "/v2/alerts?apiKey=01234567-89ab-cdef-0123-456789abcdef",
    ok: Response.json({ result: "Request will be processed", requestId: "x" }, { status: 202 }),
  },
} as const;
const NAMES = Object.keys(SERVICES) as ReadonlyArray<keyof typeof SERVICES>;

const start = (name: keyof typeof SERVICES) => {
  const { host, path, ok } = SERVICES[name];
  const receiver = newReceiver();
  receiver.answer(() => ok.clone());
  const { port } = new URL(receiver.url);
  const harness = newHarness({ zone: { [host]: { A: ["127.0.0.1"] } } });
  return { receiver, harness, url: `http://${host}:${port}${path}` };
};
const of = (subject: string) => ({ accountId: "account", mode: "live", subject }) as const;
const html = (request: Received) => `<html>No ${request.path} here, ${JSON.stringify(request.headers)}</html>`;

describe.each(NAMES)("%s", (name) => {
  test("takes an event", async () => {
    const { receiver, harness, url } = start(name);
    const id = harness.event(url);
    harness.dispatcher.start();
    await harness.untilDelivered(id);
    expect(receiver.received).toHaveLength(1);
    // The signature is for receivers of events.
    expect(receiver.received[0]?.headers).not.toHaveProperty("webhook-signature");
  });

  test.each<[string, (request: Received) => Response]>([
    ["a 500", () => new Response("no", { status: 500 })],
    ["HTML of a proxy", (request) => new Response(html(request), { status: 502 })],
    ["a redirect", () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } })],
    ["a 408", () => new Response(null, { status: 408 })],
    ["a response of 1 MiB", () => new Response("x".repeat(1 << 20), { status: 503 })],
    ["a broken JSON", () => new Response('{"ok":', { status: 503 })],
  ])("is tried again after %s", async (_, answer) => {
    const { receiver, harness, url } = start(name);
    receiver.answer(answer);
    const id = harness.event(url);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    expect(harness.find(id)).toMatchObject({ status: "pending", rejections: 0 });
    expect(harness.store.goneSince(of(""), url)).toBeUndefined();
  });

  test("is left alone for the time of a 429, for all its events", async () => {
    const { receiver, harness, url } = start(name);
    receiver.answer(() => new Response("busy", { status: 429, headers: { "retry-after": "60" } }));
    const ids = [harness.event(url, {}, of("target:1")), harness.event(url, {}, of("target:2"))];
    harness.dispatcher.start();
    await until(
      () => ids.some((id) => (harness.store.find(id)?.attempts ?? 0) > 0) && harness.dispatcher.running === 0,
    );
    receiver.answer(() => SERVICES[name].ok.clone());
    const before = receiver.received.length;
    await harness.skip(50_000);
    expect(receiver.received).toHaveLength(before);
    await harness.skip(300_000);
    for (let poll = 0; poll < 10; poll++) await harness.clock.advance(1_000);
    await until(() => ids.every((id) => harness.find(id).status === "delivered"));
  });

  test("never shows its secret, even when the service repeats it", async () => {
    const { receiver, harness, url } = start(name);
    receiver.answer((request) => new Response(`${html(request)} ${request.body} ${url}`, { status: 500 }));
    const id = harness.event(url);
    harness.dispatcher.start();
    await harness.untilAttempts(id, 1);
    const { lastProblem, lastAnswer } = harness.find(id);
    const secrets = CHANNELS.find((one) => one.name === name)?.secrets(new URL(url)) ?? [];
    expect(secrets.filter(Boolean)).toHaveLength(1);
    for (const secret of secrets.filter(Boolean))
      expect(`${lastProblem} ${lastAnswer} ${harness.logged.join()}`).not.toContain(secret);
  });

  test("gets a flood of events one at a time, at its pace", async () => {
    const { receiver, harness, url } = start(name);
    const paceMs = channelOf(url)?.paceMs ?? 0;
    for (let n = 0; n < 30; n++) harness.event(url, {}, of(`target:${n}`));
    harness.dispatcher.start();
    for (let second = 1; second <= 12; second++) {
      await until(() => harness.dispatcher.running === 0);
      expect(receiver.received.length).toBeLessThanOrEqual(Math.ceil((second * 1_000) / paceMs));
      await harness.clock.advance(1_000);
    }
    expect(receiver.received.length).toBeGreaterThanOrEqual(Math.floor(12_000 / paceMs) - 1);
  });
});

test.each<[keyof typeof SERVICES, number, unknown]>([
  ["slack", 404, "no_service"],
  ["discord", 404, { code: 10_015, message: "Unknown Webhook" }],
  ["telegram", 401, { ok: false, description: "Unauthorized" }],
  ["pagerduty", 400, { status: "invalid event", errors: ["Invalid routing key"] }],
  ["opsgenie", 401, { message: "Could not authenticate" }],
])("%s that responds %i %j is disabled, and its events wait for a new URL", async (name, status, body) => {
  const { receiver, harness, url } = start(name);
  receiver.answer(() => new Response(typeof body === "string" ? body : JSON.stringify(body), { status }));
  const ids = [harness.event(url, {}, of("target:1")), harness.event(url, {}, of("target:2"))];
  harness.dispatcher.start();
  await until(() => ids.every((id) => harness.store.find(id)?.status === "failed"));
  expect(harness.store.goneSince(of(""), url)).toBeDefined();
  expect(receiver.received).toHaveLength(1);
});
