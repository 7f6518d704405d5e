import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { notifiedText } from "./target-panels.tsx";
import { signIn, type Visitor } from "../../testing/dashboard.ts";

const start = createApps();
const MINUTE_MS = 60_000;
const HOSTILE = `"><script>alert(1)</script><img src=x onerror=alert(2)>`;

/** An owner in test mode, whose targets are checked by `pass`. */
const startPages = async () => {
  const app = start();
  const visitor = await signIn(app);
  const { blocklist } = app.service;
  const owner = { accountId: visitor.accountId, mode: "test" } as const;
  const add = async (target: string, label: string | null = null): Promise<string> => {
    const settings = { monitoringEnabled: true, webhookUrl: null, recipients: [], alertSeverityMin: null };
    return (await blocklist.targets.add(owner, { target, label, ...settings })).target.id;
  };
  const pass = async (ms = 2 * MINUTE_MS) => {
    await app.advance(ms);
    await blocklist.scheduler.checkDue();
  };
  const get = (path: string) => visitor.get(`/test${path}`);
  const submit = (path: string, fields: Parameters<Visitor["submit"]>[1] = {}) =>
    visitor.submit(`/test${path}`, fields);
  const post = (path: string, fields: Parameters<Visitor["post"]>[1] = {}) => visitor.post(`/test${path}`, fields);
  const find = (id: string) => blocklist.targets.find(owner, id);
  return { app, visitor, blocklist, owner, add, pass, get, submit, post, find };
};

describe("the table of targets", () => {
  test("teaches an account without targets, and its form adds the first one", async () => {
    const { get, submit } = await startPages();
    const empty = await get("/blocklists");
    expect(empty.text).toContain("Nothing is monitored yet.");
    expect(empty.html).not.toContain("<table");
    const added = await submit("/blocklists/new", { targets: "listed.example" });
    expect(added.text).toContain("Added. The first check runs within a minute.");
    expect(added.text).toContain("listed.example");
  });

  test("begins with the worst, says on which lists and since when, and counts", async () => {
    const { add, pass, get } = await startPages();
    for (const target of ["clean.example", "refused.example", "listed.example"]) await add(target);
    await pass();
    const { status, text, html } = await get("/blocklists");
    expect(status).toBe(200);
    expect(text).toContain("1 target listed. 1 could not be checked.");
    const places = ["listed.example", "refused.example", "clean.example"].map((name) => html.indexOf(`>${name}<`));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(text).toContain("The test list since a moment ago");
    expect(text).toMatch(/Clean 1 \/ 3/);
    expect(text).toContain("1–3 of 3");
  });

  test("is filtered, sorted and paged by its URL; what is not understood is dropped", async () => {
    const { add, pass, get } = await startPages();
    await add("listed.example", "web");
    await add("clean.example", "mail");
    await pass();
    const shown = async (query: string) => {
      const { html } = await get(`/blocklists?${query}`);
      return ["listed.example", "clean.example"].filter((name) => html.includes(`>${name}<`));
    };
    expect(await shown("state=listed")).toEqual(["listed.example"]);
    expect(await shown("label=mail")).toEqual(["clean.example"]);
    expect(await shown("q=LIST")).toEqual(["listed.example"]);
    expect(await shown("list=test-list")).toEqual(["listed.example"]);
    expect(await shown("list=nothing")).toEqual([]);
    expect(await shown("severity=high")).toEqual(["listed.example"]);
    expect(await shown("state=bogus&cursor=-1&sort=x")).toEqual(["listed.example", "clean.example"]);
    const none = await get("/blocklists?q=nothing");
    expect(none.text).toContain("No target matches");
    expect((await get("/blocklists?cursor=9")).status).toBe(200);
  });

  test("has 50 targets a page", async () => {
    const { get, submit } = await startPages();
    const targets = Array.from({ length: 53 }, (_, n) => `h${n}.example`).join("\n");
    expect((await submit("/blocklists/new", { targets })).text).toContain("53 targets added.");
    const first = await get("/blocklists");
    expect(first.text).toContain("1–50 of 53");
    const second = await get("/blocklists?cursor=2");
    expect(second.text).toContain("51–53 of 53");
    expect(second.text).not.toContain("Next page");
  });

  test("is taken away as CSV with the same filters, without formulas", async () => {
    const { add, pass, get } = await startPages();
    await add("listed.example", "=1+1");
    await add("clean.example");
    await pass();
    const { html, headers } = await get("/blocklists/export.csv?state=listed");
    expect(headers.get("content-type")).toContain("text/csv");
    const lines = html.trim().split("\r\n");
    expect(lines).toHaveLength(2);
    expect(lines[1]).toStartWith("listed.example,'=1+1,listed,high,test-list,2026-01-01T");
  });
});

