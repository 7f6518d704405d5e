import type { Brand } from "./logo.ts";
import { describe, expect, test } from "bun:test";
import type { AuditLog } from "../accounts/audit-store.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { renderToString } from "preact-render-to-string";
import { z } from "zod";
import { nextTurn } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { createTokenBuckets } from "../foundation/base/limits.ts";
import { Guard } from "../foundation/http/guard.ts";
import { createBudgets } from "../foundation/http/request-memory.ts";
import { createApplication } from "../service/http-application.ts";
import { createServer } from "../service/server.ts";
import { createTestClock } from "../testing/clock.ts";
import { silentLog } from "../testing/silent-log.ts";
import { StackBar } from "./components/chart.tsx";
import { Button, Field, PostForm } from "./components/form.tsx";
import { Link } from "./components/inline.tsx";
import { PageHead } from "./components/panel.tsx";
import { assetPath } from "./frame.tsx";
import { formAction, page, publicAction, publicPage, type PageRoute, uploadAction, flag, listOf } from "./page.ts";
import { type View, isOwnPath, readFlash, redirectTo } from "./visit.ts";
import { Dashboard, type ActiveSession } from "./serve-pages.tsx";

const ACCOUNT = {
  ...{ id: "account", name: "acme", plan: "free" as const, ratePerSecond: null, rateBurst: null },
  ...{ disabledAtMs: null, createdAtMs: 0 },
};

const signedIn = (name: string, user: Partial<ActiveSession["user"]> = {}): ActiveSession => ({
  ...{ sessionId: name, csrfToken: `csrf of ${name}`, account: ACCOUNT },
  user: {
    id: name,
    email: `${name}@example.com`,
    role: "member",
    isOperator: false,
    tag: null,
    timeZone: null,
    ...user,
  },
});

const SESSIONS = new Map([
  ["member", signedIn("member")],
  ["owner", signedIn("owner", { role: "owner" })],
  ["operator", signedIn("operator", { isOperator: true })],
]);

const nameForm = z.object({ name: z.string().trim().min(1).max(5), tags: listOf(z.string()), isLoud: flag });

/** What a mail server, a name server or a webhook receiver may send, and how a page shows it. */
const FOREIGN = ' value="550 \u001b[31mUser\u202egnp.exe\u2066 \u0085\u200b\ufeffpay\u200cpal';
const SHOWN = [" value=&quot;550 ", "[31mUser", "gnp.exe", " ", "", "", "pay", "pal"]
  .map((part, at) => part + (["\\u001b", "\\u202e", "\\u2066", "\\u0085", "\\u200b", "\\ufeff", "\\u200c"][at] ?? ""))
  .join("");

/** Called whenever the page with the form is read. */
let onFormPage = (): void => undefined;

const FormPage = (): View => {
  onFormPage();
  return FORM_PAGE;
};

const FORM_PAGE: View = {
  ...{ title: "Form", section: "settings" },
  body: (
    <>
      <PageHead title="Form" />
      <PostForm action="/form">
        <Field name="name" label="Name" />
        <Field name="secret" label="Secret" type="password" />
        <Button>Save</Button>
      </PostForm>
      <PostForm action="/other">
        <Field name="name" label="Other name" value="untouched" />
      </PostForm>
    </>
  ),
};

const withAccess = (access: PageRoute["access"], route: PageRoute): PageRoute => ({ ...route, access });

const recorded: Array<readonly [string | undefined, string, string | null]> = [];

/** Records what changes no row, as every form here. */
const recordPerformed: AuditLog["perform"] = async ({ action, work, isRecordedUnchanged }) => {
  const value = await work();
  const found = typeof action === "function" ? action() : action;
  if (found !== null && isRecordedUnchanged?.(value) === true) recorded.push([found.by, found.action, found.subject]);
  return value;
};

