import { IngestionStore } from "../ingest/ingestion-store.ts";
import { afterEach, describe, expect, test } from "bun:test";
import { silentLog } from "../../../testing/silent-log.ts";
import { createLog } from "../../../foundation/base/log.ts";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import { openDb } from "../../../foundation/db/open.ts";
import { createTestClock, settle } from "../../../testing/clock.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import {
  createMailAuthentication,
  type MailToAuthenticate,
  notAuthenticated,
  type AuthenticationResults,
} from "./mail-authentication.ts";
import {
  AUTHENTICATIONS_AT_ONCE,
  AUTHENTICATIONS_A_RUN_MAX,
  AuthenticationJob,
  AuthenticationStore,
} from "./authentication-job.ts";

const HOUR_MS = 60 * 60_000;
const FINDING: AuthenticationResults = { ...notAuthenticated("Made up."), authenticity: "fail" };
const NO_ANSWER = notAuthenticated("The DNS did not answer.", { temporary: true });

const closers: Array<() => void> = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

type Answer = AuthenticationResults | Promise<AuthenticationResults>;

const newWorld = (answer: (mail: MailToAuthenticate) => Answer = () => FINDING) => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  const db = opened.value;
  closers.push(() => db.close());
  const clock = createTestClock();
  const logged: string[] = [];
  const log = createLog("info", clock, (line) => logged.push(line));
  const checked: MailToAuthenticate[] = [];
  const check = async (mail: MailToAuthenticate): Promise<AuthenticationResults> => {
    checked.push(mail);
    return await answer(mail);
  };
  const store = new AuthenticationStore(db);
  const { raw } = new IngestionStore(db);
  const deps = { store, findMail: (id: string) => raw.find(id), authenticate: check };
  const passes = new AuthenticationJob({ db, clock, log }, deps);

  /** A mail, and how many pending reports it brought. */
  const addMail = (
    id: string,
    { mode = "live" as KeyMode, reports = 1, bytes = Buffer.from(`mail ${id}`) } = {},
  ): void => {
    db.sqlite
      .query(
        `INSERT INTO dmarc_ingestions (id, account_id, mode, via, received_at_ms, bytes, client, helo, mail_from, status)
        VALUES (?, 'a', ?, 'smtp', ?, 1, '8.8.4.9', 'mx.example.com', 'b@example.com', 'done')`,
      )
      .run(id, mode, clock.nowMs());
    db.sqlite.query("INSERT INTO dmarc_raw (ingestion, bytes) VALUES (?, ?)").run(id, bytes);
    for (let n = 0; n < reports; n += 1) addReport(`${id}-${n}`, id);
  };
  const addReport = (
    id: string,
    ingestion: string,
    { isComplete = 1, authenticity = "pending" as string | null } = {},
  ): void =>
    void db.sqlite
      .query(
        `INSERT INTO dmarc_reports (id, domain, ingestion, begin_ms, end_ms, day, received_at_ms, policy_domain, policy, body, rows,
        messages, aligned, sameness, content, authenticity, is_complete)
        VALUES (?, 1, ?, 0, 1, 0, ?, 'example.com', '{}', '{}', 1, 1, 1, ?, 'c', ?, ?)`,
      )
      .run(id, ingestion, clock.nowMs(), id, authenticity, isComplete);
  const resultOf = (id: string): string | null =>
    db.sqlite
      .query<{ authenticity: string | null }, [string]>("SELECT authenticity FROM dmarc_reports WHERE id = ?")
      .get(id)?.authenticity ?? null;
  const bodyOf = (id: string): unknown => {
    const row = db.sqlite
      .query<{ body: string | null }, [string]>("SELECT authenticity_body AS body FROM dmarc_reports WHERE id = ?")
      .get(id);
    return JSON.parse(row?.body ?? "null");
  };
  const countPending = (): number =>
    db.sqlite.query<{ n: number }, []>("SELECT count(*) AS n FROM dmarc_reports WHERE authenticity = 'pending'").get()
      ?.n ?? 0;
  return { db, clock, passes, checked, logged, addMail, addReport, resultOf, bodyOf, countPending };
};

