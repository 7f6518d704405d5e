import { beforeAll, describe, expect, test } from "bun:test";
import { HttpClient } from "../http-client.ts";
import { facts, live, neighbour, sessionOf, stateOf } from "./facts.ts";
import { placeOf } from "../places.ts";
import { type Crawl, crawl, sendForm, tokenOf } from "./crawl.ts";

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/** Texts that only pages of the one account or of the other may contain. */
const OWN = /kaffeewerk|hotelmar|ticketo|customers-october|web shop/;
const FOREIGN = /secret[.-](person|row|domain)|secret (target|list)|neighbour/;
const PAGES_MIN = 20;

let owner: HttpClient;
let member: HttpClient;
let other: HttpClient;
let seen: Crawl;

beforeAll(async () => {
  [owner, member, other] = await Promise.all([sessionOf("owner"), sessionOf("member"), sessionOf("other")]);
  seen = await crawl(owner, 4);
});

/** Targets about one resource: an id in the path, not in the query. */
const withIds = (targets: readonly string[]): string[] =>
  targets.filter((target) => ID.test(target.split("?")[0] ?? ""));

describe("the pages of an account", () => {
  test("are reached by links, none of which is broken", () => {
    expect(seen.broken).toEqual([]);
    expect(seen.pages.length).toBeGreaterThan(PAGES_MIN);
  });

  test("show nothing of another account", () => {
    expect(seen.pages.filter(({ html }) => FOREIGN.test(html)).map(({ target }) => target)).toEqual([]);
  });

  test("cannot be framed, cached, sniffed or scripted", () => {
    const wrong = seen.pages.filter(
      ({ headers }) =>
        headers.get("content-security-policy") !== POLICY ||
        headers.get("x-frame-options") !== "DENY" ||
        headers.get("cache-control") !== "no-store" ||
        headers.get("x-content-type-options") !== "nosniff" ||
        headers.get("referrer-policy") !== "same-origin",
    );
    expect(wrong.map(({ target }) => target)).toEqual([]);
  });

  test("contain no inline script, style or handler", () => {
    const inline = /<script(?![^>]*\ssrc=)[^>]*>|<style\b|<[a-z][^<>]*\s(?:on[a-z]+|style)=|href="javascript:/i;
    expect(seen.pages.filter(({ html }) => inline.test(html)).map(({ target }) => target)).toEqual([]);
  });

  test("have every id once, and a label for every field", () => {
    const problems = seen.pages.flatMap(({ target, html }) => {
      const ids = [...html.matchAll(/<[^<>]+\sid="([^"]+)"/g)].map(([, id = ""]) => id);
      const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
      const lost = [...html.matchAll(/<label[^<>]+\sfor="([^"]+)"/g)]
        .map(([, id = ""]) => id)
        .filter((id) => !ids.includes(id));
      return [...twice.map((id) => `${target}: ${id} twice`), ...lost.map((id) => `${target}: a label for ${id}`)];
    });
    expect(problems).toEqual([]);
  });

  test("load assets under hashed names that are kept for ever", async () => {
    const assets = new Set(
      seen.pages.flatMap(({ html }) =>
        [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path),
      ),
    );
    expect(assets.size).toBeGreaterThan(2);
    for (const path of assets) {
      const { status, headers } = await owner.get(path);
      expect([path, status, headers.get("cache-control")]).toEqual([path, 200, "public, max-age=31536000, immutable"]);
    }
  });

  test("and its downloads are private", async () => {
    for (const path of seen.downloads) {
      const { status, headers } = await owner.get(path);
      expect([path, status]).toEqual([path, 200]);
      expect([path, headers.get("cache-control")]).toEqual([path, "no-store"]);
      expect([path, headers.get("x-content-type-options")]).toEqual([path, "nosniff"]);
    }
  });
});