const ROUTES = [
  page(
    { path: "/", query: z.object({ day: z.iso.date().optional(), q: z.string().default("all") }) },
    ({ viewer, query }) => ({
      ...{ title: "Home", section: "home" },
      body: (
        <>
          <PageHead title={`Hello ${viewer.user.email} ${viewer.mode} ${viewer.caller.keyId}`} />
          <p>{JSON.stringify(query)}</p>
          <Link href="/lists?a=1">Lists</Link>
        </>
      ),
    }),
  ),
  page({ path: "/things/:id", params: z.object({ id: z.string().max(3) }) }, ({ params }) => {
    if (params.id === "bug") throw new Error("a defect");
    if (params.id === "no") throw new AppError("not_found", { message: "There is no such <thing>." });
    return { title: params.id, section: "home", body: <h1>{params.id}</h1> };
  }),
  withAccess(
    "owner",
    page({ path: "/owners" }, () => ({ title: "Owners", section: null, body: <h1>owners</h1> })),
  ),
  withAccess(
    "operator",
    page({ path: "/operators" }, () => ({ title: "Ops", section: null, body: <h1>ops</h1> })),
  ),
  page({ path: "/file" }, () => new Response("a,b", { headers: { "content-type": "text/csv" } })),
  page({ path: "/form" }, FormPage),
  formAction(
    { path: "/form", form: nameForm },
    ({ viewer, form }) => {
      if (form.name === "taken") throw new AppError("conflict", { issues: [{ path: "name", message: "Taken" }] });
      return redirectTo(viewer, "/form", { ok: `Saved ${form.name} ${form.tags.join("+")} ${form.isLoud}` });
    },
    { rerender: FormPage },
  ),
  {
    ...formAction(
      { path: "/things/:id/change", params: z.object({ id: z.string() }), form: nameForm },
      ({ viewer, form }) => {
        if (form.name === "taken") throw new AppError("conflict", { issues: [{ path: "name", message: "Taken" }] });
        if (form.name === "same") return redirectTo(viewer, "/form", { bad: "Nothing was changed." });
        return redirectTo(viewer, "/form", { ok: "Changed." });
      },
    ),
    action: "things.change",
  },
  formAction({ path: "/bare", form: nameForm }, ({ viewer }) => redirectTo(viewer, "/", { bad: "No." })),
  uploadAction({ path: "/upload" }, async ({ request }) => new Response(String((await request.bytes()).byteLength))),
  page({ path: "/foreign" }, () => ({
    ...{ title: FOREIGN, section: "home" },
    body: (
      <>
        <PageHead title={FOREIGN} />
        <p title={FOREIGN}>{FOREIGN}</p>
        <PostForm action="/form">
          <Field name="name" label={FOREIGN} value={FOREIGN} />
          <textarea name="text" title={FOREIGN}>
            {FOREIGN}
          </textarea>
        </PostForm>
      </>
    ),
  })),
  publicPage({ path: "/sign-in" }, () => ({
    ...{ title: "Sign in", section: null },
    body: (
      <PostForm action="/sign-in">
        <Button>Sign in</Button>
      </PostForm>
    ),
  })),
  publicAction({ path: "/sign-in" }, () => new Response("tried")),
];

