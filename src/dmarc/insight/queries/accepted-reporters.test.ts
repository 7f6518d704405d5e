import { describe, expect, test } from "bun:test";
import { createApps } from "../../../testing/app.ts";

const startApp = createApps();
const PATH = "/v1/dmarc/reporters";

const start = () => {
  const app = startApp();
  const key = app.newKey({ mode: "live" });
  const accept = (reporter: unknown) => app.request("POST", PATH, { key, body: { reporter } });
  const list = async () => (await app.request("GET", PATH, { key })).body;
  return { app, key, accept, list };
};

describe("accepted reporters", () => {
  test("are listed by their organizational domain, once, until they are withdrawn", async () => {
    const { app, key, accept, list } = start();
    const accepted = { reporter: "partner-mail.net", accepted_at: "2026-01-01T00:00:00.000Z" };
    expect(await accept("MX.Partner-Mail.net.")).toMatchObject({ status: 200, body: accepted });
    await app.clock.advance(1_000);
    expect(await accept("partner-mail.net")).toMatchObject({ status: 200, body: accepted });
    expect(await list()).toEqual({ reporters: [accepted] });
    const remove = () => app.request("DELETE", `${PATH}/partner-mail.net`, { key });
    expect((await remove()).status).toBe(204);
    expect(await list()).toEqual({ reporters: [] });
    expect(await remove()).toMatchObject({ status: 404, body: { error: "not_found" } });
  });

  test("are those of one account and mode", async () => {
    const { app, accept } = start();
    await accept("partner-mail.net");
    for (const other of [app.newKey({ mode: "test" }), app.newKey({ mode: "live", account: "other" })]) {
      expect((await app.request("GET", PATH, { key: other })).body).toEqual({ reporters: [] });
      expect((await app.request("DELETE", `${PATH}/partner-mail.net`, { key: other })).status).toBe(404);
    }
  });

  test.each([
    ["no domain", "partner", 400, "single label"],
    ["an address", "a@partner-mail.net", 400, "This is an email address"],
    ["a public suffix", "co.uk", 400, "public suffix"],
    ["nothing", "", 400, ""],
    ["a known reporter", "google.com", 409, "google.com is a known reporter"],
  ])("cannot be %s", async (_, reporter, status, message) => {
    const { accept, list } = start();
    const refused = await accept(reporter);
    expect(refused.status).toBe(status);
    expect(refused.text).toContain(message);
    expect(await list()).toEqual({ reporters: [] });
  });

  test("cannot be withdrawn by a name that is no domain", async () => {
    const { app, key } = start();
    expect((await app.request("DELETE", `${PATH}/nobody`, { key })).status).toBe(404);
  });

  test("are 500 at most", async () => {
    const { app, accept } = start();
    const insert = app.db.sqlite.query("INSERT INTO dmarc_accepted_reporters VALUES (?, 'live', ?, 1)");
    for (let n = 0; n < 500; n++) insert.run(app.accountId(), `r${n}.net`);
    expect(await accept("one-more.net")).toMatchObject({ status: 409 });
    expect(await accept("r7.net")).toMatchObject({ status: 200 });
  });

  test("are given up or withdrawn with the right to write only", async () => {
    const { app } = start();
    const key = app.newKey({ mode: "live", scopes: ["dmarc:read"] });
    expect((await app.request("POST", PATH, { key, body: { reporter: "partner-mail.net" } })).status).toBe(403);
    expect((await app.request("GET", PATH, { key })).status).toBe(200);
  });
});