describe("a run", () => {
  test("authenticates a mail with its envelope, and stores the results", async () => {
    const world = newWorld();
    world.addMail("m");
    await world.passes.run();
    expect(world.checked).toMatchObject([
      {
        client: "8.8.4.9",
        helo: "mx.example.com",
        mailFrom: "b@example.com",
        receivedAtMs: world.clock.nowMs(),
      },
    ]);
    expect(Buffer.from(world.checked[0]?.bytes ?? []).toString()).toBe("mail m");
    expect(world.resultOf("m-0")).toBe("fail");
    expect(world.bodyOf("m-0")).toEqual(FINDING);
  });

  test("authenticates a mail once for all its reports, also when they are on different pages", async () => {
    const world = newWorld();
    world.addMail("m", { reports: 3 });
    world.addMail("n", { reports: 600 });
    world.addReport("m-late", "m");
    await world.passes.run();
    expect(world.checked.length).toBe(2);
    expect(world.countPending()).toBe(0);
    expect(world.resultOf("m-late")).toBe("fail");
  });

  test("ignores reports that are authenticated already, came in no mail, or are incomplete", async () => {
    const world = newWorld();
    world.addMail("m", { reports: 0 });
    world.addReport("judged", "m", { authenticity: "pass" });
    world.addReport("file", "m", { authenticity: null });
    world.addReport("half", "m", { isComplete: 0 });
    await world.passes.run();
    expect(world.checked).toEqual([]);
    expect(["judged", "file", "half"].map(world.resultOf)).toEqual(["pass", null, "pending"]);
  });

  test("authenticates a limited number of mails, and few at a time", async () => {
    let underWay = 0;
    let most = 0;
    const world = newWorld(async () => {
      most = Math.max(most, ++underWay);
      await settle();
      underWay -= 1;
      return FINDING;
    });
    for (let n = 0; n < AUTHENTICATIONS_A_RUN_MAX + 20; n += 1) world.addMail(`m${n}`);
    await world.passes.run();
    expect(most).toBe(AUTHENTICATIONS_AT_ONCE);
    expect(world.countPending()).toBe(20);
    await world.passes.run();
    expect(world.countPending()).toBe(0);
  });

  test("makes no DNS query for test keys", async () => {
    const world = newWorld();
    world.addMail("m", { mode: "test" });
    await world.passes.run();
    expect(world.checked).toEqual([]);
    expect(world.resultOf("m-0")).toBe("unknown");
  });

  test("stores unknown for a mail that is no longer kept", async () => {
    const world = newWorld();
    world.addMail("m");
    world.db.sqlite.run("DELETE FROM dmarc_raw");
    world.addReport("orphan", "gone");
    await world.passes.run();
    expect([world.resultOf("m-0"), world.resultOf("orphan")]).toEqual(["unknown", "unknown"]);
    expect(world.checked).toEqual([]);
  });
});