const createApp = (brand: Brand = { name: "Postwarden", logo: null }) => {
  const clock = createTestClock();
  const guard = new Guard(() => undefined, { buckets: createTokenBuckets(clock), budgets: createBudgets(clock) });
  const dashboard = new Dashboard({
    ...{ guard, clock, routes: ROUTES, hasManual: true, isHttps: false, baseUrl: "http://127.0.0.1" },
    brand,
    audit: { perform: recordPerformed },
    findSession: (token) => {
      if (token === "broken") throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" });
      return SESSIONS.get(token);
    },
    frameFacts: () => ({ credits: 1234, attention: { dmarc: { count: 3, isUrgent: true } } }),
    clientAddress: () => null,
  });
  const application = createApplication({
    ...{ log: silentLog, clock, routes: dashboard.routes() },
    errorPage: (request, error) => dashboard.errorPage(request, error),
  });
  const clients = new ClientAddresses([]);
  const app = createServer({ log: silentLog, clock, clients, applicationOf: () => application });
  return async (path: string, { as, form, headers = {} }: Ask = {}) => {
    const response = await app.handle(
      new Request(`http://localhost${path}`, {
        method: form === undefined ? "GET" : "POST",
        headers: {
          accept: "text/html",
          ...(as === undefined ? {} : { cookie: `pw_session=${as}` }),
          ...(form === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
          ...headers,
        },
        ...(form === undefined ? {} : { body: form }),
      }),
    );
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
};

interface Ask {
  readonly as?: string;
  readonly form?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const ask = createApp();
const csrf = (name: string): string => `_csrf=${encodeURIComponent(`csrf of ${name}`)}`;

describe("a page", () => {
  test("is rendered for whom is signed in, and never kept or framed", async () => {
    const { status, headers, text } = await ask("/", { as: "member" });
    expect(status).toBe(200);
    expect(text).toContain("Hello member@example.com live user:member");
    expect(text).toContain("1,234");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("content-security-policy")?.split("; ")).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]);
  });

  test("in test mode links to pages of test mode", async () => {
    const { text } = await ask("/test", { as: "member" });
    expect(text).toContain("member@example.com test user:member");
    expect(text).toContain('href="/test/lists?a=1"');
    expect(text).toContain("Test data");
    expect((await ask("/", { as: "member" })).text).toContain('href="/lists?a=1"');
  });

  test.each([
    ["http://localhost/things/a?x=1", "/sign-in?next=%2Fthings%2Fa%3Fx%3D1"],
    ["http://elsewhere.example/things/a", "/sign-in"],
    ["nonsense", "/sign-in"],
  ])("tells who sends a form after the session has ended that it was not sent: from %s", async (referer, location) => {
    const sent = await ask("/form", { as: "nobody", form: "name=x", headers: { referer } });
    expect([sent.status, sent.headers.get("location")]).toEqual([303, location]);
    expect(
      readFlash(new Request("http://localhost", { headers: { cookie: sent.headers.getSetCookie()[0] ?? "" } })),
    ).toEqual({
      bad: expect.stringContaining("nothing was changed"),
    });
  });

  test("sends a visitor to the sign-in, and back", async () => {
    const { status, headers } = await ask("/things/a?x=1&y=2", {});
    expect([status, headers.get("location")]).toEqual([303, "/sign-in?next=%2Fthings%2Fa%3Fx%3D1%26y%3D2"]);
    expect((await ask("/", { as: "nobody" })).headers.get("location")).toBe("/sign-in");
    const part = await ask("/", { headers: { "hx-request": "true" } });
    expect(part.headers.get("hx-redirect")).toBe("/sign-in");
  });

  test.each([
    ["/?q=x&day=2026-01-02", '{"day":"2026-01-02","q":"x"}'],
    ["/?q=x&day=yesterday&other=1", '{"q":"x"}'],
    ["/?q=a&q=b", '{"q":"all"}'],
    ["/?day=", '{"q":"all"}'],
  ])("%s drops the parameters that do not fit", async (path, query) => {
    expect((await ask(path, { as: "member" })).text).toContain(query.replaceAll(`"`, "&quot;"));
  });

  test.each([
    ["/things/none", 404, "There is no such page."],
    ["/things/no", 404, "There is no such &lt;thing>."],
    ["/things/bug", 500, "This is a defect of the service."],
    ["/nowhere", 404, "There is nothing at this address"],
    ["/test/nowhere", 404, "There is nothing at this address"],
    ["/assets/old-style.css", 404, "There is no such page."],
  ])("%s is an error page with the status %i", async (path, status, text) => {
    const page = await ask(path, { as: "member" });
    expect([page.status, page.headers.get("content-type")]).toEqual([status, "text/html; charset=utf-8"]);
    expect(page.text).toContain(text);
    expect(page.text).not.toContain("a defect</");
    expect(page.headers.get("cache-control")).toBe("no-store");
  });

  test("is an error page without a frame where the database does not respond", async () => {
    const { status, text } = await ask("/", { as: "broken" });
    expect(status).toBe(503);
    expect(text).toContain("The database is not writable at the moment.");
    expect(text).not.toContain("Sections");
  });

  test("of an unknown path stays JSON for clients of the API", async () => {
    const { headers, text } = await ask("/nowhere", { headers: { accept: "*/*" } });
    expect(headers.get("content-type")).toContain("application/json");
    expect(JSON.parse(text)).toMatchObject({ error: "not_found" });
    expect((await ask("/v1/nowhere", {})).headers.get("content-type")).toContain("application/json");
  });

  test.each([
    ["/owners", "member", 403],
    ["/owners", "operator", 403],
    ["/owners", "owner", 200],
    ["/operators", "member", 403],
    ["/operators", "owner", 403],
    ["/operators", "operator", 200],
  ])("%s for a %s is %i", async (path, as, status) => {
    const page = await ask(path, { as });
    expect(page.status).toBe(status);
    if (status === 403) expect(page.text).not.toContain("<h1>owners");
  });

  test("a file that a page returns is not cached either", async () => {
    const { headers, text } = await ask("/file", { as: "member" });
    expect([headers.get("cache-control"), headers.get("content-type"), text]).toEqual(["no-store", "text/csv", "a,b"]);
  });
});

