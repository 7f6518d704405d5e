import { describe, expect, test } from "bun:test";
import { createDmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import type { Advice } from "../../insight/advice/advice-model.ts";
import type { Advisor } from "../../insight/advice/advisor.ts";
import { OverviewJob } from "./overview-job.ts";
import { DomainOverviewStore } from "./domain-overview-store.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const newHarness = createDmarcAlertHarness();

const advice = (next: Advice["next"] = null): Advice => ({
  ...{ stage: "monitoring", ready: false, requirements: [], notes: [], obstacles: [] },
  ...{ next, not_before: null, unauthenticated_percent: null },
});

const start = (advise: Advisor = async () => advice()) => {
  const harness = newHarness();
  const { db, clock, log, domains, reading: rollups } = harness;
  const store = new DomainOverviewStore(db);
  const advised: string[] = [];
  const job = new OverviewJob(
    { db, clock, log },
    {
      ...{ store, rollups, domains },
      advise: (domain) => {
        advised.push(domain.domain);
        return advise(domain);
      },
    },
  );
  return { ...harness, store, job, advised };
};

const OWN = "192.0.2.1 example.com/mail example.com -";
const SERVICE = "198.51.100.7 -/- bounces.sendgrid.net -";

describe("the overview of a domain", () => {
  test("has the counts of 7 and 30 days, and null for a day that no report covers", async () => {
    const { add, report, reverse, today, job, store } = start();
    const { number } = add("example.com");
    reverse("192.0.2.1", "mail.example.com");
    reverse("198.51.100.7", "o1.sendgrid.net");
    report(number, today - 29, OWN, { messages: 40, aligned: 40 });
    report(number, today - 30, OWN, { messages: 1_000, aligned: 1_000 });
    report(number, today - 6, OWN, { messages: 10, aligned: 9 });
    report(number, today - 7, OWN, { messages: 5, aligned: 5 });
    report(number, today, SERVICE, { messages: 3, authenticated: 3 });
    await job.run();
    const overview = store.read(number);
    expect(overview).toMatchObject({
      messages7: 13,
      aligned7: 9,
      messagesBefore7: 5,
      alignedBefore7: 5,
      messages30: 58,
      aligned30: 54,
      actionable30: 4,
    });
    expect(overview?.messages).toHaveLength(30);
    expect(overview?.messages.map((count, index) => [index, count]).filter(([, count]) => count !== null)).toEqual([
      [0, 40],
      [22, 5],
      [23, 10],
      [29, 3],
    ]);
    expect(overview?.failing[23]).toBe(1);
  });

  test("forwarded and forged mail is no failure that somebody must act on", async () => {
    const { add, report, reverse, today, job, store } = start();
    const { number } = add("example.com");
    reverse("203.0.113.9", null);
    report(number, today, "203.0.113.9 -/- - -", { messages: 500 });
    report(number, today, OWN, { messages: 20, aligned: 10, forwarded: 8 });
    await job.run();
    expect(store.read(number)).toMatchObject({ messages30: 520, actionable30: 2 });
  });

  test("names the source of the next step", async () => {
    const { add, report, reverse, today, job, store } = start(async () =>
      advice({ action: "fix_sources", record: null, why: "It fails.", source: "service:sendgrid", steps: [] }),
    );
    const { number } = add("example.com");
    reverse("198.51.100.7", "o1.sendgrid.net");
    report(number, today, SERVICE, { messages: 3, authenticated: 3 });
    await job.run();
    expect(store.read(number)?.next).toEqual({
      ...{ action: "fix_sources", why: "It fails.", source: "service:sendgrid" },
      sourceName: "SendGrid",
    });
  });

  test("of another version is no overview", () => {
    const { db, add, store } = start();
    const { number } = add("example.com");
    db.sqlite.run("INSERT INTO dmarc_overviews VALUES (?, 1, 0, 0, 0, 0, 0, '{}', NULL, NULL)", [number]);
    expect(store.read(number)).toBeNull();
  });
});

describe("a domain is summed up", () => {
  test("when it is new, and then once a day", async () => {
    const { add, job, clock, advised } = start();
    add("example.com");
    await clock.advance(MINUTE_MS);
    await job.run();
    await job.run();
    expect(advised).toEqual(["example.com"]);
    await clock.advance(11 * HOUR_MS);
    await job.run();
    expect(advised).toHaveLength(1);
    await clock.advance(HOUR_MS);
    await job.run();
    expect(advised).toHaveLength(2);
  });

  test("a minute after its reports have arrived, and every ten minutes while they keep arriving", async () => {
    const { add, job, clock, advised, arrive } = start();
    const { number } = add("example.com");
    await clock.advance(MINUTE_MS);
    await job.run();
    arrive(number);
    await clock.advance(MINUTE_MS / 2);
    await job.run();
    expect(advised).toHaveLength(1);
    await clock.advance(MINUTE_MS / 2);
    await job.run();
    await job.run();
    expect(advised).toHaveLength(2);
    for (let minute = 0; minute < 11; minute++) {
      await clock.advance(MINUTE_MS);
      arrive(number);
      await job.run();
    }
    expect(advised).toHaveLength(3);
  });

  test.each([
    [
      "a setting changed",
      ({ db, domains, clock }: ReturnType<typeof start>, number: number) =>
        db.transact((tx) => domains.update(tx, number, { updatedAtMs: clock.nowMs() })),
    ],
    [
      "a source was classified",
      ({ db, reading, clock }: ReturnType<typeof start>, number: number) =>
        db.transact((tx) =>
          reading.setUserClassification(tx, number, {
            key: "own",
            classification: "threat",
            atMs: clock.nowMs(),
            note: null,
          }),
        ),
    ],
  ])("when %s since", async (_, change) => {
    const started = start();
    const { add, job, clock, advised } = started;
    const { number } = add("example.com");
    await clock.advance(MINUTE_MS);
    await job.run();
    await clock.advance(MINUTE_MS);
    change(started, number);
    await clock.advance(MINUTE_MS);
    await job.run();
    await job.run();
    expect(advised).toHaveLength(2);
  });

  test("although another one fails, which is logged and retried", async () => {
    const failing = new Set(["broken.example"]);
    const { add, job, store, logged } = start(async ({ domain }) => {
      if (failing.has(domain)) throw new Error("bug");
      return advice();
    });
    const [broken, sound] = [add("broken.example"), add("sound.example")];
    await job.run();
    expect([store.read(broken.number), store.read(sound.number)]).toEqual([null, expect.anything()]);
    expect(logged).toHaveLength(1);
    failing.clear();
    await job.run();
    expect(store.read(broken.number)).not.toBeNull();
  });

  test("no more after the stop, nor when it was deleted meanwhile", async () => {
    const { add, job, store, db, domains, advised } = start(async ({ number }) => {
      db.transact((tx) => domains.markDeleted(tx, number, 1));
      return advice();
    });
    const { number } = add("example.com");
    await job.run();
    expect([advised.length, store.read(number)]).toEqual([1, null]);
    add("example.net");
    job.stop();
    await job.run();
    expect(advised).toHaveLength(1);
  });
});
