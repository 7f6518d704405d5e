import { describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DRAFT_MS_MAX } from "../../bulk/arrival/drafts.ts";
import { createApps, ENDLESS, type TestApp } from "../../testing/app.ts";
import { signIn, type TestPage, type Visitor } from "../../testing/dashboard.ts";
import { workbookOf } from "../../testing/workbook.ts";

const start = createApps();
const HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>';
const UPLOADS = join(tmpdir(), `postwarden-app-${process.pid}`, "uploads");

const upload = (
  visitor: Visitor,
  text: string | Uint8Array<ArrayBuffer>,
  fileName = "customers.csv",
  prefix = "/test",
) => {
  const form = new FormData();
  form.append("file", new File([text], fileName));
  return visitor.upload(`${prefix}/lists/upload`, form);
};

/** Uploads a file, and loads its preview. */
const preview = async (visitor: Visitor, text: string | Uint8Array<ArrayBuffer>, fileName?: string) => {
  const sent = await upload(visitor, text, fileName);
  expect(sent.status).toBe(303);
  const location = sent.location ?? "";
  return { page: await visitor.get(location), location, draft: location.split("draft=")[1] ?? "" };
};

/** Uploads a list in test mode, starts it and returns the path of its page. */
const startList = async (visitor: Visitor, text: string, fields: Record<string, string> = {}, fileName?: string) => {
  const { draft } = await preview(visitor, text, fileName);
  const sent = await visitor.post("/test/lists/new", { draft, header: "auto", ...fields });
  expect(sent.status).toBe(303);
  return sent.location ?? "";
};

const finish = async (app: TestApp): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await app.advance(200);
};

const expectEscaped = ({ html }: TestPage): void => {
  expect(html).not.toContain("<script>alert");
  expect(html).not.toContain("<img src=x");
};

const MIXED = [
  "name,email",
  "Ada,mailbox_exists@a.example",
  "Bob,mailbox_not_found@b.example",
  "Cy,catch_all@c.example",
  "Di,smtp_timeout@gmial.com",
  "Ed,not an address",
  "Flo,",
].join("\n");

describe("the lists of an account", () => {
  test("begin with an empty page that teaches, and forms for a file and for pasted addresses", async () => {
    const visitor = await signIn(start());
    const { status, text, html } = await visitor.get("/lists");
    expect(status).toBe(200);
    expect(text).toContain("No list yet");
    expect(text).toContain("what it costs before anything starts");
    expect(html.match(/enctype="multipart\/form-data"/g)).toHaveLength(2);
    expect(html).toContain(`action="/lists/upload?_csrf=${visitor.csrf}"`);
    expect((await visitor.get("/test/lists")).text).toContain("In test mode nothing is charged");
  });

  test("name each of the two fields for addresses by a label of its own", async () => {
    const visitor = await signIn(start());
    const { html } = await visitor.get("/lists/new");
    const ids = [...html.matchAll(/<(?:input|textarea)[^<>]*\sid="([^"]+)"/g)].map(([, id]) => id);
    const labels = [...html.matchAll(/<label for="([^"]+)"/g)].map(([, id]) => id);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(2);
    expect(labels.toSorted()).toEqual(ids.toSorted());
  });

  test("are shown newest first, with who started them, and found by name and status", async () => {
    const app = start();
    const visitor = await signIn(app);
    await startList(visitor, MIXED, { name: "Spring" });
    await startList(visitor, MIXED, { name: "Autumn" });
    const key = app.newKey({ name: "crm" });
    await app.request("POST", "/v1/bulk-verifications", { key, body: { emails: ["a@a.example"], name: "By key" } });
    await finish(app);
    const { text } = await visitor.get("/test/lists");
    expect(text.indexOf("By key")).toBeLessThan(text.indexOf("Autumn"));
    expect(text.indexOf("Autumn")).toBeLessThan(text.indexOf("Spring"));
    expect(text).toContain("by main@example.com");
    expect(text).toContain("by crm");
    expect(text).toContain("Completed");
    const found = await visitor.get("/test/lists?q=SPR");
    expect([found.text.includes("Spring"), found.text.includes("Autumn")]).toEqual([true, false]);
    expect((await visitor.get("/test/lists?status=failed")).text).toContain("No list matches");
    const link = /href="([^"]+all\.csv[^"]*)"/.exec(found.html)?.[1] ?? "";
    const csv = (await visitor.get(link)).html.split("\r\n");
    expect(csv).toHaveLength(3);
    expect(csv[0]).toStartWith("id,name,label,status,started_by");
    expect(csv[1]).toContain(",Spring,,completed,main@example.com,");
    expect((await visitor.get("/test/lists/all.csv")).html.split("\r\n")).toHaveLength(5);
    expect((await visitor.get("/lists/all.csv")).html.split("\r\n")).toHaveLength(2);
    expect((await visitor.get("/test/lists?status=nonsense&cursor=x")).text).toContain("Spring");
    expect((await visitor.get("/lists")).text).toContain("No list yet");
  });

  test("come in pages", async () => {
    const app = start();
    const visitor = await signIn(app);
    const key = app.newKey();
    for (let count = 0; count < 51; count++)
      await app.request("POST", "/v1/bulk-verifications", {
        key,
        body: { emails: ["a@a.example"], name: `n${count}.` },
      });
    const first = await visitor.get("/test/lists");
    expect(first.text).not.toContain("n0.");
    const next = /rel="next" href="([^"]+)"/.exec(first.html)?.[1] ?? "";
    expect((await visitor.get(next)).text).toContain("n0.");
  });
});