describe("chosen targets", () => {
  test("are checked soon, paused, resumed, and deleted after a confirmation", async () => {
    const { add, pass, submit, post, find, app } = await startPages();
    const ids = [await add("listed.example"), await add("clean.example")];
    await pass();
    const act = (name: string) => submit("/blocklists/bulk", { ids, act: name, back: "state=listed&x=1" });
    expect((await act("check")).text).toContain("2 targets will be checked within a minute.");
    expect(find(ids[0] ?? "").nextCheckAtMs).toBe(app.clock.nowMs());
    expect((await act("pause")).text).toContain("2 targets paused.");
    expect(find(ids[0] ?? "").monitoringEnabled).toBe(false);
    expect((await act("resume")).text).toContain("2 targets resumed.");
    const asked = await post("/blocklists/bulk", { ids, act: "delete", back: "state=listed" });
    expect((await post("/blocklists/bulk", { ids })).text).toContain("Delete 2 targets?");
    expect(asked.text).toContain("Delete 2 targets?");
    expect(find(ids[0] ?? "").value).toBe("listed.example");
    const gone = await act("delete-confirmed");
    expect(gone.text).toContain("2 targets deleted.");
    expect(() => find(ids[0] ?? "")).toThrow();
  });

  test("come back to where they were chosen, within this site", async () => {
    const { add, post } = await startPages();
    const id = await add("listed.example");
    const back = await post("/blocklists/bulk", { ids: id, act: "pause", back: "state=listed&q=a b" });
    expect(back.location).toBe("/test/blocklists?state=listed&q=a+b");
    const outside = await post("/blocklists/bulk", { ids: id, act: "pause", back: "//evil.example/\r\nx: y" });
    expect(outside.location).toStartWith("/test/blocklists?%2F%2Fevil.example");
  });

  test("must be chosen", async () => {
    const { submit, add } = await startPages();
    await add("listed.example");
    expect((await submit("/blocklists/bulk", { act: "pause" })).text).toContain("Choose at least one target.");
  });
});

