import { describe, expect, test } from "bun:test";
import { AppError } from "../../foundation/base/errors.ts";
import { EVENT_DOCS } from "../../service/event-docs.ts";
import { createReceivers } from "../../testing/receiver.ts";
import { createWebhookHarness, until } from "../../testing/webhook-harness.ts";
import { WINDOWS_MAX } from "./windows.ts";

const newHarness = createWebhookHarness();
const newReceiver = createReceivers();
const HOUR_MS = 60 * 60_000;
const OWNER = { accountId: "account", mode: "live" } as const;
const ZONE = { "hooks.slack.com": { A: ["127.0.0.1"] }, "events.pagerduty.com": { A: ["127.0.0.1"] } };

const exampleOf = (type: string): Record<string, unknown> => {
  const example = EVENT_DOCS.find((doc) => doc.type === type)?.example;
  return { ...(example as object) };
};
type Harness = ReturnType<typeof newHarness>;
const inMs = (harness: Harness, ms: number) => new Date(harness.clock.nowMs() + ms).toISOString();

const start = (host: "hooks.slack.com" | "events.pagerduty.com", path: string) => {
  const receiver = newReceiver();
  receiver.answer(() => Response.json({ status: "success" }, { status: 202 }));
  const harness = newHarness({ zone: ZONE });
  return { receiver, harness, url: `http://${host}:${new URL(receiver.url).port}${path}` };
};
const slack = () => start("hooks.slack.com", "/services/T0/B0/abcdefghijklmnopqrst");
const pagerduty = () => start("events.pagerduty.com", "/v2/enqueue?routing_key=abcdefghijklmnopqrstuvwxyz012345");

const send = (harness: Harness, url: string, type: string, data: object = {}) =>
  harness.event(url, { ...exampleOf(type), ...data }, { ...OWNER, subject: "target:1", type });
const statusOf = (harness: Harness, id: string) => harness.store.find(id)?.status;
/** Lets the dispatcher poll often enough for a summary and what follows it. */
const polls = async (harness: Harness, times = 8) => {
  for (let n = 0; n < times; n++) {
    await harness.clock.advance(1_000);
    await until(() => harness.dispatcher.running === 0);
  }
};