describe("an uploaded file", () => {
  test("is previewed: format, column, rows, cost", async () => {
    const app = start();
    const visitor = await signIn(app);
    const sent = await upload(
      visitor,
      "\ufeffName;E-Mail\nAda;a@a.example\nBob;a@a.example\nCy;x\nDi;\n",
      "März.csv",
      "",
    );
    const { text, html } = await visitor.get(sent.location ?? "");
    for (const part of [
      "2 addresses to verify, 2 credits",
      "CSV, separated by semicolons",
      "UTF-8",
      "2 “E-Mail” It is the only column with addresses.",
      "The first row names the columns",
      "Rows 4",
      "Distinct addresses 2",
      "Repeated addresses (checked once) 1",
      "Rows without an address (free) 1",
      "Not an address (invalid syntax) 1",
      "100 credits available",
    ])
      expect(text).toContain(part);
    expect(html).toContain("März.csv");
    expect((await visitor.get("/lists")).text).toContain("Uploaded, not started");
  });

  test("is read in another way on request, and started in that way", async () => {
    const app = start();
    const visitor = await signIn(app);
    const { location, draft } = await preview(visitor, "work,home\na@a.example,b@b.example\n,c@c.example\n");
    expect((await visitor.get(`${location}&column=0&header=true`)).text).toContain("1 “work”");
    const { text } = await visitor.get(`${location}&column=0&header=false`);
    expect(text).toContain("Rows 3");
    expect((await visitor.get(`${location}&column=9`)).text).toContain("There is no column");
    const order = { draft, column: "0", header: "false", name: "Mine" };
    const path = (await visitor.post("/test/lists/new", order)).location ?? "";
    for (const part of ["Mine", "You can leave this page."]) expect((await visitor.get(path)).text).toContain(part);
    expect((await visitor.get(`${path}?tab=about`)).text).toContain("Distinct addresses 2");
    await finish(app);
    expect((await visitor.get(path)).text).not.toContain("You can leave this page.");
  });

  test("keeps what was typed when its form is refused", async () => {
    const app = start();
    const visitor = await signIn(app);
    const { draft } = await preview(visitor, MIXED);
    const fields = { draft, header: "auto", name: "Mine", webhook_url: "ftp://example.com" };
    const refused = await visitor.post("/test/lists/new", fields);
    expect(refused.status).toBe(400);
    expect(refused.html).toContain('value="Mine"');
    expect(refused.html).toContain('value="ftp://example.com"');
    expect(refused.text).toContain("https");
    expect(refused.text).toContain("Start verification");
    expect((await visitor.post("/test/lists/new", { ...fields, webhook_url: " " })).status).toBe(303);
  });

  test("that costs more than is available says so, and is kept", async () => {
    const app = start();
    const visitor = await signIn(app);
    app.leaveCredits(1);
    const sent = await upload(visitor, "a@a.example\nb@b.example\n", "list.csv", "");
    const path = sent.location ?? "";
    expect((await visitor.get(path)).text).toContain("Not enough credits: 2 needed, 1 available");
    const draft = path.split("draft=")[1] ?? "";
    const refused = await visitor.post("/lists/new", { draft, header: "auto" });
    expect(refused.status).toBe(402);
    expect(refused.text).toContain("2 needed, 1 available");
  });

  test("is started once, however often its form is sent", async () => {
    const app = start();
    const visitor = await signIn(app);
    const { draft, location } = await preview(visitor, MIXED);
    const send = () => visitor.post("/test/lists/new", { draft, header: "auto" });
    const [one, two] = await Promise.all([send(), send()]);
    expect(one.location).toBe(two.location ?? "");
    expect((await visitor.get(location)).location).toBe(one.location ?? "");
  });

  test("can be discarded, and expires", async () => {
    const app = start();
    const visitor = await signIn(app);
    const first = await preview(visitor, MIXED);
    expect((await visitor.submit("/test/lists/new/discard", { draft: first.draft })).text).toContain("deleted");
    expect(await readdir(UPLOADS)).toEqual([]);
    const gone = await visitor.get(first.location);
    expect([gone.status, gone.text.includes("This upload is no longer here")]).toEqual([404, true]);
    expect((await visitor.post("/test/lists/new", { draft: first.draft, header: "auto" })).status).toBe(404);
    const second = await preview(visitor, MIXED);
    await app.advance(DRAFT_MS_MAX);
    expect((await visitor.get(second.location)).status).toBe(404);
  });

  test("of pasted recipients has one address a line", async () => {
    const visitor = await signIn(start());
    const form =
      '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nAda <a@a.example>, b@b.example\r\n--b--\r\n';
    const sent = await visitor.upload("/test/lists/upload", form);
    expect(sent.status).toBe(415);
    const pasted = new FormData();
    pasted.append("file", "Ada <a@a.example>, b@b.example");
    const { location } = await visitor.upload("/test/lists/upload", pasted);
    const { text } = await visitor.get(location ?? "");
    expect(text).toContain("Pasted addresses");
    expect(text).toContain("2 addresses to verify");
  });

  test.each<[string, string | Uint8Array<ArrayBuffer>, number, string]>([
    ["without bytes", "", 400, "The list is empty"],
    ["of nothing but blanks", " \n\n", 200, "has no rows"],
    ["without addresses", "name;phone\nAda;1\n", 200, "No column with addresses was found in the first 2 rows"],
    ["of binary data", Uint8Array.from({ length: 99 }, (_, n) => n % 5), 200, "binary data"],
    ["of another kind", "%PDF-1.7 x", 200, "This is a PDF"],
    ["with an unclosed quote", 'email\n"a@a.example\n', 200, "cannot be read"],
  ])("%s is refused with the reason", async (_, body, status, reason) => {
    const visitor = await signIn(start());
    const sent = await upload(visitor, body);
    const shown = sent.location === null ? sent : await visitor.get(sent.location);
    expect([shown.status, shown.text]).toEqual([status, expect.stringContaining(reason)]);
  });

  test("without addresses shows what it holds instead", async () => {
    const visitor = await signIn(start());
    const { page, location } = await preview(visitor, "name;phone\nAda;12345\n");
    for (const part of ["What the file begins with", "Ada", "12345", "separated by semicolons", "1: name"])
      expect(page.text).toContain(part);
    expect((await visitor.get(`${location}&column=0`)).text).toContain("Not an address (invalid syntax) 1");
  });

  test("in UTF-16 and as an old export is read as what it is", async () => {
    const visitor = await signIn(start());
    const utf16 = new Uint8Array(Buffer.from("\ufeffemail\tNäme\r\na@a.example\tJürgen\r\n", "utf16le"));
    const { page } = await preview(visitor, utf16);
    for (const part of ["UTF-16, little endian", "separated by tabs", "Jürgen"]) expect(page.text).toContain(part);
    const latin = new Uint8Array(Buffer.from("email;Name\na@a.example;J\xfcrgen\n", "latin1"));
    expect((await preview(visitor, latin)).page.text).toContain("Windows-1252");
  });

  test("that is not Unicode says that its encoding is assumed, and is read in the one that is chosen", async () => {
    const app = start();
    const visitor = await signIn(app);
    // "name,email\nŁukasz,…" in Windows-1250.
    const polish = Buffer.from("name,email\n\xa3ukasz,mailbox_exists@a.example\n", "latin1");
    const { page, location, draft } = await preview(visitor, polish);
    expect(page.text).toContain("Western European (Windows-1252) (assumed)");
    expect(page.text).toContain("otherwise they have your columns unchanged, in the encoding of the file");
    expect(page.text).toContain("£ukasz");
    const chosen = await visitor.get(`${location}&encoding=windows-1250`);
    expect(chosen.text).toContain("Central European (Windows-1250)");
    expect(chosen.text).not.toContain("(assumed)");
    expect(chosen.text).toContain("Łukasz");
    expect(chosen.html).toContain('<input type="hidden" name="encoding" value="windows-1250"');
    const wrong = await visitor.get(`${location}&encoding=utf-8`);
    expect(wrong.text).toContain("The list is not valid utf-8.");
    expect(wrong.html).toMatch(/<select[^>]* name="encoding"/);
    const started = await visitor.post("/test/lists/new", { draft, header: "auto", encoding: "windows-1250" });
    await finish(app);
    const list = await visitor.get(`${started.location}?tab=about`);
    expect(list.text).toContain("Central European (Windows-1250)");
    expect((await visitor.get(`${started.location}/results.csv`)).html).toContain("Łukasz,mailbox_exists@a.example,");
  });

  test("that is a PDF is refused with a way on", async () => {
    const { page } = await preview(await signIn(start()), "%PDF-1.7\n", "list.pdf");
    expect(page.text).toContain("This is a PDF. Save the list as CSV (UTF-8). Upload another file");
  });

  test("as an Excel workbook is previewed in either layout and started; one without addresses shows its cells", async () => {
    const app = start();
    const visitor = await signIn(app);
    const book = new Uint8Array(
      workbookOf([
        ["Name", "Mail"],
        ["Ada", "a@a.example"],
        ["Bob", "b@b.example"],
      ]),
    );
    const { page, location, draft } = await preview(visitor, book, "book.xlsx");
    for (const part of ["Excel workbook, sheet “One”", "2 “Mail”", "2 addresses"]) expect(page.text).toContain(part);
    expect((await visitor.get(`${location}&header=false`)).text).toContain("Rows 3");
    const path = (await visitor.post("/test/lists/new", { draft, header: "auto" })).location ?? "";
    expect((await visitor.get(`${path}?tab=about`)).text).toContain("Excel workbook, sheet “One”");
    const other = new Uint8Array(workbookOf([["Name"], ["Ada"]]));
    expect((await preview(visitor, other, "other.xlsx")).page.text).toContain("What the file begins with");
    const broken = await preview(visitor, book.slice(0, 300), "broken.xlsx");
    expect(broken.page.text).toContain("damaged");
    expect(broken.page.text).not.toContain("What the file begins with");
  });

  test("with hostile texts is shown as text", async () => {
    const visitor = await signIn(start());
    const csv = `email,"${HOSTILE.replaceAll('"', '""')}"\na@a.example,"${HOSTILE.replaceAll('"', '""')}"\n`;
    const { page } = await preview(visitor, csv, `${HOSTILE.replaceAll('"', "'")}.csv`);
    expectEscaped(page);
    expect(page.html).toContain("&lt;script>alert(1)");
    const other = await preview(visitor, `x,"${HOSTILE.replaceAll('"', '""')}"\n1,2\n`);
    expectEscaped(other.page);
  });

  test("with huge cells and many columns is shown in part", async () => {
    const visitor = await signIn(start());
    const wide = Array.from({ length: 400 }, (_, n) => `c${n}`).join(",");
    const { page } = await preview(visitor, `email,${wide}\na@a.example,${"x".repeat(60_000)}\n`);
    expect(page.status).toBe(200);
    expect(page.text).toContain("first 8 of 50 columns");
    expect(page.html.length).toBeLessThan(60_000);
  });

  test("beyond the limit is refused on the page, after all of it was read", async () => {
    const visitor = await signIn(start());
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent++ === 130) return controller.close();
        controller.enqueue(new Uint8Array(1024 * 1024).fill(97));
      },
    });
    const headers = { "content-type": "multipart/form-data; boundary=b", "content-length": String(130 * 1024 * 1024) };
    const { status, text } = await visitor.upload("/test/lists/upload", body, headers);
    expect(status).toBe(413);
    expect(text).toContain("The list may have at most 104,857,600 bytes");
    expect(sent).toBe(131);
  });
});

