import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "bun:test";
import { createApps, TestApp } from "../testing/app.ts";
import { resultSchema, SUB_STATUSES, VERDICT_OF } from "./result.ts";

const PATH = "/v1/email-verifications";
const start = createApps();

const SIGNALS = [
  "syntax",
  "domain",
  "mx",
  "smtp",
  "catch_all",
  "role_account",
  "disposable",
  "dnsbl",
  "toxic",
  "greylisting",
];

describe("every sub_status is a trigger", () => {
  const spellings = SUB_STATUSES.flatMap((subStatus) => [
    [`${subStatus}@any.example`, subStatus] as const,
    [`${subStatus.replaceAll("_", "-")}@any.example`, subStatus] as const,
    [`${subStatus.toUpperCase()}@ANY.example`, subStatus] as const,
    [`${subStatus}+some-tag+more@any.example`, subStatus] as const,
  ]);

  // One for all: each row has a key of its own.
  const app = new TestApp();
  afterAll(() => app.close());

  test.each(spellings)("%s is %s", async (email, subStatus) => {
    const answer = await app.verify(app.newKey(), email);
    expect(answer).toMatchObject({
      status: 200,
      body: { status: "completed", result: { email, verdict: VERDICT_OF[subStatus], sub_status: subStatus } },
    });
    const { result } = answer.body as { result: Record<string, unknown> };
    expect(resultSchema.strict().safeParse(result).error).toBeUndefined();
    expect(Object.keys(result.signals as object)).toEqual(SIGNALS);
    expect(result.verified_at).toBe("2026-01-01T00:00:00.000Z");
  });

  test("anything else exists, with ten times pass", async () => {
    const app = start();
    const key = app.newKey();
    for (const email of [
      "someone@any.example",
      "mailbox@exists.example",
      "pending.not@any.example",
      "a+pending@b.example",
    ]) {
      const { body } = await app.verify(key, email);
      expect(body.result).toMatchObject({ verdict: "deliverable", sub_status: "mailbox_exists" });
      const { signals } = body.result as { signals: object };
      expect(Object.values(signals)).toEqual(SIGNALS.map(() => "pass"));
    }
  });

  test.each(["no address", "a@", "@b", "a@b@c", "a b@c.example", "mailbox_exists", "\ud800@b.example"])(
    "what is no address, such as %p, is a 200 and undeliverable",
    async (email) => {
      expect(await app.verify(app.newKey(), email)).toMatchObject({
        status: 200,
        body: { result: { verdict: "undeliverable", sub_status: "invalid_syntax" } },
      });
    },
  );

  test("the result object is the same at every call and at every reading; the verification is a new one", async () => {
    const app = start();
    const key = app.newKey();
    for (const subStatus of SUB_STATUSES) {
      const first = await app.verify(key, `${subStatus}@any.example`);
      await app.advance(3_600_000);
      const second = await app.verify(app.newKey(), `${subStatus}@any.example`);
      const read = await app.request("GET", `${PATH}/${first.id}`, { key });
      expect(second.body.result).toEqual(first.body.result);
      expect(read.body).toEqual(first.body);
      expect(second.id).not.toBe(first.id);
    }
  });
});

describe("the triggers that take their time", () => {
  test.each([
    ["pending", 8_000, "mailbox_exists"],
    ["never_answers", 3_000, "smtp_timeout"],
    ["never-answers", 3_000, "smtp_timeout"],
    ["PENDING+tag", 8_000, "mailbox_exists"],
  ])("%s@ is finished %i ms after the call, not earlier", async (local, afterMs, subStatus) => {
    const app = start();
    const key = app.newKey();
    const posted = app.verify(key, `${local}@any.example`, "?timeout=1");
    await app.advance(1_000);
    const { id, status } = await posted;
    expect(status).toBe(202);
    await app.advance(afterMs - 1_001);
    const before = app.request("GET", `${PATH}/${id}?timeout=1`, { key });
    await app.advance(0);
    await app.advance(1);
    expect((await before).body).toMatchObject({ status: "completed", result: { sub_status: subStatus } });
    const again = await app.request("GET", `${PATH}/${id}`, { key });
    expect(again.body).toEqual((await before).body);
    expect(again.body.result).toMatchObject({ verified_at: "2026-01-01T00:00:00.000Z" });
  });

  test("a POST that waits long enough answers 200 the moment it is finished", async () => {
    const app = start();
    let answered = false;
    const posted = app.verify(app.newKey(), "pending@any.example", "?timeout=90").finally(() => {
      answered = true;
    });
    await app.advance(7_999);
    expect(answered).toBe(false);
    await app.advance(1);
    expect((await posted).status).toBe(200);
  });

  test("202 says when to come back: poll_after_ms and the same wait as a time", async () => {
    const app = start();
    const key = app.newKey();
    const posted = app.verify(key, "pending@any.example", "?timeout=2");
    await app.advance(2_000);
    const answer = await posted;
    expect(answer.body).toEqual({
      id: answer.id,
      status: "pending",
      poll_after_ms: 6_000,
      next_retry_at: "2026-01-01T00:00:08.000Z",
    });
    expect(answer.headers.get("location")).toBe(`${PATH}/${answer.id}`);
    await app.advance(4_800);
    const polled = app.request("GET", `${PATH}/${answer.id}?timeout=1`, { key });
    await app.advance(1_000);
    expect((await polled).body).toEqual({
      id: answer.id,
      status: "pending",
      poll_after_ms: 500,
      next_retry_at: "2026-01-01T00:00:08.300Z",
    });
  });

  test("a restart in between loses none, and ends it at its time", async () => {
    const path = join(mkdtempSync(join(tmpdir(), "postwarden-")), "postwarden.db");
    const before = start({ path });
    const key = before.newKey();
    const posted = before.verify(key, "pending@any.example", "?timeout=1");
    await before.advance(1_000);
    const { id } = await posted;
    await before.service.verification.runner.stop();
    before.db.close();

    const after = start({ path });
    after.service.verification.runner.start();
    await after.advance(7_999);
    const early = after.request("GET", `${PATH}/${id}?timeout=1`, { key });
    await after.advance(0);
    expect(after.db.sqlite.query("SELECT status FROM verifications").get()).toEqual({ status: "pending" });
    await after.advance(1);
    expect((await early).body).toMatchObject({ id, status: "completed" });
    rmSync(dirname(path), { recursive: true });
  });
});

test("test keys are not charged, send no probe, and work without credits", async () => {
  const app = start();
  const key = app.newKey();
  app.newKey({ mode: "live" });
  app.leaveCredits(0);
  for (const subStatus of SUB_STATUSES) expect((await app.verify(key, `${subStatus}@any.example`)).status).toBe(200);
  expect(app.credits()).toEqual({ available: 0, held: 0 });
  expect(app.resolver.queries).toEqual([]);
});
