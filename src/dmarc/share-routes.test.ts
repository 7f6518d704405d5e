import { expect, test } from "bun:test";
import { z } from "zod";
import { DAY_MS } from "../foundation/base/days.ts";
import { createDmarcPageTests } from "../testing/dmarc-page-tests.ts";
import { Browser } from "../testing/dashboard-browser.ts";

const newTest = createDmarcPageTests();
const linkSchema = z.object({ id: z.string(), url: z.string() });

const started = async () => {
  const made = await newTest();
  const { app, key } = made;
  const path = `/v1/dmarc/domains/${await made.enrol()}/report-links`;
  const create = (body: unknown) => app.request("POST", path, { key, body });
  const list = async () => (await app.request("GET", path, { key })).body.report_links;
  const inDays = (days: number) => new Date(app.clock.nowMs() + days * DAY_MS).toISOString();
  return { ...made, path, create, list, inDays };
};

test("a link shows the report until it ends or is revoked, and is returned once", async () => {
  const { app, key, path, create, list, inDays } = await started();
  const created = await create({ expires_at: inDays(7), note: "the board" });
  const { id, url } = linkSchema.parse(created.body);
  expect([created.status, created.body]).toMatchObject([
    201,
    { note: "the board", expires_at: inDays(7), revoked_at: null },
  ]);
  const anyone = new Browser(app);
  const target = new URL(url).pathname;
  expect((await anyone.get(target)).status).toBe(200);
  expect(await list()).toMatchObject([{ id, note: "the board", last_used_at: expect.any(String) }]);
  expect(JSON.stringify(await list())).not.toContain(target);
  expect((await app.request("DELETE", `${path}/${id}`, { key })).status).toBe(204);
  expect((await anyone.get(target)).status).toBe(404);
  const other = linkSchema.parse((await create({ expires_at: inDays(1) })).body);
  await app.clock.advance(DAY_MS);
  expect((await anyone.get(new URL(other.url).pathname)).status).toBe(404);
});

test("a link ends in the next 366 days, and a domain has at most 20", async () => {
  const { create, inDays } = await started();
  for (const [body, path] of [
    [{}, "expires_at"],
    [{ expires_at: "tomorrow" }, "expires_at"],
    [{ expires_at: inDays(0) }, "expires_at"],
    [{ expires_at: inDays(367) }, "expires_at"],
    [{ expires_at: inDays(1), note: "x".repeat(201) }, "note"],
  ] as const)
    expect(await create(body)).toMatchObject({ status: 400, body: { issues: [{ path }] } });
  for (let n = 0; n < 20; n++) expect((await create({ expires_at: inDays(1) })).status).toBe(201);
  expect(String((await create({ expires_at: inDays(1) })).text)).toContain("at most 20 links");
});

test("links of another account's domain are not found", async () => {
  const { app, path, create, inDays } = await started();
  const { id } = linkSchema.parse((await create({ expires_at: inDays(1) })).body);
  const other = app.newKey({ account: "other", mode: "live" });
  for (const [method, target] of [
    ["GET", path],
    ["DELETE", `${path}/${id}`],
  ] as const)
    expect((await app.request(method, target, { key: other })).status).toBe(404);
});
