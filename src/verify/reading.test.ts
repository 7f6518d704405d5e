import { describe, expect, test } from "bun:test";
import type { IssuedKey } from "../accounts/keys.ts";
import { createApps, type TestApp } from "../testing/app.ts";

const PATH = "/v1/email-verifications";
const start = createApps();

interface Listed {
  readonly id: string;
  readonly email: string;
  readonly source: string | null;
  readonly created_at: string;
  readonly status: string;
}

const list = async (app: TestApp, key: IssuedKey, query = "") => {
  const { status, body } = await app.request("GET", `${PATH}${query}`, { key });
  return {
    status,
    body,
    emails: ((body.verifications ?? []) as Listed[]).map(({ email }) => email),
    rows: (body.verifications ?? []) as Listed[],
    cursor: (body.next_cursor ?? null) as string | null,
  };
};

const orderMany = async (app: TestApp, key: IssuedKey, count: number, from = 0): Promise<string[]> => {
  const emails = Array.from({ length: count }, (_, n) => `n${from + n}@any.example`);
  for (const email of emails) await app.verify(key, email);
  return emails.toReversed();
};

describe("GET by id", () => {
  test("answers what the POST answered, without credits and without rate limit", async () => {
    const app = start();
    const key = app.newKey();
    const posted = await app.verify(key, "someone@any.example");
    const read = await app.request("GET", `${PATH}/${posted.id}`, { key });
    expect(read).toMatchObject({ status: 200, body: posted.body });
    expect(Object.keys(read.body)).toEqual(["id", "status", "result"]);
  });

  test("waits for a pending one, five seconds by default, and no longer than it takes", async () => {
    const app = start();
    const key = app.newKey();
    const posted = app.verify(key, "pending@any.example", "?timeout=1");
    await app.advance(1_000);
    const { id } = await posted;
    let answered = 0;
    const read = (query: string) => app.request("GET", `${PATH}/${id}${query}`, { key }).finally(() => answered++);
    const unfinished = read("");
    const finished = read("?timeout=90");
    await app.advance(4_999);
    expect(answered).toBe(0);
    await app.advance(1);
    expect(answered).toBe(1);
    expect(await unfinished).toMatchObject({ status: 200, body: { id, status: "pending" } });
    expect((await unfinished).headers.get("location")).toBeNull();
    expect(Object.keys((await unfinished).body)).toEqual(["id", "status", "poll_after_ms", "next_retry_at"]);
    await app.advance(2_000);
    expect(answered).toBe(2);
    expect(await finished).toMatchObject({ status: 200, body: { id, status: "completed" } });
  });

  test("hides what belongs to another account or the other mode, and shows it to every key of its own", async () => {
    const app = start();
    const key = app.newKey();
    const { id } = await app.verify(key, "someone@any.example");
    const others = [app.newKey({ account: "other" }), app.newKey({ mode: "live" })];
    for (const target of [`${PATH}/${id}`, `${PATH}/${id}/evidence`]) {
      expect((await app.request("GET", target, { key: app.newKey() })).status).toBe(200);
      for (const other of others) {
        const answer = await app.request("GET", target, { key: other });
        expect(answer).toMatchObject({ status: 404, body: { error: "not_found" } });
      }
    }
  });

  test.each([
    "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
    "019AA0D6-5B7E-7C31-9F4C-0D9A3C3F1A52",
    "00000000-0000-0000-0000-000000000000",
    "1",
    "null",
    "' OR 1=1 --",
  ])("does not know %p", async (id) => {
    const app = start();
    const key = app.newKey();
    for (const target of [`${PATH}/${id}`, `${PATH}/${id}/evidence`]) {
      expect((await app.request("GET", target, { key })).status).toBe(404);
    }
  });
});