describe("a form", () => {
  test("is performed once with its token, and the next page says so once", async () => {
    const sent = await ask("/form", { as: "member", form: `${csrf("member")}&name=+me+&tags=a&tags=b&isLoud=on` });
    expect([sent.status, sent.headers.get("location")]).toEqual([303, "/form"]);
    const cookie = sent.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const next = await ask("/form", { headers: { cookie: `pw_session=member; ${cookie}` } });
    expect(next.text).toContain("Saved me a+b true");
    expect(next.headers.getSetCookie()[0]).toStartWith("pw_flash=;");
  });

  test("stays in test mode", async () => {
    const sent = await ask("/test/form", { as: "member", form: `${csrf("member")}&name=me` });
    expect(sent.headers.get("location")).toBe("/test/form");
  });

  test.each([
    ["no token", "name=me", {}],
    ["another session's token", `${csrf("owner")}&name=me`, {}],
    ["a token from another site", `${csrf("member")}&name=me`, { "sec-fetch-site": "cross-site" }],
    ["a token from a sister site", `${csrf("member")}&name=me`, { "sec-fetch-site": "same-site" }],
  ])("is refused with %s", async (_, form, headers) => {
    const { status, text } = await ask("/form", { as: "member", form, headers });
    expect(status).toBe(403);
    expect(text).toContain("This form is no longer valid");
  });

  test("is shown again with what was typed, its errors and its status", async () => {
    const { status, text } = await ask("/form", {
      as: "member",
      form: `${csrf("member")}&name=%3Cb%3Etoolong&secret=hidden`,
    });
    expect(status).toBe(400);
    expect(text).toContain('value="&lt;b>toolong"');
    expect(text).toContain("Must have at most 5 characters.");
    expect(text).toContain("One field needs your attention.");
    expect(text.split(" autofocus")).toHaveLength(2);
    expect(text).toContain('value="untouched"');
    expect(text).not.toContain('value="hidden"');
  });

  test("is shown again with what a use case refuses", async () => {
    const { status, text } = await ask("/form", { as: "member", form: `${csrf("member")}&name=taken` });
    expect(status).toBe(409);
    expect(text).toContain('value="taken"');
    expect(text).toContain("Taken.");
  });

  test("without a page to show again is an error page", async () => {
    const { status, text } = await ask("/bare", { as: "member", form: csrf("member") });
    expect(status).toBe(400);
    expect(text).toContain("name: Required.");
  });

  test("of another type of body is refused", async () => {
    const { status } = await ask("/form", {
      as: "member",
      form: "{}",
      headers: { "content-type": "application/json" },
    });
    expect(status).toBe(415);
  });

  test("with files has its token in the query", async () => {
    expect((await ask(`/upload?${csrf("member")}`, { as: "member", form: "12345" })).text).toBe("5");
    expect((await ask("/upload", { as: "member", form: "12345" })).status).toBe(403);
    expect((await ask(`/upload?${csrf("owner")}`, { as: "member", form: "12345" })).status).toBe(403);
  });

  test("of a visitor has a token of its own", async () => {
    const shown = await ask("/sign-in");
    const cookie = shown.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const token = /name="_csrf" value="([0-9a-f]+)"/.exec(shown.text)?.[1] ?? "";
    const form = `_csrf=${token}`;
    expect((await ask("/sign-in", { form, headers: { cookie } })).text).toBe("tried");
    expect((await ask("/sign-in", { form })).status).toBe(403);
    expect((await ask("/sign-in", { form, headers: { cookie: `pw_visitor=${"0".repeat(32)}` } })).status).toBe(403);
    expect((await ask("/sign-in", { form: "", headers: { cookie } })).status).toBe(403);
  });
});