describe("while DNS queries fail, a report stays pending", () => {
  test("for three attempts, then it is unknown", async () => {
    const world = newWorld(() => NO_ANSWER);
    world.addMail("m");
    for (let minute = 0; minute < 180; minute += 1) {
      await world.passes.run();
      if (minute < 129) expect(world.resultOf("m-0")).toBe("pending");
      await world.clock.advance(60_000);
    }
    expect(world.checked.length).toBe(3);
    expect(world.resultOf("m-0")).toBe("unknown");
    expect(world.bodyOf("m-0")).toMatchObject({ message: NO_ANSWER.message });
  });

  test("until a query succeeds", async () => {
    const answers = [NO_ANSWER, FINDING];
    const world = newWorld(() => answers.shift() ?? FINDING);
    world.addMail("m");
    await world.passes.run();
    await world.clock.advance(HOUR_MS);
    await world.passes.run();
    expect(world.resultOf("m-0")).toBe("fail");
  });

  test("only for a day after it arrived", async () => {
    const world = newWorld(() => NO_ANSWER);
    world.addMail("m");
    await world.clock.advance(24 * HOUR_MS);
    await world.passes.run();
    expect(world.resultOf("m-0")).toBe("unknown");
  });

  test("and does not delay others", async () => {
    const world = newWorld(({ bytes }) => (Buffer.from(bytes).toString() === "mail good" ? FINDING : NO_ANSWER));
    for (let n = 0; n < AUTHENTICATIONS_A_RUN_MAX; n += 1) world.addMail(`m${n}`);
    world.addMail("good");
    await world.passes.run();
    expect(world.resultOf("good-0")).toBe("pending");
    await world.passes.run();
    expect(world.resultOf("good-0")).toBe("fail");
  });
});

describe("a failing run", () => {
  test("logs a bug, and authenticates the others", async () => {
    const world = newWorld(({ bytes }) => {
      if (Buffer.from(bytes).toString() === "mail bad") throw new Error("bug");
      return FINDING;
    });
    world.addMail("bad");
    world.addMail("good");
    await world.passes.run();
    expect([world.resultOf("bad-0"), world.resultOf("good-0")]).toEqual(["pending", "fail"]);
    expect(world.logged.join()).toContain("a report mail could not be authenticated");
  });

  test("says that results could not be stored, and stores them in a later one", async () => {
    const world = newWorld();
    world.addMail("m");
    world.db.sqlite.run("PRAGMA query_only = ON");
    await world.passes.run();
    world.db.sqlite.run("PRAGMA query_only = OFF");
    expect(world.resultOf("m-0")).toBe("pending");
    expect(world.logged.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "error",
        message: "the authentication results of a report mail could not be stored; it is tried again",
        ingestion: "m",
      },
    ]);
    await world.clock.advance(HOUR_MS);
    await world.passes.run();
    expect([world.resultOf("m-0"), world.logged.length]).toEqual(["fail", 1]);
  });

  test("does not try a mail for ever over which a bug rejects", async () => {
    const world = newWorld(() => Promise.reject(new Error("bug")));
    world.addMail("bad");
    for (let run = 0; run < 5; run += 1) {
      await world.passes.run();
      await world.clock.advance(3 * 60 * 60_000);
    }
    expect(world.checked).toHaveLength(3);
    expect(world.bodyOf("bad-0")).toMatchObject({ authenticity: "unknown", temporary: true });
  });

  test("ends at once when the service stops, and writes nothing more", async () => {
    const late = Promise.withResolvers<AuthenticationResults>();
    const world = newWorld(() => late.promise);
    for (let n = 0; n < 10; n += 1) world.addMail(`m${n}`);
    const running = world.passes.run();
    await settle();
    world.passes.stop();
    await running;
    late.resolve(FINDING);
    await settle();
    expect(world.checked.length).toBe(AUTHENTICATIONS_AT_ONCE);
    expect(world.countPending()).toBe(10);
  });
});

test("a forged mail is detected, end to end", async () => {
  const resolver = createZoneResolver({
    "_dmarc.example.com": { TXT: ["v=DMARC1; p=none"] },
    "example.com": { TXT: ["v=spf1 -all"] },
  });
  const examine = createMailAuthentication({ log: silentLog, resolver, clock: createTestClock() });
  const world = newWorld(examine);
  world.addMail("m", { bytes: Buffer.from("From: reports@example.com\r\nSubject: x\r\n\r\nx\r\n") });
  await world.passes.run();
  expect(world.bodyOf("m-0")).toMatchObject({
    authenticity: "fail",
    from: "example.com",
    spf: { result: "fail", domain: "example.com" },
    dmarc: { result: "fail", policy: "none" },
  });
});