describe("new targets", () => {
  test("are refused line by line with what was typed kept, and the others can be added", async () => {
    const { post, submit, get } = await startPages();
    const fields = { targets: "clean.example\n\n10.0.0.1\nftp://x/", label: "outbound" };
    const refused = await post("/blocklists/new", fields);
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("One field needs your attention.");
    expect(refused.text).toContain("Nothing was added yet: see the lines below. ");
    expect(refused.text).toContain("2 lines cannot be added Line 3");
    expect(refused.text).toMatch(/Line 3, 10\.0\.0\.1 : 10\.0\.0\.1 is not a public address/);
    expect(refused.text).toContain("Line 4, ftp://x/ : Give only the domain, without http:// and path.");
    expect(refused.html).toContain("clean.example\n\n10.0.0.1\nftp://x/</textarea>");
    expect(refused.html).toContain('value="outbound"');
    expect((await get("/blocklists")).text).toContain("Nothing is monitored yet.");
    const added = await submit("/blocklists/new", { ...fields, only_valid: "yes" });
    expect(added.text).toContain("clean.example");
    expect(added.text).toContain("outbound");
  });

  test("of a range show what they take before they are added", async () => {
    const { post, submit } = await startPages();
    const asked = await post("/blocklists/new", { targets: "1.2.3.0/29", label: "net" });
    expect(asked.status).toBe(200);
    expect(asked.text).toContain("8 targets take 32 queries a day");
    expect(asked.html).toContain("1.2.3.0/29</textarea>");
    expect(asked.html).toContain('value="net"');
    const added = await submit("/blocklists/new", { targets: "1.2.3.0/29", label: "net", confirmed: "yes" });
    expect(added.text).toContain("1.2.3.0/29");
    expect(added.text).toContain("8 addresses");
  });

  test("from a hundred on show what they take of each list before they are added", async () => {
    const { post, submit, get } = await startPages();
    const targetsOf = (count: number) => Array.from({ length: count }, (_, at) => `d${at}.example`).join("\n");
    const asked = await post("/blocklists/new", { targets: targetsOf(100) });
    expect([asked.status, asked.text.includes("100 targets take 400 queries a day")]).toEqual([200, true]);
    expect(asked.text).toContain("The test list : 400 a day");
    expect((await get("/blocklists")).text).toContain("Nothing is monitored yet.");
    const added = await submit("/blocklists/new", { targets: targetsOf(100), confirmed: "yes" });
    expect(added.text).toContain("100 targets added.");
    expect((await submit("/blocklists/new", { targets: "https://one-more.example/shop?x=1" })).text).toContain(
      "Added. The first check runs within a minute.",
    );
  });

  test.each([
    [{ targets: "" }, "A domain or an IP address is needed"],
    [{ targets: "clean.example", webhook_url: "ftp://x" }, "https"],
    [{ targets: "clean.example", recipients: "someone@example.com" }, "does not send mail"],
    [{ targets: "clean.example", label: "x".repeat(201) }, "At most 200 characters"],
  ])("%j is refused beside its field", async (fields, message) => {
    const { post } = await startPages();
    const { status, text, html } = await post("/blocklists/new", fields);
    expect(status).toBe(400);
    expect(text).toContain(message);
    expect(text).toContain("One field needs your attention.");
    expect(text).not.toMatch(/(?:targets|webhook_url|recipients|label): /);
    expect(html).toContain('aria-invalid="true"');
  });

  test("that are monitored already are said to be", async () => {
    const { add, submit } = await startPages();
    await add("clean.example");
    const one = await submit("/blocklists/new", { targets: "Clean.Example" });
    expect(one.text).toContain("It is already monitored.");
    const two = await submit("/blocklists/new", { targets: "clean.example\nlisted.example" });
    expect(two.text).toContain("1 target added. 1 target already monitored.");
  });

  test("are found for a domain, and the chosen ones are added", async () => {
    const { post, submit } = await startPages();
    const found = await post("/blocklists/discover", { domain: "listed.example" });
    expect(found.text).toContain("1 target found");
    expect(found.text).toContain("Test keys do not query the DNS.");
    const nothing = await post("/blocklists/discover", {});
    expect(nothing.status).toBe(400);
    expect(nothing.text).toContain("Enter a domain, or choose the addresses of this service");
    expect((await post("/blocklists/discover", { domain: "10.0.0.1" })).status).toBe(400);
    const added = await submit("/blocklists/found", { found: ["listed.example", "clean.example"], label: "own" });
    expect(added.text).toContain("2 targets added.");
    expect((await submit("/blocklists/found", {})).text).toContain("Choose at least one target.");
  });
});

