import { describe, expect, test } from "bun:test";
import { DAY_MS, dayOfTime, isoDay, isoMonth } from "../../foundation/base/days.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { signIn, type Visitor } from "../../testing/dashboard.ts";
import { UsageStore, type UsageEntry } from "../../accounts/usage/usage-store.ts";

const start = createApps();
const HOSTILE = `<img src=x onerror=alert(1)>"'`;

const use = (app: TestApp, accountId: string, entry: Partial<UsageEntry>): void => {
  const one = { source: "single", verdict: "deliverable", subStatus: "mailbox_exists", keyId: "k" } as const;
  const counts = { verifications: 10, credits: 10, day: dayOfTime(app.clock.nowMs()), mode: "live" } as const;
  app.db.transact((tx) => new UsageStore(app.db).add(tx, { ...one, ...counts, accountId, ...entry }));
};

const visit = async (): Promise<{ app: TestApp; visitor: Visitor; today: number }> => {
  const app = start();
  return { app, visitor: await signIn(app), today: dayOfTime(app.clock.nowMs()) };
};

describe("the page of usage", () => {
  test("teaches while nothing was used, and knows that nothing says how long credits last", async () => {
    const { visitor } = await visit();
    const { status, text } = await visitor.get("/usage");
    expect(status).toBe(200);
    expect(text).toContain("No verifications in this period");
    expect(text).toContain("Credits left 100 No credits were used in 30 days, so no estimate is possible.");
    expect(text).toContain("+100 sign-up");
  });

  test("says what was used by day, key and reason, and how long the credits last", async () => {
    const { app, visitor, today } = await visit();
    const key = app.newKey({ mode: "live", name: HOSTILE });
    const { accountId } = visitor;
    use(app, accountId, { keyId: key.id });
    use(app, accountId, { keyId: key.id, verdict: "risky", subStatus: "smtp_timeout", verifications: 2, credits: 0 });
    use(app, accountId, {
      verdict: "undeliverable",
      subStatus: "mailbox_not_found",
      verifications: 4,
      credits: 4,
      day: today - 1,
    });
    use(app, accountId, { verifications: 1_000, credits: 1_000, day: today - 40 });
    const { text, html } = await visitor.get("/usage?days=30");
    expect(text).toContain("16 verifications from");
    expect(text).toContain("Credits charged 14 2 not charged: no conclusive reply");
    expect(text).toContain("About 14 days at 7.0 a day, the mean of the last 2 days.");
    expect(text).toContain("Deliverable 10 62.5 %");
    expect(text).toContain("No such mailbox 4 25 %");
    expect(text).toContain("Server timed out 2 12.5 %");
    expect(text).toContain(`${HOSTILE} 12 10`);
    expect(html).not.toContain("<img src=x");
    expect(text).toContain("removed key k 4");
    expect(html).toContain("data-chart=");
  });

  test.each([
    [10, "About 10 days at 10 a day, the mean of today."],
    [101, "Less than a day at 101 a day, the mean of today."],
  ])("after %d credits in a day says how long the 100 last: %s", async (credits, sentence) => {
    const { app, visitor } = await visit();
    use(app, visitor.accountId, { credits });
    expect((await visitor.get("/usage")).text).toContain(sentence);
  });

  test("shows the days that are chosen; what makes no sense is ignored", async () => {
    const { app, visitor, today } = await visit();
    use(app, visitor.accountId, { day: today - 40, verifications: 7 });
    const count = async (query: string): Promise<string> =>
      /(\S+ verifications?) (?:in \S+ \d+, )?from/.exec((await visitor.get(`/usage${query}`)).text)?.[1] ?? "";
    expect(await count("?days=30")).toBe("0 verifications");
    expect(await count("?days=90")).toBe("7 verifications");
    expect(await count(`?from=${isoDay(today - 40)}&to=${isoDay(today - 40)}`)).toBe("7 verifications");
    expect(await count(`?from=${isoDay(today - 39)}`)).toBe("0 verifications");
    for (const query of ["?days=5", "?from=x", "?to=2026-02-30", "?from=2999-01-01", "?cursor=-1", "?from=a&from=b"])
      expect(await count(query)).toBe("0 verifications");
    expect(await count("?from=1999-01-01")).toBe("7 verifications");
  });

  test("shows a calendar month with its total, and offers the months with verifications", async () => {
    const { app, visitor, today } = await visit();
    const [now, before] = [isoMonth(today), isoMonth(today - 40)];
    use(app, visitor.accountId, { day: today, verifications: 3, credits: 2 });
    use(app, visitor.accountId, { day: today - 40, verifications: 7 });
    use(app, visitor.accountId, { day: today - 40, verifications: 5, mode: "test", keyId: "t" });
    const { text, html } = await visitor.get(`/usage?month=${before}`);
    expect(text).toMatch(/ 7 verifications in [A-Z][a-z]+ \d{4}, from .* Total 7 7 100 %/);
    expect([...html.matchAll(/<option value="(\d{4}-\d\d)"/g)].map(([, month]) => month)).toEqual([now, before]);
    for (const query of [`?month=${now}`, "", "?month=2999-01", "?month=2026-13", "?month=x"]) {
      const { text: thisMonth, html: page } = await visitor.get(`/usage${query}`);
      expect(thisMonth).toContain(" 3 verifications in ");
      expect(page).toMatch(/aria-current="[a-z]+"[^>]*>This month</);
    }
    const csv = await visitor.get(`/usage/csv/key?month=${before}`);
    expect(csv.html.trim().split("\r\n")[1]).toBe("k,,7,7,0,0,0,10");
    expect(csv.headers.get("content-disposition")).toContain(`usage-by-key-${before}-01-to-${before}-`);
  });

  test("is that of the account and mode alone; test data has no credits", async () => {
    const { app, visitor } = await visit();
    use(app, app.newAccount("other", "free"), {});
    use(app, visitor.accountId, { mode: "test", credits: 0 });
    expect((await visitor.get("/usage")).text).toContain("0 verifications in ");
    const { text } = await visitor.get("/test/usage");
    expect(text).toContain("10 verifications in ");
    expect(text).not.toContain("Credits left");
    expect(text).not.toContain("Not charged");
    const stranger = await signIn(app, { account: "other" });
    expect((await stranger.get("/usage")).text).toContain("10 verifications in ");
  });

  test("shows granted credits in pages", async () => {
    const { app, visitor } = await visit();
    const { ledger } = app.service.accounts;
    app.db.transact((tx) => {
      for (let at = 1; at <= 25; at += 1)
        ledger.grant(tx, { accountId: visitor.accountId, credits: at, note: `=grant ${at}`, atMs: at * DAY_MS });
    });
    const first = await visitor.get("/usage");
    expect(first.text).toContain("=grant 25");
    expect(first.text).not.toContain("=grant 5 ");
    const next = /href="([^"]*cursor=[^"]*)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const second = await visitor.get(next);
    expect(second.text).toContain("=grant 5 ");
    expect(second.text).toContain("sign-up");
    const { html: csv, headers } = await visitor.get("/usage/credits.csv");
    expect(headers.get("content-disposition")).toBe('attachment; filename="credits-granted.csv"');
    expect(csv.split("\r\n").slice(0, 2)).toEqual([
      "granted_at,credits,note",
      "1970-01-26T00:00:00.000Z,25,'=grant 25",
    ]);
    expect(csv.trim().split("\r\n").length).toBe(27);
  });
});

