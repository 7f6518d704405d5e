import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import blocklists from "../../fixtures/blocklists.json" with { type: "json" };
import type { IssuedKey } from "../accounts/keys.ts";
import { createApps, type TestApp } from "../testing/app.ts";
import type { Zone } from "../testing/dns-zone.ts";

const start = createApps();
const folder = mkdtempSync(join(tmpdir(), "postwarden-muting-"));
afterAll(() => rmSync(folder, { recursive: true }));

const PATH = "/v1/blacklist/targets";
const WEBHOOK = "https://example.com/hook";
const TEST_POINTS: Zone = {
  "2.0.0.127.bl.spamcop.net": { A: ["127.0.0.2"] },
  "2.0.0.127.zen.spamhaus.org": { A: ["127.0.0.2", "127.0.0.4", "127.0.0.10"] },
};
const PBL: Zone = { "8.8.8.8.zen.spamhaus.org": { A: ["127.0.0.10"] } };
const SBL_AND_PBL: Zone = { "8.8.8.8.zen.spamhaus.org": { A: ["127.0.0.2", "127.0.0.10"] } };

/** A service that knows some lists of the catalogue. */
const startWith = async (listIds: readonly string[], zone: Zone, path = ":memory:"): Promise<TestApp> => {
  const catalogue = join(folder, `${listIds.join("-")}.json`);
  const lists = blocklists.lists.filter(({ id }) => listIds.includes(id));
  await Bun.write(catalogue, JSON.stringify({ ...blocklists, lists }));
  return start({ zone: { ...TEST_POINTS, ...zone }, settings: { BLOCKLIST_CATALOGUE: catalogue }, path });
};

/** Lets a check take its turns at the lists while the clock is moved on. */
const check = async (app: TestApp, key: IssuedKey, id: string) => {
  const work = app.request("POST", `${PATH}/${id}/check?timeout=60`, { key });
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  for (let step = 0; step < 200 && !isDone; step++) await app.advance(100);
  return (await work).body.target;
};

const watch = async (app: TestApp) => {
  const key = app.newKey({ mode: "live" });
  const { id } = await app.request("POST", PATH, { key, body: { target: "8.8.8.8", webhook_url: WEBHOOK } });
  const mute = (muted_lists: readonly string[]) =>
    app.request("PATCH", `${PATH}/${id}`, { key, body: { muted_lists } });
  const events = () =>
    app.db.sqlite
      .query<{ type: string; listing: string; reason: string | null }, []>(
        "SELECT type, data ->> 'listing' AS listing, data ->> 'reason' AS reason FROM outbox ORDER BY id",
      )
      .all();
  return { key, id, mute, events, check: () => check(app, key, id) };
};

describe("a muted listing", () => {
  test("is removed at once with its reason, does not return, and leaves the list's other listings", async () => {
    const { mute, events, check: look } = await watch(await startWith(["spamcop", "spamhaus-zen"], SBL_AND_PBL));
    expect(await look()).toMatchObject({ status: "listed", listed_on: ["spamhaus-pbl", "spamhaus-sbl"] });
    const muted = await mute(["spamhaus-pbl"]);
    expect(muted).toMatchObject({
      status: 200,
      body: { status: "listed", listed_on: ["spamhaus-sbl"], muted_lists: ["spamhaus-pbl"] },
    });
    expect(await look()).toMatchObject({ status: "listed", listed_on: ["spamhaus-sbl"] });
    expect(events().slice(2)).toEqual([{ type: "blacklist.delisted", listing: "spamhaus-pbl", reason: "list_muted" }]);
  });

  test("of the only list makes the target unknown, or clean if another list has no entry", async () => {
    const alone = await watch(await startWith(["spamhaus-zen"], PBL));
    await alone.check();
    expect((await alone.mute(["spamhaus-pbl"])).body).toMatchObject({ status: "unknown", listed_on: [] });
    expect(await alone.check()).toMatchObject({ status: "unknown", listed_on: [] });
    const beside = await watch(await startWith(["spamcop", "spamhaus-zen"], PBL));
    await beside.check();
    expect((await beside.mute(["spamhaus-pbl"])).body).toMatchObject({ status: "clean", listed_on: [] });
    expect(await beside.check()).toMatchObject({ status: "clean", listed_on: [] });
  });

  test("that is added and removed needs no confirmation", async () => {
    const app = await startWith(["spamhaus-zen"], PBL);
    const { mute, check: look } = await watch(app);
    await mute(["spamhaus-pbl"]);
    await look();
    const asked = () =>
      app.resolver.queries.filter((question) => JSON.stringify(question).includes("8.8.8.8.zen")).length;
    const before = asked();
    await look();
    // The listing itself, and the text about it.
    expect(asked() - before).toBeLessThanOrEqual(2);
  });

  test("is reported again when it is no longer muted", async () => {
    const { mute, events, check: look } = await watch(await startWith(["spamcop", "spamhaus-zen"], PBL));
    await mute(["spamhaus-pbl"]);
    expect(await look()).toMatchObject({ status: "clean" });
    expect(events()).toEqual([]);
    await mute([]);
    expect(await look()).toMatchObject({ status: "listed", listed_on: ["spamhaus-pbl"] });
    expect(events()).toEqual([{ type: "blacklist.listed", listing: "spamhaus-pbl", reason: null }]);
  });
});

describe("muted_lists", () => {
  test("accept ids that have left the catalogue, but no unknown ones", async () => {
    const path = join(folder, "left.db");
    const before = await watch(await startWith(["spamcop", "spamhaus-zen"], {}, path));
    expect((await before.mute(["spamcop", "spamhaus-pbl"])).status).toBe(200);
    const app = await startWith(["psbl"], {}, path);
    const request = (muted_lists: unknown) =>
      app.request("PATCH", `${PATH}/${before.id}`, { key: before.key, body: { muted_lists } });
    const { muted_lists } = (await app.request("GET", `${PATH}/${before.id}`, { key: before.key })).body;
    expect(muted_lists).toEqual(["spamcop", "spamhaus-pbl"]);
    expect(await request(muted_lists)).toMatchObject({ status: 200, body: { muted_lists } });
    expect((await request(["spamcop"])).status).toBe(200);
    expect((await request(["spamcop", "spamhaus-pbl"])).status).toBe(400);
  });

  test.each([
    ["spamhaus-plb", 'There is no such list or listing. Did you mean "spamhaus-pbl"?'],
    ["spamcopp", 'There is no such list or listing. Did you mean "spamcop"?'],
    ["made-up-by-somebody", "There is no such list or listing. GET /v1/blacklist/lists returns all of them"],
  ])("with %p are refused with the nearest id, if there is one", async (id, message) => {
    const { mute } = await watch(await startWith(["spamcop", "spamhaus-zen"], {}));
    expect((await mute(["spamcop", id])).body).toMatchObject({ issues: [{ path: "muted_lists.1", message }] });
  });
});