describe("a target", () => {
  test("says what the listing means, what the list returned, and how it ends; then 90 days and changes", async () => {
    const { add, pass, get } = await startPages();
    const id = await add("listed.example", "outbound 1");
    await pass();
    await pass(3 * 60 * MINUTE_MS);
    const { text, html } = await get(`/blocklists/${id}`);
    expect(text).toContain("On The test list for 3 h");
    expect(text).toContain("high severity");
    expect(text).toContain("Test keys report this target as listed.");
    expect(text).toContain("The list returned 127.0.0.2 : “Listed for testing only.”.");
    expect(text).toContain("90 days 1 list · 1 listed");
    expect(html).toContain('aria-label="The test list: listed 1 time"');
    expect(text).toMatch(/Listed on The test list below|Listed on The test list/);
    expect(html).not.toMatch(/ style=|<script(?! src)/);
  });

  test("that is clean, unknown, new or paused says so, and never more", async () => {
    const { add, pass, get, submit } = await startPages();
    const ids = { clean: await add("clean.example"), unknown: await add("refused.example") };
    expect((await get(`/blocklists/${ids.clean}`)).text).toContain("The first check runs within a minute");
    expect((await get("/blocklists")).html).toContain('<span class="soft">never</span>');
    await pass();
    expect((await get("/blocklists")).html).not.toContain("never</span>");
    expect((await get(`/blocklists/${ids.clean}`)).text).toContain("On none of 1 list");
    const unknown = await get(`/blocklists/${ids.unknown}`);
    expect(unknown.text).toContain("No list gave a usable response");
    expect(unknown.text).toContain("1 list cannot be believed");
    expect(unknown.text).toContain("The test list refuses queries about this target.");
    expect(unknown.text).not.toContain("On none of");
    const paused = await submit(`/blocklists/${ids.clean}/monitoring`, { is: "no" });
    expect(paused.text).toContain("Nobody looks at this target");
    expect((await submit(`/blocklists/${ids.clean}/monitoring`, { is: "yes" })).text).toContain("Resumed.");
  });

  test("shows that it is being checked, and refreshes itself", async () => {
    const { visitor, blocklist } = await startPages();
    const live = { accountId: visitor.accountId, mode: "live" } as const;
    const settings = { label: null, monitoringEnabled: true, webhookUrl: null, recipients: [], alertSeverityMin: null };
    const { target } = await blocklist.targets.add(live, { target: "8.8.8.8", ...settings });
    // The pauses between queries last as long as the clock of the test stands still.
    void blocklist.monitor.check(target, "manual");
    const { text, html } = await visitor.get(`/blocklists/${target.id}`);
    expect(text).toMatch(/Checking Asking \d+ lists about 8\.8\.8\.8/);
    expect(html).toContain('hx-select="#state"');
  });

  test("can mute a list that cannot be believed", async () => {
    const { add, pass, get, submit, find } = await startPages();
    const id = await add("refused.example");
    await pass();
    expect((await get(`/blocklists/${id}`)).text).toContain("Mute this list");
    const muted = await submit(`/blocklists/${id}/listings/test-list/mute`, { days: "never" });
    expect(muted.text).not.toContain("1 list cannot be believed");
    expect(find(id).mutedLists).toEqual(["test-list"]);
  });

  test("is checked now", async () => {
    const { add, submit } = await startPages();
    const id = await add("listed.example");
    const { text } = await submit(`/blocklists/${id}/check`);
    expect(text).toContain("Checked.");
    expect(text).toContain("On The test list");
  });

  test("keeps marks and notes about a listing with who made them", async () => {
    const { add, pass, submit, post } = await startPages();
    const id = await add("listed.example");
    await pass();
    const path = `/blocklists/${id}/listings/test-list`;
    const requested = await submit(`${path}/requested`, { is: "yes" });
    expect(requested.text).toContain("Removal requested by main@example.com");
    expect((await submit(`${path}/requested`, { is: "no" })).text).not.toContain("Removal requested by");
    expect((await submit(`${path}/acknowledged`, { is: "yes" })).text).toContain("Acknowledged by main@example.com");
    expect((await submit(`${path}/note`, { note: HOSTILE })).html).toContain("&lt;script>");
    expect((await submit(`${path}/note`, { note: "" })).text).not.toContain("onerror");
    const long = await post(`${path}/note`, { note: "x".repeat(1_001) });
    expect(long.status).toBe(400);
    expect((await post(`/blocklists/${id}/listings/nothing/note`, { note: "x" })).status).toBe(404);
  });

  test("mutes a listing with a reason and an end, and unmutes it", async () => {
    const { add, pass, submit, post, find, app } = await startPages();
    const id = await add("listed.example");
    await pass();
    const path = `/blocklists/${id}/listings/test-list/mute`;
    const muted = await submit(path, { days: "7", reason: "shared address" });
    expect(muted.text).toContain("“shared address” Until 8 Jan");
    expect(muted.text).toContain("by main@example.com");
    expect(find(id).mutedLists).toEqual(["test-list"]);
    expect((await post(path, { days: "2" })).status).toBe(400);
    const again = await submit(`/blocklists/${id}/unmute`, { muted: "test-list" });
    expect(again.text).toContain("Unmuted. The next check shows what is listed.");
    expect(find(id).mutedLists).toEqual([]);
    await submit(path, { days: "never", reason: "" });
    await app.advance(1);
    expect((await submit(`/blocklists/${id}/check`)).text).toContain("Until somebody unmutes it");
  });

  test("keeps what was typed when its settings are refused, and stores them otherwise", async () => {
    const { add, submit, post, find } = await startPages();
    const id = await add("clean.example");
    const fields = { label: "out", alert_severity_min: "high", webhook_url: "https://example.com/hook" };
    await submit(`/blocklists/${id}/settings`, fields);
    expect(find(id)).toMatchObject({ label: "out", alertSeverityMin: "high", webhookUrl: "https://example.com/hook" });
    const refused = await post(`/blocklists/${id}/settings`, { ...fields, label: "new", webhook_url: "nothing" });
    expect(refused.status).toBe(400);
    expect(refused.html).toContain('value="nothing"');
    expect(refused.html).toContain('value="new"');
    expect(refused.html).toMatch(/<details class="more" open><summary class="button">Edit settings/);
    expect(find(id).label).toBe("out");
    await submit(`/blocklists/${id}/settings`, {});
    expect(find(id)).toMatchObject({ label: null, alertSeverityMin: null, webhookUrl: null });
  });

  test("of a range shows its addresses, and an address belongs to its range", async () => {
    const { add, pass, get, blocklist, owner, post } = await startPages();
    const id = await add("1.2.3.4-1.2.3.5");
    await pass();
    const { text } = await get(`/blocklists/${id}`);
    expect(text).toContain("1.2.3.4 on The test list");
    expect(text).toContain("Addresses 1 listed · 1 clean");
    const [member] = blocklist.targets.list(owner, { rangeId: id, value: "1.2.3.4" })(null, 10, 10).rows;
    const own = await get(`/blocklists/${member?.id}`);
    expect(own.text).toContain("It belongs to 1.2.3.4/31 : pause, change or delete the range.");
    expect(own.text).not.toContain("Mute this listing");
    expect((await post(`/blocklists/${member?.id}/monitoring`, { is: "no" })).status).toBe(409);
  });
});

