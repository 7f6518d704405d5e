import { expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";

const start = createApps();
const MAIL = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:2525", NOTIFY_FROM: "alerts@example.net" };
const TAG = "/v1/dmarc/tags/client-a";

const started = async (settings: Readonly<Record<string, string>> = MAIL) => {
  const app = start({ settings: { REPORT_HOST: "reports.example.net", ...settings } });
  const key = app.newKey({ mode: "live" });
  for (const [domain, tags] of [
    ["a.example.com", ["client-a"]],
    ["b.example.com", ["client-a", "shops/eu"]],
  ] as const) {
    const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain } });
    const { id } = body.domain as { id: string };
    await app.request("PATCH", `/v1/dmarc/domains/${id}`, { key, body: { tags } });
  }
  const list = async (by = key) => (await app.request("GET", "/v1/dmarc/tags", { key: by })).body.tags;
  const set = (body: unknown, path = TAG, by = key) => app.request("PATCH", path, { key: by, body });
  return { app, key, list, set };
};

test("tags have the figures of their domains, and a digest that is set and removed", async () => {
  const { app, list, set } = await started();
  const shops = {
    tag: "shops/eu",
    domains: 1,
    messages: 0,
    aligned: 0,
    aligned_percent: null,
    actionable: 0,
    open_alerts: 0,
  };
  expect(await list()).toMatchObject([{ tag: "client-a", domains: 2, digest: "off", recipients: [] }, shops]);
  expect((await set({ digest: "monthly", recipients: ["It@Client-A.example"] })).body).toMatchObject({
    digest: "monthly",
    recipients: ["it@client-a.example"],
  });
  expect((await set({ digest: "weekly" }, `/v1/dmarc/tags/${encodeURIComponent("shops/eu")}`)).status).toBe(200);
  expect((await set({ recipients: [] })).body).toMatchObject({ digest: "monthly", recipients: [] });
  expect((await set({ digest: "off" })).body).toMatchObject({ digest: "off" });
  expect(app.db.sqlite.query("SELECT tag FROM dmarc_tag_digests").all()).toEqual([{ tag: "shops/eu" }]);
});

test.each([
  [{ digest: "hourly" }, 400],
  [{ recipients: ["nobody"] }, 400],
  [{ tags: [] }, 400],
])("%j is refused", async (body, status) => {
  const { set } = await started();
  expect((await set(body)).status).toBe(status);
});

test("a tag that no domain of the account has is not found, and mail needs a relay", async () => {
  const { app, list, set } = await started();
  const other = app.newKey({ account: "other", mode: "live" });
  expect((await set({ digest: "weekly" }, TAG, other)).status).toBe(404);
  expect((await set({ digest: "weekly" }, "/v1/dmarc/tags/client-b")).status).toBe(404);
  expect(await list(other)).toEqual([]);
  expect((await (await started({})).set({ digest: "weekly" })).status).toBe(400);
});
