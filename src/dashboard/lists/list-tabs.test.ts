import { describe, expect, test } from "bun:test";
import { createApps, type TestApp } from "../../testing/app.ts";
import { postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { signIn, type Visitor } from "../../testing/dashboard.ts";
import { evidenceWith, findingWith } from "../../testing/evidence.ts";
import { sheetRow, workbookOfSheets } from "../../testing/workbook.ts";
import { packEvidence } from "../../verify/store.ts";

const start = createApps();
const RELAY = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:25", NOTIFY_FROM: "postwarden@example.com" };

/** A list that was verified with a test key of the visitor's account. Returns the path of its page. */
const verified = async (app: TestApp, name: string, emails: readonly string[]): Promise<string> => {
  const key = app.newKey();
  const { id } = await postList(app, { key, body: { name, emails } });
  await untilJobEnded(app, key, id);
  return `/test/lists/${id}`;
};

const upload = async (visitor: Visitor, text: string | Uint8Array<ArrayBuffer>, fileName: string, prefix = "/test") => {
  const form = new FormData();
  form.append("file", new File([text], fileName));
  return (await visitor.upload(`${prefix}/lists/upload`, form)).location ?? "";
};

const EMAILS = [
  ...["Ada <mailbox_exists@a.example>", "MAILBOX_EXISTS@a.example", "mailbox_exists@b.example"],
  ...["mailbox_not_found@a.example", "catch_all@a.example", "", "no address"],
];

describe("the tabs of a list", () => {
  test("are in the URL, and each shows its own", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await verified(app, "spring", EMAILS);
    const titles = {
      "": "Addresses",
      "?tab=rows": "Addresses",
      "?tab=hosts": "Mail hosts that refuse or delay us",
      "?tab=compare": "Compare with an earlier list",
      "?tab=about": "About this list",
      "?tab=x": "Addresses",
    };
    for (const [query, title] of Object.entries(titles)) {
      const { html, status } = await visitor.get(path + query);
      expect([status, Object.values(titles).find((one) => html.includes(`<h2>${one}</h2>`))]).toEqual([200, title]);
      expect(html.match(/aria-current="page">(Rows|Mail hosts|Compare|About)</g)).toHaveLength(1);
    }
  });

  test("show which mail hosts refused or delayed addresses, what they said, and the rows", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await verified(app, "spring", [
      "greylisted@slow.example",
      "a@fast.example",
      "smtp_blocked@bad.example",
    ]);
    expect((await visitor.get(`${path}?tab=hosts`)).text).toContain("Greylisting");
    const reply = 'blocked <b class="x"> using list.example';
    const evidence = evidenceWith({ findings: [findingWith({ reading: "blocked", host: "mx.bad.example", reply })] });
    const [job] = app.db.sqlite.query<{ number: number }, []>("SELECT number FROM bulk_jobs").all();
    app.db.sqlite.run("UPDATE bulk_troubles SET host = 'mx.bad.example', reading = 'blocked' WHERE position = 2");
    app.db.sqlite.run("INSERT INTO bulk_evidence (job, position, body) VALUES (?, 2, ?)", [
      job?.number ?? 0,
      packEvidence(evidence),
    ]);
    const { text, html } = await visitor.get(`${path}?tab=hosts`);
    expect(text).toContain("mx.bad.example bad.example Blocks us It refuses this service, whatever the address. 1");
    expect(html).not.toContain('<b class="x">');
    const [, host = ""] = /\?host=(\d+)"[^>]*>1<span class="unseen"> addresses at mx\.bad/.exec(html) ?? [];
    const rows = await visitor.get(`${path}?host=${host}`);
    expect([...rows.html.matchAll(/\/rows\/(\d+)"/g)].map(([, row]) => row)).toEqual(["2"]);
    expect(rows.text).toContain("CSV of these 1 row");
    const file = await visitor.get(`${path}/results.csv?host=${host}&columns=address`);
    expect(file.html).toBe("email\r\nsmtp_blocked@bad.example\r\n");
    expect((await visitor.get(`${path}?host=99`)).text).toContain("No row matches");
  });

  test("compare with the list of the same name before, or with another one", async () => {
    const app = start();
    const visitor = await signIn(app);
    const first = await verified(app, "spring", ["mailbox_exists@a.example", "gone@a.example"]);
    expect((await visitor.get(`${first}?tab=compare`)).text).toContain("No other list to compare with");
    const other = await verified(app, "other", ["mailbox_exists@a.example"]);
    expect((await visitor.get(`${other}?tab=compare`)).text).toContain("Choose a list");
    const later = await verified(app, "spring", ["mailbox_exists@a.example", "new@a.example", "newer@a.example"]);
    const { text, html } = await visitor.get(`${later}?tab=compare`);
    expect(text).toContain("New 2 Only in this list.");
    expect(text).toContain("Gone 1 Only in the earlier list.");
    expect(text).toContain("1 address has the same verdict in both lists.");
    const [, file = ""] = /href="([^"]*comparison\.csv[^"]*change=gone)"/.exec(html) ?? [];
    expect((await visitor.get(file.replaceAll("&amp;", "&"))).html).toContain("gone@a.example,gone,,,deliverable");
    const chosen = await visitor.get(`${later}?tab=compare&with=${other.split("/").at(-1)}`);
    expect(chosen.text).toContain("New 2");
    expect(chosen.text).toContain("Gone 0");
    const stranger = await signIn(app, { account: "other" });
    expect((await stranger.get(`${later}?tab=compare`)).status).toBe(404);
    expect((await stranger.get(file.replaceAll("&amp;", "&"))).status).toBe(404);
    expect((await visitor.get(`${later}?tab=compare&with=${crypto.randomUUID()}`)).status).toBe(200);
  });

  test("begin with what has changed since the list of the same name", async () => {
    const app = start();
    const visitor = await signIn(app);
    await verified(app, "spring", ["mailbox_exists@a.example", "mailbox_not_found@a.example"]);
    const later = await verified(app, "spring", [
      "mailbox_exists@a.example",
      "a@a.example",
      "mailbox_not_found@a.example",
    ]);
    expect((await visitor.get(later)).text).toContain("+16.7 points since");
    const last = await verified(app, "spring", ["mailbox_exists@a.example", "mailbox_not_found@a.example"]);
    expect((await visitor.get(last)).text).toContain("−16.7 points since");
  });
});

test("a list that ended early has no share", async () => {
  const app = start();
  const visitor = await signIn(app);
  const path = await verified(app, "spring", EMAILS);
  app.db.sqlite.run("UPDATE bulk_jobs SET status = 'cancelled', rows_finished = 3");
  const { text } = await visitor.get(path);
  expect(text).toContain("3 of 7 rows finished");
  expect(text).not.toContain("% deliverable");
});

describe("the download panel", () => {
  test.each([
    ["", 2, null, "deliverable, once, at first"],
    ["&columns=all&show=deliverable", 3, null, "with repeats"],
    ["&columns=address&show=", 7, ["email"], "every row"],
    ["&columns=address&show=&distinct=true", 5, ["email"], "every address once, no empty row"],
    ["&columns=uploaded&show=undeliverable&distinct=true", 2, ["email"], "a group"],
    ["&columns=all&show=&preset=mailchimp&distinct=true", 5, ["Email Address"], "a preset"],
    ["&columns=address&show=&q=EXISTS", 3, ["email"], "what a text narrows, with repeats"],
    ["&columns=address&show=&q=exists&distinct=true", 2, ["email"], "what a text narrows, once"],
    ["&columns=address&reason=catch_all", 1, ["email"], "a reason"],
    ["&columns=address&show=unfinished", 0, ["email"], "nothing"],
  ])("%s counts %d rows and names their columns: %p, which the file has (%s)", async (query, rows, names) => {
    const app = start();
    const visitor = await signIn(app);
    const path = await verified(app, "spring", EMAILS);
    const { text, html } = await visitor.get(`${path}?confirm=download${query}`);
    expect(text).toContain(`${rows} ${rows === 1 ? "row" : "rows"} with `);
    // Sends the form as a browser without scripts does, by its button "Download".
    const form = html.slice(html.indexOf('id="download"'), html.indexOf("</form>", html.indexOf('id="download"')));
    const fields = new URLSearchParams();
    for (const [, tag = ""] of form.matchAll(/<input([^>]*)>/g)) {
      const isSent = !tag.includes('type="checkbox"') || / checked/.test(tag);
      if (isSent) fields.append(/name="([^"]*)"/.exec(tag)?.[1] ?? "", /value="([^"]*)"/.exec(tag)?.[1] ?? "");
    }
    for (const [, name = "", options = ""] of form.matchAll(/<select[^>]*name="([^"]*)"[^>]*>(.*?)<\/select>/gs))
      fields.append(name, /value="([^"]*)" selected/.exec(options)?.[1] ?? "");
    const target = /formaction="([^"]*)"/.exec(form)?.[1] ?? "";
    const lines = (await visitor.get(`${target}?${fields}`)).html.trimEnd().split("\r\n");
    expect(lines).toHaveLength(rows + 1);
    if (names !== null) expect(lines[0]?.split(",")).toEqual(names);
  });

  test("says that presets leave result columns out, and cleans addresses", async () => {
    const app = start();
    const visitor = await signIn(app);
    const location = await upload(
      visitor,
      "Vorname,E-Mail,Ort\nŁukasz,Łukasz Żak <mailbox_exists@a.example>,Łódź\n",
      "k.csv",
    );
    const draft = location.split("draft=")[1] ?? "";
    const path = (await visitor.post("/test/lists/new", { draft, header: "auto" })).location ?? "";
    for (let turn = 0; turn < 20; turn++) await app.advance(200);
    const page = await visitor.get(`${path}?confirm=download&columns=all&show=&preset=mailchimp`);
    expect(page.text).toContain(
      "1 row with 3 columns: Email Address, First Name, Ort. Verdicts and the other result columns are left out.",
    );
    const all = await visitor.get(`${path}?confirm=download&columns=all&show=`);
    expect(all.text).toContain("and 9 others. Your columns come first, then those of the results.");
    const read = async (query: string) => (await visitor.get(`${path}/results.csv?${query}`)).html;
    expect(await read("columns=uploaded&clean=true")).toContain("Łukasz,mailbox_exists@a.example,Łódź");
    expect(await read("columns=uploaded")).toContain("Łukasz,Łukasz Żak <mailbox_exists@a.example>,Łódź");
    expect(await read("preset=mailchimp")).toBe(
      "Email Address,First Name,Ort\r\nmailbox_exists@a.example,Łukasz,Łódź\r\n",
    );
  });
});