describe("during a window", () => {
  test("a channel gets nothing, then one message; what began and ended is one line", async () => {
    const { receiver, harness, url } = slack();
    const windowId = await harness.windows.add(OWNER, { until: inMs(harness, 8 * HOUR_MS) });
    harness.dispatcher.start();
    const ids = [
      send(harness, url, "blacklist.listed"),
      send(harness, url, "blacklist.listed", { target: "192.0.2.9" }),
      send(harness, url, "blacklist.delisted"),
    ];
    await polls(harness);
    expect(receiver.received).toHaveLength(0);
    expect(ids.map((id) => statusOf(harness, id))).toEqual(["pending", "pending", "pending"]);
    // Also over a restart.
    await harness.skip(8 * HOUR_MS);
    await polls(harness);
    expect(windowId).toBeTruthy();
    expect(receiver.received).toHaveLength(1);
    const body = receiver.received[0]?.body ?? "";
    expect(body).toContain("3 events during a maintenance window");
    expect(body).toContain("198.51.100.7 is listed on SpamCop SCBL (ended 2026-01-01 00:00 UTC)");
    expect(body).toContain("192.0.2.9 is listed on SpamCop SCBL");
    expect(body).not.toContain("no longer listed");
    expect(ids.map((id) => statusOf(harness, id))).toEqual(["summarized", "summarized", "summarized"]);
    // Later events are sent as ever.
    const later = send(harness, url, "blacklist.listed");
    await polls(harness);
    expect(statusOf(harness, later)).toBe("delivered");
  });

  test("webhooks get their events, other accounts their messages", async () => {
    const { receiver, harness, url } = slack();
    await harness.windows.add(OWNER, { until: inMs(harness, HOUR_MS) });
    harness.dispatcher.start();
    const own = harness.event(receiver.url);
    const others = [
      harness.event(url, {}, { accountId: "other", mode: "live" }),
      harness.event(`${url}2`, {}, { accountId: "account", mode: "test" }),
    ];
    await polls(harness);
    expect([own, ...others].map((id) => statusOf(harness, id))).toEqual(["delivered", "delivered", "delivered"]);
  });

  test("of the operator no account gets messages", async () => {
    const { receiver, harness, url } = slack();
    await harness.windows.add(null, { until: inMs(harness, HOUR_MS) });
    harness.dispatcher.start();
    harness.event(url, {}, { accountId: "other", mode: "live" });
    await polls(harness);
    expect(receiver.received).toHaveLength(0);
    expect(harness.windows.quietUntilMs({ accountId: "any", mode: "test" })).not.toBeNull();
  });

  test("a single event waits and is sent as itself", async () => {
    const { receiver, harness, url } = slack();
    const id = await harness.windows.add(OWNER, { until: inMs(harness, HOUR_MS) });
    harness.dispatcher.start();
    const event = send(harness, url, "blacklist.listed");
    await polls(harness);
    expect(receiver.received).toHaveLength(0);
    await harness.windows.remove(OWNER, id);
    await polls(harness);
    expect(statusOf(harness, event)).toBe("delivered");
    expect(receiver.received[0]?.body).toContain("High: 198.51.100.7 is listed");
  });

  test("an incident that is open or was open before is set right after it; a passed one is only told", async () => {
    const { receiver, harness, url } = pagerduty();
    harness.dispatcher.start();
    send(harness, url, "blacklist.listed", { target: "before.example" });
    await polls(harness);
    await harness.windows.add(OWNER, { until: inMs(harness, HOUR_MS) });
    const passed = [send(harness, url, "blacklist.listed"), send(harness, url, "blacklist.delisted")];
    const open = send(harness, url, "blacklist.listed", { target: "open.example" });
    const closed = send(harness, url, "blacklist.delisted", { target: "before.example" });
    await harness.look();
    await harness.skip(HOUR_MS);
    await polls(harness, 12);
    expect([...passed, open, closed].map((id) => statusOf(harness, id))).toEqual([
      "summarized",
      "summarized",
      "delivered",
      "delivered",
    ]);
    const bodies = receiver.received.map(({ path, body }) => `${path} ${body}`);
    expect(bodies).toHaveLength(4);
    expect(bodies.filter((body) => body.includes('"resolve"') && body.includes("before.example"))).toHaveLength(1);
    expect(bodies.filter((body) => body.includes('"trigger"') && body.includes("open.example"))).toHaveLength(1);
    const summary = bodies.find((body) => body.startsWith("/v2/change/enqueue"));
    expect(summary).toContain("2 events during a maintenance window");
  });

  test("more open incidents than one message takes are all sent after it", async () => {
    const { receiver, harness, url } = pagerduty();
    await harness.windows.add(OWNER, { until: inMs(harness, HOUR_MS) });
    harness.dispatcher.start();
    for (let n = 0; n < 1_001; n++) send(harness, url, "blacklist.listed", { target: `host${n}.example` });
    await polls(harness, 2);
    expect(receiver.received).toHaveLength(0);
    await harness.skip(HOUR_MS);
    await polls(harness);
    expect(receiver.received.length).toBeGreaterThan(0);
  });

  test("nothing is held for longer than 7 days, whatever windows follow each other", async () => {
    const { receiver, harness, url } = slack();
    const days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
    for (const [from, to] of [
      ["00:00", "12:00"],
      ["12:00", "00:00"],
    ] as const)
      await harness.windows.add(OWNER, { weekly: { days, from, to, time_zone: "UTC" } });
    harness.dispatcher.start();
    send(harness, url, "blacklist.listed");
    await polls(harness, 2);
    await harness.skip(6 * 24 * HOUR_MS);
    await polls(harness);
    expect(receiver.received).toHaveLength(0);
    await harness.skip(24 * HOUR_MS);
    await polls(harness);
    expect(receiver.received).toHaveLength(1);
  });
});

