import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

const start = createApps();

const begin = async () => {
  const app = start();
  const visitor = await signIn(app);
  const { subscriptions } = app.service.notifications.outbound;
  const topic = { accountId: visitor.accountId, recipient: "ops@example.com", kind: "dmarc_alerts" } as const;
  const { token } = await subscriptions.open(topic);
  const isOn = async () => (await subscriptions.open(topic)).stoppedAtMs === null;
  /** Without a session, as a mail program sends it. */
  const send = async (method: string, path: string, body?: string) => {
    const type = { "content-type": "application/x-www-form-urlencoded" };
    const init = { method, headers: type, ...(body === undefined ? {} : { body }) };
    const response = await app.handle(new Request(`http://localhost${path}`, init));
    return { status: response.status, html: await response.text() };
  };
  return { app, visitor, off: `/notifications/off/${token}`, on: `/notifications/on/${token}`, isOn, send };
};

describe("the link that stops mail", () => {
  test("says what it will do, and does nothing when it is only followed", async () => {
    const { send, off, isOn } = await begin();
    const page = await send("GET", off);
    expect(page.status).toBe(200);
    expect(page.html).toContain("Stop DMARC alerts?");
    expect(page.html).toContain("ops@example.com");
    expect((await send("HEAD", off)).status).toBe(200);
    expect(await isOn()).toBe(true);
  });

  test("stops the mail with one POST without a session and without a token against forgery (RFC 8058)", async () => {
    const { send, off, isOn } = await begin();
    const stopped = await send("POST", off, "List-Unsubscribe=One-Click");
    expect([stopped.status, await isOn()]).toEqual([200, false]);
    expect(stopped.html).toContain("receives no more DMARC alerts");
    expect((await send("POST", off, "List-Unsubscribe=One-Click")).status).toBe(200);
    expect((await send("GET", off)).html).toContain("Undo: send them again");
  });

  test("can be undone on its page, by a form that another site cannot send", async () => {
    const { visitor, send, off, on, isOn } = await begin();
    await send("POST", off, "");
    expect((await send("POST", on, "")).status).toBe(403);
    expect(await isOn()).toBe(false);
    expect((await visitor.post(on)).text).toContain("Stop DMARC alerts?");
    expect(await isOn()).toBe(true);
  });

  test("that no mail had is not found, whatever it is", async () => {
    const { send } = await begin();
    for (const token of ["a".repeat(43), "x", "..%2f", "'"]) {
      expect((await send("GET", `/notifications/off/${token}`)).status).toBe(404);
      expect((await send("POST", `/notifications/off/${token}`, "")).status).toBe(404);
    }
  });

  test("is seen in the settings, and the mail resumed there", async () => {
    const { visitor, send, off, isOn } = await begin();
    await send("POST", off, "");
    expect((await visitor.get("/settings/notifications")).text).toContain("ops@example.com DMARC alerts");
    const change = { recipient: "ops@example.com", kind: "dmarc_alerts", enabled: "true" };
    const resumed = await visitor.submit("/settings/notifications/mail", change);
    expect(resumed.text).toContain("ops@example.com receives DMARC alerts again.");
    expect(await isOn()).toBe(true);
  });
});