describe("assets", () => {
  test("are kept for ever under the name of their content", async () => {
    const { status, headers, text } = await ask(assetPath("style.css"));
    expect([status, headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
    expect(headers.get("cache-control")).toContain("immutable");
    expect(text).toContain("--accent");
  });
});

test.each([
  ["/lists?a=b", true],
  ["/", true],
  ["//evil.example", false],
  ["/\\evil.example", false],
  ["https://evil.example", false],
  ["/a\\b", false],
  ["/a\nb", false],
  ["", false],
])("%j is a path of this site: %p", (path, is) => {
  expect(isOwnPath(path)).toBe(is);
});

test("control, bidirectional and invisible characters are shown, in texts and attributes; forms send back what they got", async () => {
  const { text } = await ask("/foreign", { as: "member" });
  const escaped = FOREIGN.replaceAll('"', "&quot;");
  expect(text).toContain(`<p title="${SHOWN}">${SHOWN}</p>`);
  expect(text).toContain(`<title>${SHOWN}`);
  expect(text).toContain(` value="${escaped}"`);
  const rest = text.replaceAll(` value="${escaped}"`, "").replace(`${escaped}</textarea>`, "");
  expect(rest).not.toMatch(/(?![\t\n\r])[\p{Cc}\p{Cf}]/u);
  expect(text).toContain(`${escaped}</textarea>`);
});

test("a form that succeeded is in the audit log with its user, action and subject; a refused one is not", async () => {
  const change = (form: string) => ask("/things/a7/change", { as: "member", form: `${form}&${csrf("member")}` });
  recorded.length = 0;
  expect((await change("name=")).status).toBe(400);
  expect((await change("name=taken")).status).toBe(409);
  expect((await ask("/things/a7/change", { as: "member", form: "name=ada" })).status).toBe(403);
  expect((await change("name=same")).status).toBe(303);
  expect(recorded).toEqual([]);
  expect((await change("name=ada")).status).toBe(303);
  expect(recorded).toEqual([["member", "things.change", "a7"]]);
});

test.each([
  ["pages", undefined],
  ["forms that are shown again", `${csrf("member")}&name=too+long`],
])("of %s that are requested at the same time, one is rendered in each turn of the event loop", async (_, form) => {
  const turnsOfPages: number[] = [];
  let turn = 0;
  onFormPage = () => void turnsOfPages.push(turn);
  const over = new AbortController();
  const count = async (): Promise<void> => {
    for (; !over.signal.aborted; turn++) await nextTurn();
  };
  const counting = count();
  const asked = Array.from({ length: 20 }, () => ask("/form", { as: "member", ...(form && { form }) }));
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  over.abort();
  await counting;
  onFormPage = () => undefined;
  expect(new Set(statuses)).toEqual(new Set([form === undefined ? 200 : 400]));
  expect(turnsOfPages).toHaveLength(20);
  // The first page begins at once, and the second before this test counts the turn.
  expect(new Set(turnsOfPages).size).toBeGreaterThanOrEqual(19);
});

test("a bar of parts has the width of each part, and none where there is nothing", () => {
  const widths = (values: readonly number[]) =>
    renderToString(<StackBar parts={values.map((value, at) => ({ title: `p${at}`, kind: "ok", value }))} />)
      .matchAll(/class="ok" x="(\d+)" y="0" width="(\d+|NaN)"/g)
      .map(([, x, width]) => `${x}+${width}`)
      .toArray();
  expect(widths([1, 3])).toEqual(["0+250", "250+750"]);
  expect(widths([0, 0])).toEqual(["0+0", "0+0"]);
});

describe("the brand", () => {
  const logo = {
    path: "/assets/0123-logo.svg",
    bytes: new TextEncoder().encode("<svg/>"),
    type: "image/svg+xml",
  } as const;
  const askAgency = createApp({ name: "Hofmail", logo });

  test("is the name of the service and its mark; messengers show a picture beside a link", async () => {
    const { text } = await ask("/sign-in", {});
    expect(text).toContain("· Postwarden</title>");
    expect(text).toContain('<img class="mark"');
    const [, image = ""] = /property="og:image" content="http:\/\/127\.0\.0\.1([^"]+)"/.exec(text) ?? [];
    expect((await ask(image, {})).headers.get("content-type")).toBe("image/png");
    expect((await ask("/", { as: "member" })).text).not.toContain("og:image");
  });

  test("may be that of an agency: its name and its logo in place of both", async () => {
    const { text } = await askAgency("/sign-in", {});
    expect(text).toContain("· Hofmail</title>");
    expect(text).toContain('<img class="logo" src="/assets/0123-logo.svg" alt="Hofmail"');
    expect(text).toContain('rel="icon" type="image/svg+xml" href="/assets/0123-logo.svg"');
    expect(text).not.toMatch(/Postwarden|og:image/);
    const picture = await askAgency(logo.path, {});
    expect([picture.status, picture.text]).toEqual([200, "<svg/>"]);
    expect(picture.headers.get("content-security-policy")).toContain("sandbox");
    expect((await ask(logo.path, {})).status).toBe(404);
  });
});