describe("a window", () => {
  test("is shown to its owner, with those of the operator, while it is in force", async () => {
    const harness = newHarness();
    const { windows } = harness;
    await windows.add(null, { until: inMs(harness, HOUR_MS) });
    const own = await windows.add(OWNER, {
      weekly: { days: ["tue", "mon"], from: "22:00", to: "06:00", time_zone: "Europe/Berlin" },
    });
    const view = windows.view(OWNER);
    expect(view.windows.map(({ set_by }) => set_by)).toEqual(["operator", "account"]);
    expect(view.windows[1]).toMatchObject({ id: own, until: null, weekly: { days: ["mon", "tue"] }, on_until: null });
    expect(view.quiet_until).toBe(inMs(harness, HOUR_MS));
    expect(windows.view({ accountId: "other", mode: "live" }).windows).toHaveLength(1);
    await harness.clock.advance(HOUR_MS);
    expect(windows.view(OWNER)).toMatchObject({ quiet_until: null, windows: [{ id: own }] });
  });

  test.each([
    ["nothing", {}, "until"],
    [
      "both",
      { until: "2026-01-02T00:00:00Z", weekly: { days: ["mon"], from: "1", to: "2", time_zone: "UTC" } },
      "until",
    ],
    ["the past", { until: "2025-12-31T23:59:59Z" }, "until"],
    ["more than 7 days", { until: "2026-01-08T00:00:01Z" }, "until"],
    ["no day", { weekly: { days: [], from: "22:00", to: "06:00", time_zone: "UTC" } }, "weekly.days"],
    ["a wrong time", { weekly: { days: ["mon"], from: "25:00", to: "06:00", time_zone: "UTC" } }, "weekly.from"],
    ["no length", { weekly: { days: ["mon"], from: "06:00", to: "06:00", time_zone: "UTC" } }, "weekly.to"],
    [
      "a wrong zone",
      { weekly: { days: ["mon"], from: "22:00", to: "06:00", time_zone: "+01:00" } },
      "weekly.time_zone",
    ],
  ] as const)("of %s is refused", async (_, window, path) => {
    const added = newHarness().windows.add(OWNER, window);
    await expect(added).rejects.toMatchObject({ details: { issues: [{ path }] } });
  });

  test("is removed by whoever set it, once", async () => {
    const harness = newHarness();
    const { windows } = harness;
    const id = await windows.add(OWNER, { until: inMs(harness, HOUR_MS) });
    for (const owner of [null, { accountId: "other", mode: "live" }, { accountId: "account", mode: "test" }] as const)
      await expect(windows.remove(owner, id)).rejects.toBeInstanceOf(AppError);
    await windows.remove(OWNER, id);
    await expect(windows.remove(OWNER, id)).rejects.toBeInstanceOf(AppError);
    expect(windows.view(OWNER)).toEqual({ quiet_until: null, windows: [] });
  });

  test("lasts 7 days at most", async () => {
    const { windows } = newHarness();
    await windows.add(OWNER, { until: "2026-01-08T00:00:00Z" });
    expect(windows.view(OWNER).quiet_until).toBe("2026-01-08T00:00:00.000Z");
  });

  test("that has ended still says how long mail had to wait, and is no window of the limited number", async () => {
    const harness = newHarness();
    const { windows, clock } = harness;
    const startMs = clock.nowMs();
    const id = await windows.add(OWNER, { until: inMs(harness, 8 * HOUR_MS) });
    expect(windows.waitedUntilMs(OWNER, startMs)).toBe(startMs);
    await clock.advance(HOUR_MS);
    await windows.remove(OWNER, id);
    await clock.advance(HOUR_MS);
    const weekly = { days: ["mon"], from: "22:00", to: "06:00", time_zone: "UTC" } as const;
    const ids = await Promise.all(Array.from({ length: WINDOWS_MAX }, () => windows.add(OWNER, { weekly })));
    for (const one of ids) await windows.remove(OWNER, one);
    expect(windows.waitedUntilMs(OWNER, startMs)).toBe(startMs + HOUR_MS);
  });

  test("is one of a limited number", async () => {
    const { windows } = newHarness();
    const weekly = { days: ["mon"], from: "22:00", to: "06:00", time_zone: "UTC" } as const;
    for (let n = 0; n < WINDOWS_MAX; n++) await windows.add(OWNER, { weekly });
    await expect(windows.add(OWNER, { weekly })).rejects.toMatchObject({ code: "conflict" });
    await windows.add({ ...OWNER, mode: "test" }, { weekly });
  });
});