describe("how a change was sent", () => {
  const change = { atMs: 0, change: "listed", listing: "a", name: "A", address: null, sinceMs: null } as const;
  test.each([
    [{ webhook: "delivered", mailedTo: 2, reason: null }, "webhook delivered, mail to 2 recipients"],
    [{ webhook: "waiting", mailedTo: 0, reason: null }, "webhook waiting, no mail"],
    [{ webhook: "failed", mailedTo: null, reason: null }, "webhook failed"],
    [{ webhook: "feed_only", mailedTo: 0, reason: null }, "below your alert threshold"],
    [{ webhook: "none", mailedTo: 1, reason: "observed" }, "no webhook, mail to 1 recipient"],
    [{ webhook: "waiting", mailedTo: null, reason: "list_muted" }, "muted by somebody"],
    [{ webhook: null, mailedTo: null, reason: null }, ""],
  ] as const)("%j", (how, text) => {
    expect(notifiedText({ ...change, ...how })).toBe(text);
  });
});

describe("the history", () => {
  test("has every check with filters, and a file", async () => {
    const { add, pass, get } = await startPages();
    const id = await add("listed.example");
    await pass();
    await pass(2 * 60 * MINUTE_MS);
    const all = await get(`/blocklists/${id}/history`);
    expect(all.text).toContain("1–2 of 2");
    expect(all.text).toContain("listed on The test list");
    expect((await get(`/blocklists/${id}/history?changes=yes`)).text).not.toContain("Previous page");
    expect((await get(`/blocklists/${id}/history?status=clean`)).text).toContain("No check matches.");
    const { html, headers } = await get(`/blocklists/${id}/history.csv?changes=yes`);
    expect(headers.get("content-disposition")).toBe('attachment; filename="listed.example-checks.csv"');
    expect(html.trim().split("\r\n")).toHaveLength(2);
    expect(html).toContain(",listed,test-list,test-list,,");
  });
});