describe("an upload", () => {
  test("of a workbook names its sheet, and is read at another one", async () => {
    const visitor = await signIn(start());
    const book = new Uint8Array(
      workbookOfSheets({
        "Read me": sheetRow("Hello"),
        Kunden: sheetRow("mailbox_exists@k.example"),
        Alt: sheetRow("a@a.example") + sheetRow("b@a.example"),
      }),
    );
    const location = await upload(visitor, book, "kunden.xlsx");
    const page = await visitor.get(location);
    expect(page.text).toContain("File Excel workbook, sheet “Kunden”");
    expect(page.text).not.toContain("separated by");
    expect(page.html).toContain('<option value="Kunden" selected');
    const other = await visitor.get(`${location}&sheet=Alt`);
    expect(other.text).toContain("Rows 2");
    expect(other.html).toContain('<input type="hidden" name="sheet" value="Alt"');
    const wrong = await visitor.get(`${location}&sheet=Read+me`);
    expect(wrong.text).toContain("Choose the sheet or the column of addresses, or upload another file");
    expect(wrong.text).toContain("sheet “Read me”");
    expect(wrong.html).toContain('<option value="Read me" selected');
    const draft = location.split("draft=")[1] ?? "";
    const path = (await visitor.post("/test/lists/new", { draft, header: "auto", sheet: "Alt" })).location ?? "";
    expect((await visitor.get(`${path}?tab=about`)).text).toContain("Excel workbook, sheet “Alt”");
  });

  test("whose sheets have no addresses still offers its sheets", async () => {
    const visitor = await signIn(start());
    const book = new Uint8Array(workbookOfSheets({ Leer: "", Text: sheetRow("Hello") }));
    const page = await visitor.get(await upload(visitor, book, "leer.xlsx"));
    expect(page.text).toContain("This file cannot be verified as it is");
    expect(page.html).toContain('<option value="Text"');
  });

  test("stays when somebody switches between live and test", async () => {
    const visitor = await signIn(start());
    const location = await upload(visitor, "mailbox_exists@a.example\n", "a.csv", "");
    const { text } = await visitor.get(location);
    expect(text).toContain("1 address to verify, 1 credit");
    expect(text).toContain("100 credits available, 0 used this month. One credit pays for one address");
    expect((await visitor.get(`/test${location}`)).text).toContain("1 address to verify, free of charge");
    expect((await visitor.get("/test/lists")).text).toContain("Uploaded, not started a.csv");
  });

  test("in test mode says that names decide, and which names there are", async () => {
    const visitor = await signIn(start());
    for (const page of ["/test/lists", await upload(visitor, "a@a.example\n", "a.csv")]) {
      const { text, html } = await visitor.get(page);
      expect(text).toContain("the name before the @ decides the result");
      expect(text).toContain("Every other name is deliverable");
      expect(html).toContain('href="/docs/verify-an-address#with-a-test-key"');
    }
  });

  test("is started with a mail to its user at the end, unless that is not wanted", async () => {
    const app = start({ settings: RELAY });
    const visitor = await signIn(app);
    const mailOf = async (fields: Record<string, string>) => {
      const location = await upload(visitor, "a@example.com\n", "a.csv", "");
      const page = await visitor.get(location);
      expect(page.html).toMatch(/<input[^>]*name="mail"[^>]*checked/);
      const draft = location.split("draft=")[1] ?? "";
      const path = (await visitor.post("/lists/new", { draft, header: "auto", ...fields })).location ?? "";
      const id = path.split("/").at(-1) ?? "";
      const row = app.db.sqlite
        .query<{ to: string | null }, [string]>('SELECT notify_email AS "to" FROM bulk_jobs WHERE id = ?')
        .get(id);
      return row?.to;
    };
    expect(await mailOf({ mail: "on" })).toBe("main@example.com");
    expect(await mailOf({})).toBeNull();
  });

  test.each([
    ["where no mail is sent", {}, ""],
    ["to another domain than the allowed ones", { ...RELAY, NOTIFY_DOMAINS: "shop.example" }, ""],
    ["in test mode", RELAY, "/test"],
  ])("offers no mail %s", async (_, settings, prefix) => {
    const app = start({ settings });
    const visitor = await signIn(app);
    const location = await upload(visitor, "a@example.com\n", "a.csv", prefix);
    expect((await visitor.get(location)).html).not.toContain('name="mail"');
    const draft = location.split("draft=")[1] ?? "";
    await visitor.post(`${prefix}/lists/new`, { draft, header: "auto", mail: "on" });
    expect(app.db.sqlite.query("SELECT notify_email FROM bulk_jobs").all()).toEqual([{ notify_email: null }]);
  });
});
