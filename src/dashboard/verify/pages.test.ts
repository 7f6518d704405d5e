import { describe, expect, test } from "bun:test";
import { newId } from "../../foundation/base/secrets.ts";
import { TestApp } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

const start = async () => {
  const app = new TestApp();
  return { app, visitor: await signIn(app) };
};

describe("verify", () => {
  test("an address is verified, charged to nobody's key, and shown with its evidence", async () => {
    const { visitor } = await start();
    const shown = await visitor.submit("/test/verify", { email: " mailbox_not_found@any.example " });
    expect(shown.status).toBe(200);
    expect(shown.text).toContain("mailbox_not_found@any.example");
    expect(shown.text).toContain("Undeliverable");
    expect(shown.text).toContain("The server says that this mailbox does not exist.");
    expect(shown.text).toContain("Requested by main@example.com");
    expect(shown.text).toContain("How we know");
    const history = await visitor.get("/test/verify");
    expect(history.text).toContain("No such mailbox");
    expect((await visitor.get("/verify")).text).toContain("Nothing verified yet");
  });

  test("an address with a name or a comma is read as in a list, and the page says so", async () => {
    const { app, visitor } = await start();
    const typed = " Ada Lovelace <mailbox_exists@any.example>, ";
    const shown = await visitor.submit("/test/verify", { email: typed });
    expect(shown.text).toContain("Deliverable");
    const sent = await visitor.post("/test/verify", { email: typed });
    const flash = /pw_flash=([\w-]+)/.exec(sent.headers.get("set-cookie") ?? "")?.[1] ?? "";
    expect(JSON.parse(Buffer.from(flash, "base64url").toString())).toEqual({
      ok: "“Ada Lovelace <mailbox_exists@any.example>,” is read as mailbox_exists@any.example.",
    });
    const emails = app.db.sqlite.query("SELECT DISTINCT email FROM verifications").all();
    expect(emails).toEqual([{ email: "mailbox_exists@any.example" }]);
    const plain = await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    expect(plain.headers.get("set-cookie")).toBeNull();
    for (const email of ["a@b.example, c@d.example", "no address"])
      expect((await visitor.submit("/test/verify", { email })).text).toContain("Undeliverable");
  });

  test("without credits says what is missing and keeps what was typed", async () => {
    const { app, visitor } = await start();
    app.db.sqlite.run("UPDATE accounts SET credits_available = 0");
    const refused = await visitor.post("/verify", { email: "someone@example.com" });
    expect(refused.status).toBe(402);
    expect(refused.text).toContain("Insufficient credits: 1 required, 0 available.");
    expect(refused.html).toContain('value="someone@example.com"');
  });

  test("an empty box is an error beside the field", async () => {
    const { visitor } = await start();
    const refused = await visitor.post("/test/verify", { email: " " });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("Enter an email address.");
  });

  test("is limited by the rate of the account, over all its users", async () => {
    const { app, visitor } = await start();
    const other = await signIn(app, { email: "other@example.com", role: "member" });
    const { store } = app.service.accounts;
    expect(store.findAccountByName("main")?.plan).toBe("scale");
    const statuses: number[] = [];
    for (let at = 0; at < 51; at++) {
      const sender = at % 2 === 0 ? visitor : other;
      const sent = await sender.post("/test/verify", { email: `a${at}@any.example` });
      statuses.push(sent.status);
      expect(sent.headers.get("retry-after")).toBe(sent.status === 429 ? "1" : null);
    }
    expect(statuses.slice(0, 50).every((status) => status === 303)).toBe(true);
    expect(statuses[50]).toBe(429);
  });

  test("hostile text is text", async () => {
    const { visitor } = await start();
    const shown = await visitor.submit("/test/verify", { email: '"<img src=x onerror=alert(1)>"@any.example' });
    expect(shown.html).not.toContain("<img src=x");
    expect((await visitor.get("/test/verify")).html).not.toContain("<img src=x");
    expect((await visitor.get('/test/verify?q="><script>alert(1)</script>')).html).not.toContain("<script>alert");
  });
});