describe("the list", () => {
  test("is newest first, and each entry is the verification with its email, source and time", async () => {
    const app = start();
    const key = app.newKey();
    const first = await app.request("POST", PATH, { key, body: { email: " First@any.example", source: "form" } });
    await app.advance(1_500);
    const second = await app.verify(key, "second@any.example");
    expect((await list(app, key)).body).toEqual({
      verifications: [
        { ...second.body, email: "second@any.example", source: null, created_at: "2026-01-01T00:00:01.500Z" },
        { ...first.body, email: "First@any.example", source: "form", created_at: "2026-01-01T00:00:00.000Z" },
      ],
      next_cursor: null,
    });
  });

  test("shows pending ones with the wait that is left", async () => {
    const app = start();
    const key = app.newKey();
    const posted = app.verify(key, "pending@any.example", "?timeout=1");
    await app.advance(1_000);
    await posted;
    expect((await list(app, key)).rows).toEqual([
      expect.objectContaining({ status: "pending", poll_after_ms: 7_000, next_retry_at: "2026-01-01T00:00:08.000Z" }),
    ]);
  });

  test("shows what the calling key made, and nothing else", async () => {
    const app = start();
    const keys = [app.newKey(), app.newKey(), app.newKey({ mode: "live" }), app.newKey({ account: "other" })];
    for (const [n, key] of keys.entries()) await app.verify(key, `not an address ${n}`);
    for (const [n, key] of keys.entries()) expect((await list(app, key)).emails).toEqual([`not an address ${n}`]);
  });

  test("pages without gap or repetition, while new checks come in", async () => {
    const app = start();
    const key = app.newKey();
    const emails = await orderMany(app, key, 7);
    const seen: string[] = [];
    let cursor: string | null = null;
    for (const size of [3, 3, 1]) {
      const page = await list(app, key, `?limit=3${cursor === null ? "" : `&cursor=${cursor}`}`);
      expect(page.emails).toHaveLength(size);
      seen.push(...page.emails);
      cursor = page.cursor;
      await orderMany(app, key, 2, 100 + seen.length);
    }
    expect(cursor).toBeNull();
    expect(seen).toEqual(emails);
  });

  test("has no next page when the last one is just full", async () => {
    const app = start();
    const key = app.newKey();
    await orderMany(app, key, 4);
    const first = await list(app, key, "?limit=2");
    const second = await list(app, key, `?limit=2&cursor=${first.cursor}`);
    expect([first.cursor === null, second.emails.length, second.cursor]).toEqual([false, 2, null]);
  });

  test("returns 100 by default, and at most 1000", async () => {
    const app = start();
    const key = app.newKey();
    await app.verify(key, "someone@any.example");
    app.db.sqlite.run(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
      INSERT INTO verifications SELECT printf('00000000-0000-7000-8000-%012d', i), account_id, key_id, mode, email,
        normalized_email, source, status, verdict, sub_status, result, created_at_ms, completed_at_ms, due_at_ms, attempts
      FROM verifications, n`);
    expect((await list(app, key)).emails).toHaveLength(100);
    for (const limit of ["1000", "1001", "9".repeat(30)]) {
      expect((await list(app, key, `?limit=${limit}`)).emails).toHaveLength(1000);
    }
  });

  const FILTERS = [
    ["status=completed", ["z", "y", "x", "w"]],
    ["status=pending", ["pending"]],
    ["verdict=deliverable", ["z", "w"]],
    ["verdict=undeliverable", ["y"]],
    ["sub_status=catch_all", ["x"]],
    ["sub_status=mailbox_exists&verdict=risky", []],
    ["source=form", ["z"]],
    ["source=Form", []],
    ["email=W%40ANY.example", ["w"]],
    ["email=w%2Btag%40any.example", []],
    ["email=no%20address", []],
    ["created_after=2026-01-01T00:00:02.000Z", ["pending", "z", "y"]],
    ["created_after=2026-01-01T01:00:02%2B01:00", ["pending", "z", "y"]],
    ["created_before=2026-01-01T00:00:02.000Z", ["x", "w"]],
    ["created_after=2026-01-01T00:00:01Z&created_before=2026-01-01T00:00:02Z", ["x"]],
  ] as const;

  test.each(FILTERS)("filters by %s", async (query, expected) => {
    const app = start();
    const key = app.newKey();
    const order = async (email: string, source?: string) => {
      const body = { email, ...(source === undefined ? {} : { source }) };
      const posted = app.request("POST", `${PATH}?timeout=1`, { key, body });
      await app.advance(1_000);
      await posted;
    };
    await order("w@any.example");
    await order("catch_all@any.example", "x");
    await order("mailbox_not_found@any.example", "y");
    await order("z@any.example", "form");
    await order("pending@any.example");
    const names: Record<string, string> = { "catch_all@any.example": "x", "mailbox_not_found@any.example": "y" };
    const { emails } = await list(app, key, `?${query}`);
    expect(emails.map((email) => names[email] ?? email.split("@")[0] ?? "")).toEqual([...expected]);
  });

  test.each([
    ["limit=0", "Invalid limit"],
    ["limit=-1", "Invalid limit"],
    ["limit=1.5", "Invalid limit"],
    ["limit=", "Invalid limit"],
    ["limit=ten", "Invalid limit"],
    ["limit=1&limit=2", "Invalid limit"],
    ["cursor=", "Invalid cursor"],
    ["cursor=abc", "Invalid cursor"],
    ["cursor=019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52", "Invalid cursor"],
    [`cursor=${Buffer.from("' OR 1=1").toString("base64url")}`, "Invalid cursor"],
    [`cursor=${Buffer.from("019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52").toString("base64url")}x`, "Invalid cursor"],
    [`cursor=${Buffer.from("019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52").toString("base64")}=`, "Invalid cursor"],
  ])("?%s is %s", async (query, error) => {
    const app = start();
    expect(await list(app, app.newKey(), `?${query}`)).toMatchObject({ status: 400, body: { error } });
  });

  test.each([
    ["unknown=1", "unknown"],
    ["Status=pending", "Status"],
    ["page=2", "page"],
    ["status=done", "status"],
    ["status=", "status"],
    ["status=pending&status=completed", "status"],
    ["verdict=unknown", "verdict"],
    ["sub_status=none", "sub_status"],
    ["created_after=yesterday", "created_after"],
    ["created_after=2026-01-01", "created_after"],
    ["created_before=2026-13-01T00:00:00Z", "created_before"],
    ["created_before=2026-02-30T00:00:00Z", "created_before"],
    ["__proto__=1", "__proto__"],
  ])("?%s is an Invalid query that names %s", async (query, path) => {
    const app = start();
    const { status, body } = await list(app, app.newKey(), `?${query}`);
    expect({ status, error: body.error }).toEqual({ status: 400, error: "Invalid query" });
    expect(body.issues).toEqual([{ path, message: expect.any(String) }]);
  });
});

describe("evidence", () => {
  test("of a pending check says what is known so far, of a finished one what was concluded", async () => {
    const app = start();
    const key = app.newKey();
    const posted = app.verify(key, "pending@any.example", "?timeout=1");
    await app.advance(1_000);
    const { id } = await posted;
    const early = await app.request("GET", `${PATH}/${id}/evidence`, { key });
    expect(early).toMatchObject({ status: 200, body: { conclusion: null, attempts: [] } });
    await app.advance(8_000);
    const late = await app.request("GET", `${PATH}/${id}/evidence`, { key });
    expect(late.body.conclusion).toMatchObject({ verdict: "deliverable", sub_status: "mailbox_exists" });
  });
});