describe("the CSV of a table", () => {
  test("has the same days and figures, without formulas", async () => {
    const { app, visitor, today } = await visit();
    const key = app.newKey({ mode: "live", name: "=1+1" });
    use(app, visitor.accountId, { keyId: key.id });
    const day = isoDay(today);
    const byKey = await visitor.get(`/usage/csv/key?from=${day}&to=${day}`);
    expect(byKey.headers.get("content-type")).toContain("text/csv");
    expect(byKey.headers.get("content-disposition")).toContain(`usage-by-key-${day}-to-${day}.csv`);
    expect(byKey.html.split("\r\n")[1]).toBe(`${key.id},'=1+1,10,10,0,0,0,10`);
    expect((await visitor.get("/usage/csv/day?days=7")).html.trim().split("\r\n").length).toBe(8);
    expect((await visitor.get("/usage/csv/sub_status")).html).toContain("mailbox_exists,10,10,0,0,,10");
    expect((await visitor.get("/usage/csv/hour")).status).toBe(404);
  });

  test("needs a session", async () => {
    const { app } = await visit();
    for (const path of ["/usage", "/usage/csv/day", "/usage/credits.csv"]) {
      const response = await app.handle(new Request(`http://localhost${path}`, { headers: { accept: "text/html" } }));
      expect([response.status, response.headers.get("location")]).toEqual([303, expect.stringContaining("/sign-in")]);
    }
  });
});