describe("one verification", () => {
  test("of another account, of the other mode or unknown is not found", async () => {
    const { app, visitor } = await start();
    const sent = await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    const path = sent.location ?? "";
    expect((await visitor.get(path)).status).toBe(200);
    expect((await visitor.get(path.replace("/test", ""))).status).toBe(404);
    expect((await visitor.get(`/test/verify/${newId()}`)).status).toBe(404);
    expect((await visitor.get("/test/verify/none")).status).toBe(404);
    const stranger = await signIn(app, { account: "stranger" });
    expect((await stranger.get(path)).status).toBe(404);
    expect((await stranger.get(`${path}/json`)).status).toBe(404);
    expect((await stranger.post(`${path}/delete`)).status).toBe(404);
    expect((await stranger.get("/test/verify.csv")).html.split("\n")).toHaveLength(2);
  });

  test("as JSON has the result and the evidence", async () => {
    const { visitor } = await start();
    const sent = await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    const { html } = await visitor.get(`${sent.location}/json`);
    expect(JSON.parse(html)).toMatchObject({ status: "completed", result: { sub_status: "mailbox_exists" } });
  });

  test("of what is no address says why, in one sentence", async () => {
    const { visitor } = await start();
    const shown = await visitor.submit("/test/verify", { email: "ada lovelace@any.example" });
    expect(shown.text).toMatch(/This is not an email address\. The [^.]+\.(?!\.)/);
  });

  test("is deleted with its evidence", async () => {
    const { visitor } = await start();
    const sent = await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    const after = await visitor.submit(`${sent.location}/delete`);
    expect(after.text).toContain("The verification and its evidence are deleted.");
    expect((await visitor.get(sent.location ?? "")).status).toBe(404);
  });

  test("is deleted or verified again by the menu of its row; all menus of a page share one form", async () => {
    const { visitor } = await start();
    for (const email of ["mailbox_exists@any.example", "catch_all@any.example"])
      await visitor.submit("/test/verify", { email });
    const { html } = await visitor.get("/test/verify");
    expect(html.match(/<form method="post" id="row-form">/g)).toHaveLength(1);
    const buttons = [...html.matchAll(/<button form="row-form" formaction="([^"]+)" name="(\w+)" value="([^"]*)"/g)];
    const sent = buttons.map(([, path = "", name = "", value = ""]) => ({ path, fields: { [name]: value } }));
    expect(sent.map(({ path }) => path.replace(/[\w-]{36}/, "ID"))).toEqual([
      "/test/verify",
      "/test/verify/ID/delete",
      "/test/verify",
      "/test/verify/ID/delete",
    ]);
    expect(sent[0]?.fields).toEqual({ email: "catch_all@any.example" });
    const { path = "", fields } = sent[1] ?? {};
    const { text } = await visitor.submit(path, fields);
    expect(text).toContain("mailbox_exists@any.example");
    expect(text).not.toContain("catch_all@any.example");
  });

  test("that waits says for what, until when, and refreshes itself", async () => {
    const { visitor } = await start();
    const sent = await visitor.post("/test/verify", { email: "greylisted@any.example" });
    const shown = await visitor.get(sent.location ?? "");
    expect(shown.status).toBe(200);
    expect(shown.text).toMatch(/Waiting|Running|Risky/);
    expect(shown.text).not.toContain("kept asking");
  });
});

describe("the history", () => {
  test("is filtered by its URL, and exported with the same filters", async () => {
    const { visitor } = await start();
    for (const email of ["mailbox_exists@a.example", "mailbox_not_found@b.example", "role_account@c.example"])
      await visitor.post("/test/verify", { email });
    const undeliverable = await visitor.get("/test/verify?verdict=undeliverable");
    expect(undeliverable.text).toContain("mailbox_not_found@b.example");
    expect(undeliverable.text).not.toContain("mailbox_exists@a.example");
    expect((await visitor.get("/test/verify?q=C.EXA")).text).toContain("role_account@c.example");
    expect((await visitor.get("/test/verify?q=nothing")).text).toContain("Nothing matches");
    expect((await visitor.get("/test/verify?verdict=nonsense")).text).toContain("mailbox_exists@a.example");
    const csv = await visitor.get("/test/verify.csv?verdict=undeliverable");
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(csv.html.trim().split("\n")).toHaveLength(2);
    expect(undeliverable.html).toContain('href="/test/verify.csv?verdict=undeliverable"');
  });
});
