import { describe, expect, test } from "bun:test";
import { createApps, ENDLESS, type TestApp } from "../testing/app.ts";
import type { Zone } from "../testing/dns-zone.ts";
import { createStubs } from "../testing/smtp-dial.ts";
import type { SmtpStubScript } from "../testing/smtp-stub.ts";

const PATH = "/v1/email-verifications";
const start = createApps();
const startStub = createStubs();

const ZONE: Zone = {
  "shop.example.com": { MX: [[10, "mx.example.com"]] },
  "mx.example.com": { A: ["127.0.0.1"] },
  "null.example.com": { MX: [[0, ""]] },
  "broken.example.com": "servfail",
  "nomail.example.com": { TXT: [] },
};

const startWith = (script: SmtpStubScript, settings: Record<string, string> = {}): TestApp =>
  start({ zone: ZONE, stub: startStub(script), settings: { GREYLIST_RETRIES_S: "60", ...settings } });

const refusesOthers: SmtpStubScript = {
  rcpt: (address) => (address.startsWith("anna@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown"),
};

/** The ledger's entries in their order, each as its kind. */
const kindsOf = (app: TestApp): string[] =>
  app.db.sqlite
    .query<{ kind: string }, []>("SELECT kind FROM ledger ORDER BY id")
    .all()
    .map(({ kind }) => kind);

describe("a live check that a server answers costs one credit", () => {
  test.each([
    ["anna@shop.example.com", "mailbox_exists", refusesOthers],
    ["bert@shop.example.com", "mailbox_not_found", refusesOthers],
    ["anna@shop.example.com", "catch_all", {}],
    ["anna@nowhere.example.com", "domain_not_found", {}],
    ["anna@null.example.com", "null_mx", {}],
    ["anna@nomail.example.com", "no_mail_server", {}],
    ["not an address", "invalid_syntax", {}],
  ] as const)("%s is %s", async (email, subStatus, script) => {
    const app = startWith(script);
    const answer = await app.verify(app.newKey({ mode: "live" }), email);
    expect(answer).toMatchObject({ status: 200, body: { status: "completed", result: { sub_status: subStatus } } });
    expect(app.credits()).toEqual({ available: 99, held: 0 });
    expect(kindsOf(app)).toEqual(["grant", "settle"]);
    expect(app.service.accounts.ledger.sum(app.accountId())).toEqual({ available: 99, held: 0 });
  });
});

describe("a check that no mail server answered is free", () => {
  /** Orders a check and moves the clock on until no retry is left. */
  const finish = async (app: TestApp, email: string) => {
    const key = app.newKey({ mode: "live" });
    const posted = app.verify(key, email, "?timeout=1");
    for (let minute = 0; minute < 40; minute++) await app.advance(60_000);
    const { id } = await posted;
    return app.request("GET", `${PATH}/${id}`, { key });
  };

  test("dns_error", async () => {
    const app = start({ zone: ZONE, settings: { GREYLIST_RETRIES_S: "1" } });
    expect((await finish(app, "anna@broken.example.com")).body.result).toMatchObject({
      verdict: "risky",
      sub_status: "dns_error",
    });
    expect(kindsOf(app)).toEqual(["grant", "hold", "release"]);
    expect(app.credits()).toEqual({ available: 100, held: 0 });
  });

  test("smtp_unreachable", async () => {
    const app = start({
      zone: { ...ZONE, "mx.example.com": { A: ["8.8.8.8"] } },
      settings: { GREYLIST_RETRIES_S: "1" },
    });
    expect((await finish(app, "anna@shop.example.com")).body.result).toMatchObject({
      verdict: "risky",
      sub_status: "smtp_unreachable",
    });
    expect(kindsOf(app)).toEqual(["grant"]);
    expect(app.credits()).toEqual({ available: 100, held: 0 });
  });
});

describe("a greylisted check", () => {
  const greylistOnce = (): SmtpStubScript => {
    let asked = 0;
    return {
      rcpt: (address) => {
        if (asked++ < 2) return "450 4.2.0 Greylisted, please come back later";
        return address.startsWith("anna@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown";
      },
    };
  };

  test("is pending with the time of its retry, holds one credit, and ends by the retry", async () => {
    const app = startWith(greylistOnce());
    const key = app.newKey({ mode: "live" });
    const stubbed = app.verify(key, "anna@shop.example.com", "?timeout=90");
    await retryIsPlanned(app);
    const waiting = app.request("GET", PATH, { key });
    const [row] = (await waiting).body.verifications as Array<Record<string, unknown>>;
    const pollAfterMs = Number(row?.poll_after_ms);
    expect(row?.status).toBe("pending");
    expect(pollAfterMs).toBeGreaterThanOrEqual(60_000);
    expect(pollAfterMs).toBeLessThan(65_000);
    expect(Date.parse(String(row?.next_retry_at))).toBe(app.clock.nowMs() + pollAfterMs);
    expect(app.credits()).toEqual({ available: 99, held: 1 });
    await app.advance(60_000);
    expect(await stubbed).toMatchObject({ status: 200, body: { result: { sub_status: "mailbox_exists" } } });
    expect(kindsOf(app)).toEqual(["grant", "hold", "settle"]);
    const { id } = await stubbed;
    const { body } = await app.request("GET", `${PATH}/${id}/evidence`, { key });
    expect(body).toMatchObject({
      retries: [{ reason: "greylisted", waited_for: "schedule" }],
      conclusion: { sub_status: "mailbox_exists" },
    });
    expect(body.attempts).toHaveLength(2);
  });

  /** Yields to the event loop until the first attempt has been made and its retry is stored. */
  const retryIsPlanned = async (app: TestApp): Promise<void> => {
    const planned = app.db.sqlite.query("SELECT 1 FROM verifications WHERE attempts > 0");
    for (let turn = 0; turn < 100_000 && planned.get() === null; turn++) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(planned.get()).not.toBeNull();
  };
});

describe("without credits", () => {
  test("402 says what is required and available; nothing is recorded, held or probed", async () => {
    const app = start(ENDLESS);
    const key = app.newKey({ mode: "live" });
    app.leaveCredits(1);
    const first = app.verify(key, "one@example.com", "?timeout=1");
    await app.advance(1_000);
    expect((await first).status).toBe(202);
    const asked = app.resolver.queries.length;
    const refused = await app.verify(key, "two@example.com");
    expect(refused).toMatchObject({
      status: 402,
      body: {
        error: "insufficient_credits",
        required: 1,
        available: 0,
        message: "Insufficient credits: 1 required, 0 available.",
      },
    });
    expect(app.countVerifications()).toBe(1);
    expect(app.resolver.queries).toHaveLength(asked);
    expect(app.credits()).toEqual({ available: 0, held: 1 });
    app.service.accounts.accounts.grantCredits("main", 1, "test");
    const again = app.verify(key, "two@example.com", "?timeout=1");
    await app.advance(1_000);
    expect((await again).status).toBe(202);
  });

  test("a malformed address costs its credit too", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    app.leaveCredits(0);
    expect((await app.verify(key, "not an address")).status).toBe(402);
  });

  test("requests at the same moment never spend more than there is", async () => {
    const app = start();
    const key = app.newKey({ mode: "live" });
    app.leaveCredits(3);
    const posted = Array.from({ length: 10 }, (_, n) => app.verify(key, `not an address ${n}`));
    const statuses = (await Promise.all(posted)).map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, 200, 200, 402, 402, 402, 402, 402, 402, 402]);
    expect(app.credits()).toEqual({ available: 0, held: 0 });
  });
});