describe("another account", () => {
  test("gets 404 for every page and download with an id", async () => {
    const targets = withIds([...seen.pages.map(({ target }) => target), ...seen.downloads]);
    expect(targets.length).toBeGreaterThan(10);
    const statuses = await Promise.all(
      targets.map(async (target) => [target, (await other.get(target)).status] as const),
    );
    expect(statuses.filter(([, status]) => status !== 404)).toEqual([]);
  });

  test("sees nothing of the account on pages without an id", async () => {
    const targets = seen.pages.map(({ target }) => target).filter((target) => !ID.test(target));
    const leaks = await Promise.all(
      targets.map(async (target) => [target, OWN.exec((await other.get(target)).html)?.[0] ?? null] as const),
    );
    expect(leaks.filter(([, leak]) => leak !== null)).toEqual([]);
  });

  test("changes nothing with a form about an id", async () => {
    const csrf = await tokenOf(other);
    const before = await stateOf(live);
    const forms = seen.forms.filter(
      ({ action, fields }) => ID.test(action) || fields.some(([name, value]) => name !== "_csrf" && ID.test(value)),
    );
    expect(forms.length).toBeGreaterThan(10);
    const passed: string[] = [];
    for (const form of forms) {
      // The rows of a table are chosen outside of its form.
      const chosen = form.action.endsWith("/classify") ? [["keys", "service:mailchimp"] as const] : [];
      const { status } = await sendForm(other, { ...form, fields: [...form.fields, ...chosen] }, csrf);
      if (ID.test(form.action) && status !== 404) passed.push(`${status} ${form.action}`);
    }
    expect(passed).toEqual([]);
    expect(await stateOf(live)).toEqual(before);
  });
});

/** Pages that need more than membership, whoever may see the links to them. */
const OWNERS_ONLY = ["/settings/keys", "/settings/users", "/settings/audit"];
const OPERATORS_ONLY = ["/settings/service", "/settings/sender", "/settings/suppressions"];

describe("a member", () => {
  test("gets 403 for the pages of owners and operators, and is led to none of them", async () => {
    for (const path of [...OWNERS_ONLY, ...OPERATORS_ONLY])
      expect([path, (await member.get(path)).status]).toEqual([path, 403]);
    for (const path of OPERATORS_ONLY) expect([path, (await other.get(path)).status]).toEqual([path, 403]);
    expect((await crawl(member, 2)).broken).toEqual([]);
  });

  test("cannot send a form that only owners see", async () => {
    const csrf = await tokenOf(member);
    const allowed = new Set((await crawl(member, 4)).forms.map(({ action }) => placeOf(action)));
    // Everybody may hide first steps; whoever has none left sees no form for it.
    allowed.add("/welcome/hide");
    const forms = seen.forms.filter(({ action }) => !allowed.has(placeOf(action)));
    expect(forms.length).toBeGreaterThan(4);
    const before = await stateOf(live);
    const statuses = await Promise.all(
      forms.map(async (form) => [form.action, (await sendForm(member, form, csrf)).status] as const),
    );
    expect(statuses.filter(([, status]) => status !== 403)).toEqual([]);
    expect(await stateOf(live)).toEqual(before);
  });
});

describe("a visitor", () => {
  test("is sent to the sign-in from every page and download, and back afterwards", async () => {
    const visitor = new HttpClient(facts.url);
    for (const target of [...seen.pages.map((page) => page.target), ...seen.downloads]) {
      const { status, location } = await visitor.get(target);
      const next = target === "/" ? "/sign-in" : `/sign-in?next=${encodeURIComponent(target)}`;
      expect([target, status, location]).toEqual([target, 303, next]);
    }
  });

  test("changes nothing", async () => {
    const visitor = new HttpClient(facts.url);
    const before = await stateOf(live);
    for (const form of seen.forms) {
      if (form.action === "/theme") continue;
      const { status } = await sendForm(visitor, form);
      expect([form.action, [303, 403].includes(status)]).toEqual([form.action, true]);
    }
    expect(await stateOf(live)).toEqual(before);
  });
});

describe("a forged form", () => {
  test.each([
    ["without a token", () => Promise.resolve("")],
    ["with the token of another session of the same user", async () => tokenOf(await sessionOf("owner"))],
    ["with the token of another user", () => tokenOf(member)],
  ])("%s is refused everywhere", async (_, token) => {
    const csrf = await token();
    const before = await stateOf(live);
    const passed: string[] = [];
    for (const form of seen.forms) {
      const { status } = await sendForm(owner, form, csrf);
      if (status !== 403) passed.push(`${status} ${form.action}`);
    }
    expect(passed).toEqual([]);
    expect(await stateOf(live)).toEqual(before);
  });

  test("with the right token, from another site, is refused", async () => {
    const csrf = await tokenOf(owner);
    const body = new URLSearchParams({ _csrf: csrf, theme: "dark", back: "/" });
    expect((await owner.post("/theme", body, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  });

  test("is no way to another account: the neighbour has what it had", async () => {
    expect(JSON.stringify(await stateOf(neighbour))).toMatch(/secret target/);
  });
});