describe("the lists", () => {
  test("of test keys are the test list", async () => {
    const { add, pass, get, post } = await startPages();
    await add("listed.example");
    await pass();
    const all = await get("/blocklists/lists");
    expect(all.text).toContain("The test list");
    const one = await get("/blocklists/lists/test-list");
    expect(one.text).toContain("listed.example");
    expect((await get("/blocklists/lists/spamcop")).status).toBe(404);
    expect((await post("/blocklists/lists/test-list/test")).status).toBe(409);
  });

  test("of live keys have their codes and terms; those that are not in use say how to use them", async () => {
    const { visitor } = await startPages();
    const all = await visitor.get("/blocklists/lists");
    expect(all.text).toContain("Spamhaus ZEN");
    expect(all.text).toContain("POSTWARDEN_BLOCKLISTS_ENABLE");
    const zen = await visitor.get("/blocklists/lists/spamhaus-zen");
    expect(zen.text).toContain("Listed manually as a sender or supporter of spam.");
    expect(zen.text).toContain("None of your targets is on it");
    expect(zen.html).toContain('rel="noopener noreferrer nofollow"');
    const other = await visitor.get("/blocklists/lists/abusix-combined");
    expect(other.text).toContain("It needs a key");
  });
});

describe("hostile texts", () => {
  test("in labels, notes, reasons and responses of lists are text", async () => {
    const { add, pass, get, submit, app } = await startPages();
    const id = await add("listed.example", HOSTILE);
    await pass();
    app.db.sqlite.run("UPDATE blocklist_checks SET body = replace(body, 'Listed for testing only.', ?)", [
      "<script>alert(3)</script>",
    ]);
    app.db.sqlite.run("UPDATE blocklist_listings SET meaning = ?", [HOSTILE]);
    await submit(`/blocklists/${id}/listings/test-list/note`, { note: HOSTILE });
    for (const path of [`/blocklists/${id}`, `/blocklists/${id}/history`, "/blocklists", "/blocklists?label=x"]) {
      const { html, status } = await get(path);
      expect(status).toBe(200);
      expect(html).not.toContain("<script>");
      expect(html).not.toMatch(/<img(?! class="mark")/);
    }
    await submit(`/blocklists/${id}/listings/test-list/mute`, { days: "1", reason: HOSTILE.slice(0, 100) });
    expect((await get(`/blocklists/${id}`)).html).not.toContain("<script>");
  });
});

describe("access", () => {
  test("another account's and mode's targets do not exist", async () => {
    const { app, visitor, add } = await startPages();
    const id = await add("listed.example");
    const other = await signIn(app, { account: "other" });
    for (const who of [other, { ...visitor, get: visitor.get }]) {
      const prefix = who === other ? "/test" : "";
      for (const path of ["", "/history", "/history.csv"])
        expect((await who.get(`${prefix}/blocklists/${id}${path}`)).status).toBe(404);
      for (const [path, fields] of [
        ["/check", {}],
        ["/monitoring", { is: "no" }],
        ["/settings", {}],
        ["/unmute", { muted: "test-list" }],
        ["/listings/test-list/mute", { days: "1" }],
        ["/listings/test-list/note", { note: "x" }],
        ["/listings/test-list/requested", { is: "yes" }],
        ["/listings/test-list/acknowledged", { is: "yes" }],
      ] as const)
        expect((await who.post(`${prefix}/blocklists/${id}${path}`, fields)).status).toBe(404);
      for (const act of ["check", "pause", "resume", "delete", "delete-confirmed"])
        expect((await who.post(`${prefix}/blocklists/bulk`, { ids: id, act })).status).toBe(404);
    }
    expect((await other.get("/test/blocklists/nothing")).status).toBe(404);
  });

  test("a form without the token of the session changes nothing", async () => {
    const { visitor, add, find } = await startPages();
    const id = await add("listed.example");
    const forged = await visitor.post(`/test/blocklists/${id}/monitoring`, { is: "no" }, "0".repeat(64));
    expect(forged.status).toBe(403);
    expect(find(id).monitoringEnabled).toBe(true);
  });
});