describe("one list", () => {
  test("shows its progress, its results, why, and its rows", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, MIXED);
    const running = await visitor.get(path);
    expect(running.text).toContain("Download results so far");
    expect(running.html).toContain("data-live");
    await finish(app);
    const { text, html } = await visitor.get(path);
    for (const part of [
      "20 % deliverable of 5 finished rows with an address",
      "5 of 5 addresses",
      "Deliverable 1 20 %",
      "Catch-all 1 20 %",
      "Other risky 0 0 %",
      "Undeliverable 2 40 %",
      "Unsettled 1 20 %",
      "Server timed out",
      "No such mailbox",
      "meant gmail.com?",
      "no address",
    ])
      expect(text).toContain(part);
    expect(html).not.toContain("data-live");
    expect(html).toContain(">Catch-all (1)</option>");
    const about = (await visitor.get(`${path}?tab=about`)).html;
    expect(about).toContain(`href="${path}?reason=catch_all"`);
    expect(html).toContain(`href="${path}/rows/2"`);
  });

  test("says what waits to be tried again, and when", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, "pending@a.example\npending@b.example\nmailbox_exists@c.example\n");
    await app.advance(1_000);
    const waiting = await visitor.get(path);
    expect(waiting.text).toContain("2 addresses wait to be tried again");
    expect(waiting.text).toContain("Waiting again in a moment");
    await app.advance(9_000);
    expect((await visitor.get(path)).text).not.toContain("tried again");
  });

  test("is paused by an outage, which is said there, in the list of lists and on the home page", async () => {
    const app = start(ENDLESS);
    const visitor = await signIn(app);
    const sent = await upload(visitor, "a@example.com\n", "list.csv", "");
    const draft = sent.location?.split("draft=")[1] ?? "";
    const path = (await visitor.post("/lists/new", { draft, header: "auto" })).location ?? "";
    expect((await visitor.get("/")).text).not.toContain("paused");
    Object.assign(app.service.engine.smtp.outages, { current: () => "smtp_unreachable" });
    expect((await visitor.get(path)).text).toContain("Paused No mail server accepts a connection");
    expect((await visitor.get("/lists")).text).toContain("Paused");
    const home = await visitor.get("/");
    expect(home.text).toContain("list.csv is paused");
    expect(home.html).toContain(`href="${path}"`);
  });

  test("has rows that are filtered by result, reason and text, from either end", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, MIXED);
    await finish(app);
    const rowsAt = async (query: string) => {
      const { html } = await visitor.get(`${path}?${query}`);
      return [...html.matchAll(/\/rows\/(\d+)"/g)].map(([, row]) => Number(row));
    };
    expect(await rowsAt("")).toEqual([0, 1, 2, 3, 4, 5]);
    expect(await rowsAt("order=last")).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await rowsAt("show=deliverable")).toEqual([0]);
    expect(await rowsAt("show=unsettled")).toEqual([3]);
    expect(await rowsAt("reason=catch_all")).toEqual([2]);
    expect(await rowsAt("q=GMIAL")).toEqual([3]);
    expect(await rowsAt("cursor=3")).toEqual([4, 5]);
    expect(await rowsAt("show=x&reason=y&order=z&cursor=-1")).toEqual([0, 1, 2, 3, 4, 5]);
    expect((await visitor.get(`${path}?q=nobody`)).text).toContain("No row matches");
  });

  test("shows each row with its result", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, MIXED);
    expect((await visitor.get(`${path}/rows/0`)).text).toContain("not verified yet");
    await finish(app);
    const row = await visitor.get(`${path}/rows/1`);
    for (const part of [
      "The server says that this mailbox does not exist.",
      "How we know",
      "Quality",
      "Signals",
      "Row 2",
    ])
      expect(row.text).toContain(part);
    expect((await visitor.get(`${path}/rows/3`)).text).toContain("smtp_timeout@gmail.com");
    expect((await visitor.get(`${path}/rows/5`)).text).toContain("Row without an address");
    for (const row of ["6", "x", "-1", "99999999999"])
      expect((await visitor.get(`${path}/rows/${row}`)).status).toBe(404);
  });

  test("shows the address of a cell, its domain apart, and the cell on hover", async () => {
    const app = start();
    const visitor = await signIn(app);
    const cells = ["Łukasz Żak <anna@lindenhof.example>", `${"l".repeat(60)}@lindenhof.example`, "no address"];
    const { html } = await visitor.get(await startList(visitor, `email\n${cells.join("\n")}\n`));
    expect(html).toContain(`title="Łukasz Żak &lt;anna@lindenhof.example>">anna@lindenhof.example</span>`);
    expect(html).toContain(`<span class="cut">${"l".repeat(60)}</span><span class="cut">@lindenhof.example</span>`);
    expect(html).toContain('title="no address">no address</span>');
  });

  test("is downloaded whole and in parts", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, MIXED);
    const part = async (query: string) => {
      const { html, headers } = await visitor.get(`${path}/results.csv${query}`);
      const names = html
        .split("\r\n")
        .slice(1, -1)
        .map((line) => line.split(",")[0]);
      return [names.join(" "), /filename="([^"]+)"/.exec(headers.get("content-disposition") ?? "")?.[1]];
    };
    expect(await part("?show=unfinished")).toEqual(["Ada Bob Cy Di Ed", "customers-unfinished.csv"]);
    await finish(app);
    expect(await part("")).toEqual(["Ada Bob Cy Di Ed Flo", "customers-results.csv"]);
    expect(await part("?show=deliverable")).toEqual(["Ada", "customers-deliverable.csv"]);
    expect(await part("?show=risky")).toEqual(["Cy Di", "customers-risky.csv"]);
    expect(await part("?show=undeliverable")).toEqual(["Bob Ed", "customers-undeliverable.csv"]);
    expect(await part("?reason=invalid_syntax")).toEqual(["Ed", "customers-invalid_syntax.csv"]);
    expect(await part("?show=no_address")).toEqual(["Flo", "customers-no_address.csv"]);
    const { text, html } = await visitor.get(`${path}?show=undeliverable`);
    expect(text).toContain("CSV of these 2 rows");
    expect(html).toContain('<option value="no_address">Without an address (1)</option>');
    expect(await part("?show=unsettled")).toEqual(["Di", "customers-unsettled.csv"]);
    expect(await part("?reason=catch_all")).toEqual(["Cy", "customers-catch_all.csv"]);
  });

  test("is downloaded as the panel and the table offer it", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, `${MIXED}\nFlo 2,Flo <MAILBOX_EXISTS@a.example>\n`);
    await finish(app);
    const page = await visitor.get(`${path}?show=deliverable&q=EXISTS&confirm=download`);
    expect(page.text).toContain("Only the rows that the table shows.");
    expect(page.html).toContain('<option value="deliverable" selected');
    expect(page.html).toContain('<input type="hidden" name="q" value="EXISTS"/>');
    const shown = "results.csv?show=deliverable&amp;q=EXISTS";
    expect(page.html).toContain(`href="${path}/${shown}"`);
    const read = async (query: string) =>
      (await visitor.get(`${path}/results.csv?${query}`)).html.trimEnd().split("\r\n");
    expect(await read("show=deliverable&q=EXISTS&columns=address&preset=")).toEqual([
      ...["email", "mailbox_exists@a.example", "Flo <MAILBOX_EXISTS@a.example>"],
    ]);
    expect(await read("show=deliverable&columns=uploaded&distinct=true&clean=true")).toEqual([
      ...["name,email", "Ada,mailbox_exists@a.example"],
    ]);
    const { html, headers } = await visitor.get(`${path}/results.csv?show=catch_all&preset=brevo&distinct=true`);
    expect(html).toBe("EMAIL,name\r\ncatch_all@c.example,Cy\r\n");
    expect(headers.get("content-disposition")).toContain("customers-catch_all-brevo.csv");
    expect(await read("show=other_risky")).toHaveLength(1);
  });

  test("is cancelled after a confirmation", async () => {
    const app = start(ENDLESS);
    const visitor = await signIn(app);
    const sent = await upload(visitor, "a@example.com\nb@example.com\n", "list.csv", "");
    const draft = sent.location?.split("draft=")[1] ?? "";
    const path = (await visitor.post("/lists/new", { draft, header: "auto" })).location ?? "";
    expect((await visitor.get(`${path}?confirm=delete`)).text).not.toContain("Delete this list?");
    const asked = await visitor.get(`${path}?confirm=cancel`);
    expect(asked.text).toContain("2 addresses will not be verified; 2 credits will be released");
    expect(app.credits().held).toBe(2);
    const done = await visitor.submit(`${path}/cancel`);
    expect(done.text).toContain("The list is cancelled");
    expect(done.text).toContain("Not verified");
    expect(done.text).not.toContain("Waiting");
    expect((await visitor.get(`${path}/rows/0`)).text).toContain("The list ended before this address was verified");
    expect(app.credits()).toEqual({ available: 100, held: 0 });
    const lists = (await visitor.get("/lists")).text;
    expect(lists).toContain("0 of 2 rows finished");
    expect(lists).not.toContain(" deliverable");
    expect((await visitor.submit(`${path}/cancel`)).text).toContain("Cancelled");
    expect((await visitor.submit(`${path}/retry`)).text).toContain("Only a completed job can be retried");
  });

  test("is deleted after a confirmation, and not while it runs", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, MIXED);
    expect((await visitor.post(`${path}/delete`)).status).toBe(409);
    await finish(app);
    expect((await visitor.get(`${path}?confirm=delete`)).text).toContain("removed for good");
    expect((await visitor.submit(`${path}/delete`)).text).toContain("The list is deleted");
    expect((await visitor.get(path)).status).toBe(404);
  });

  test("has its unsettled addresses verified again, after the cost was shown", async () => {
    const app = start();
    const visitor = await signIn(app);
    const path = await startList(visitor, MIXED);
    expect((await visitor.get(`${path}?confirm=retry`)).text).not.toContain("again?");
    await finish(app);
    expect((await visitor.get(path)).text).toContain("Verify unsettled again");
    const asked = await visitor.get(`${path}?confirm=retry`);
    expect(asked.text).toContain("Verify 1 unsettled address again? Cost: free of charge in test mode");
    expect((await visitor.submit(`${path}/retry`)).text).toContain("verified again");
    await finish(app);
    expect((await visitor.get(`${path}?tab=about`)).text).toContain("Verified again 1 time");
  });

  test("has hostile texts only as text", async () => {
    const app = start();
    const visitor = await signIn(app);
    const csv = `"${HOSTILE.replaceAll('"', '""')}",email\n"${HOSTILE.replaceAll('"', '""')}","${HOSTILE.replaceAll('"', '""')}@a.example"\nx,b@b.example\n`;
    const path = await startList(visitor, csv, { name: HOSTILE, source: HOSTILE, column: "1", header: "true" });
    await finish(app);
    for (const target of ["/test/lists", path, `${path}/rows/0`, `${path}?q=${encodeURIComponent(HOSTILE)}`])
      expectEscaped(await visitor.get(target));
  });
});

test("another account's lists and uploads are not there, and nothing works without the token", async () => {
  const app = start();
  const visitor = await signIn(app);
  const stranger = await signIn(app, { account: "other" });
  const path = await startList(visitor, MIXED);
  const { location, draft } = await preview(visitor, MIXED);
  for (const target of [path, `${path}/rows/0`, `${path}/results.csv`, location])
    expect((await stranger.get(target)).status).toBe(404);
  for (const target of [path, `${path}/rows/0`, `${path}/results.csv`])
    expect((await visitor.get(target.replace("/test", ""))).status).toBe(404);
  for (const act of ["cancel", "retry", "delete"]) {
    expect((await stranger.post(`${path}/${act}`)).status).toBe(404);
    expect((await visitor.post(`${path}/${act}`, {}, "wrong")).status).toBe(403);
  }
  expect((await stranger.post("/test/lists/new", { draft, header: "auto" })).status).toBe(404);
  expect((await visitor.post("/test/lists/new", { draft, header: "auto" }, "wrong")).status).toBe(403);
  await stranger.post("/test/lists/new/discard", { draft });
  expect((await visitor.get(location)).status).toBe(200);
});
