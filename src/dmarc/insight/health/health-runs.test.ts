import { describe, expect, test } from "bun:test";
import { createLog } from "../../../foundation/base/log.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { SAMPLE_DAY_S } from "../../../testing/dmarc-reports.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createIngestHarness, insertDomain } from "../../../testing/ingest-harness.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import type { DomainHealth } from "./health-schema.ts";
import { HealthJob, HEALTH_FRESH_MS, HealthRuns } from "./health.ts";
import { HealthStore } from "./health-store.ts";
import { RecordHistoryStore } from "./record-history.ts";

const newWorld = createIngestHarness();
const problem = (message: string, severity: "error" | "info") => ({
  ...{ code: "dane_unusable" as const, severity, message, observed: null, fix: null },
  ...{ record: null, last_known_at: null },
});
const HOUR_MS = 3_600_000;
const ASK = { refresh: false, selectors: [], priority: "realtime" } as const;

const start = () => {
  const clock = createTestClock(SAMPLE_DAY_S * 1000);
  const { db } = newWorld({ clock });
  const logged: string[] = [];
  const store = new HealthStore(db);
  const checked: string[] = [];
  const state: { unchecked: string[]; problem: string | null; gate: Promise<void> | null; fails: boolean } = {
    unchecked: [],
    problem: null,
    gate: null,
    fails: false,
  };
  const check = async ({
    domain,
    selectors,
  }: {
    domain: string;
    selectors: readonly { selector: string }[];
  }): Promise<DomainHealth> => {
    checked.push([domain, ...selectors.map(({ selector }) => selector)].join(" "));
    await state.gate;
    if (state.fails) throw new Error("a bug");
    const made = state.problem;
    const findings = made === null ? [] : [problem(made, made === "note" ? "info" : "error")];
    return {
      domain,
      checked_at: new Date(clock.nowMs()).toISOString(),
      status: "ok",
      sections: [{ code: "mx", status: "ok", findings, unchecked: state.unchecked, hosts: [], null_mx: false }],
    };
  };
  const runs = new HealthRuns(
    { db, clock },
    {
      store,
      history: new RecordHistoryStore(db),
      check,
      resolver: createZoneResolver({}),
      domains: { testAddressOf: () => "token@reports.example" },
    },
  );
  const log = createLog("info", clock, (line) => logged.push(line));
  const job = new HealthJob({ db, clock, log }, { store, runs });
  return {
    db,
    clock,
    store,
    checked,
    state,
    runs,
    job,
    logged,
    enrol: (name: string, change = {}) => insertDomain(db, name, change),
  };
};

describe("the last result", () => {
  test("is read however old it is, without a check; of a test domain it is made up", async () => {
    const { runs, enrol, clock, checked } = start();
    const domain = enrol("example.com");
    expect(await runs.lastOf(domain)).toBeNull();
    const health = await runs.healthOf(domain, ASK);
    await clock.advance(100 * HOUR_MS);
    expect(await runs.lastOf(domain)).toEqual(health);
    expect(checked).toEqual(["example.com"]);
    const made = await runs.lastOf({ ...domain, mode: "test" });
    expect(made?.sections.map(({ code }) => code)).toContain("bimi");
    expect(made?.sections).toContainEqual(
      expect.objectContaining({ code: "dmarc", record: "v=DMARC1; p=none; rua=mailto:token@reports.example" }),
    );
    expect(checked).toHaveLength(1);
  });
});

describe("on request", () => {
  test("a result is stored, returned for ten minutes, and checked again with refresh", async () => {
    const { runs, enrol, checked, clock, store } = start();
    const domain = enrol("a.com");
    expect(store.readHealth(domain.number)).toBeNull();
    const first = await runs.healthOf(domain, ASK);
    expect(store.readHealth(domain.number)).toEqual(first);
    await clock.advance(HEALTH_FRESH_MS - 1);
    expect(await runs.healthOf(domain, ASK)).toEqual(first);
    expect(checked).toHaveLength(1);
    await runs.healthOf(domain, { ...ASK, refresh: true });
    expect(checked).toHaveLength(2);
    await clock.advance(HEALTH_FRESH_MS);
    await runs.healthOf(domain, ASK);
    expect(checked).toHaveLength(3);
  });

  test("with selectors it is checked with them, and not kept", async () => {
    const { runs, enrol, checked, store } = start();
    const domain = enrol("a.com");
    await runs.healthOf(domain, { ...ASK, selectors: ["Mail", "mail", "k1"] });
    expect(checked).toEqual(["a.com mail k1"]);
    expect(store.readHealth(domain.number)).toBeNull();
  });

  test("a request during a run joins that run", async () => {
    const { runs, enrol, checked } = start();
    const domain = enrol("a.com");
    const both = await Promise.all([runs.healthOf(domain, ASK), runs.healthOf(domain, { ...ASK, refresh: true })]);
    expect(both[0]).toBe(both[1]);
    expect(checked).toHaveLength(1);
  });

  test("too many at a time are refused, until one ends", async () => {
    const { runs, enrol, state } = start();
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const domains = Array.from({ length: 20 }, (_, at) => enrol(`d${at}.com`, { accountId: `account${at}` }));
    const asked = domains.map((domain) => runs.healthOf(domain, ASK));
    const settled = Promise.allSettled(asked);
    gate.resolve();
    const refused = (await settled).filter(({ status }) => status === "rejected");
    expect(refused).toHaveLength(12);
    expect(refused[0]).toMatchObject({ reason: { code: "unavailable" } });
    for (const domain of domains) await runs.healthOf(domain, ASK);
  });

  test("one account leaves places to others", async () => {
    const { runs, enrol, state } = start();
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const mine = Array.from({ length: 20 }, (_, at) => runs.healthOf(enrol(`d${at}.com`), ASK));
    const settled = Promise.allSettled(mine);
    const other = runs.healthOf(enrol("other.com", { accountId: "other" }), ASK);
    gate.resolve();
    expect(await other).toMatchObject({ domain: "other.com" });
    expect((await settled).filter(({ status }) => status === "fulfilled").length).toBeLessThan(8);
  });

  test("a domain that was deleted meanwhile leaves nothing behind", async () => {
    const { runs, enrol, db, state } = start();
    const domain = enrol("a.com");
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const running = runs.healthOf(domain, ASK);
    db.sqlite.run("UPDATE dmarc_domains SET deleted_at_ms = 1");
    gate.resolve();
    await running;
    expect(db.sqlite.query("SELECT * FROM dmarc_health").all()).toEqual([]);
  });

  test("a result that another version wrote is none", async () => {
    const { runs, enrol, db, store, checked } = start();
    const domain = enrol("a.com");
    await runs.healthOf(domain, ASK);
    db.sqlite.run(`UPDATE dmarc_health SET body = '{"status":"splendid"}'`);
    expect(store.readHealth(domain.number)).toBeNull();
    await runs.healthOf(domain, ASK);
    expect(checked).toHaveLength(2);
  });
});

describe("daily", () => {
  test("every live domain is checked within a day and a day later again, paused ones when they are resumed", async () => {
    const { job, enrol, checked, clock, db } = start();
    enrol("a.com");
    enrol("paused.com", { monitoringEnabled: false });
    enrol("test.example", { mode: "test" });
    enrol("gone.com", { deletedAtMs: 1 });
    await job.run();
    expect(checked).toEqual(["a.com"]);
    await clock.advance(23 * HOUR_MS);
    enrol("b.com");
    await job.run();
    expect(checked).toEqual(["a.com", "b.com"]);
    db.sqlite.run("UPDATE dmarc_domains SET monitoring_enabled = 1");
    await clock.advance(HOUR_MS);
    await job.run();
    expect(checked.slice(2).sort()).toEqual(["a.com", "paused.com"]);
  });

  test("a domain that was checked on request before the first run of the job delays no other check", async () => {
    const { job, runs, enrol, checked } = start();
    enrol("a.com");
    await runs.healthOf(enrol("b.com"), ASK);
    await job.run();
    expect(checked).toEqual(["b.com", "a.com"]);
  });

  test("many new ones are spread over a day", async () => {
    const { job, enrol, checked, clock } = start();
    for (let at = 0; at < 100; at += 1) enrol(`d${at}.com`);
    await job.run();
    expect(checked.length).toBeLessThan(20);
    for (let hour = 0; hour < 24; hour += 1) {
      await clock.advance(HOUR_MS);
      await job.run();
    }
    expect(new Set(checked).size).toBe(100);
  });

  test("that finds other problems makes the overview due, which has the next step", async () => {
    const { db, clock, enrol, job, state } = start();
    const [{ number }, other] = [enrol("example.com"), enrol("other.example")];
    const overviewDue = async (problem: string | null) => {
      state.problem = problem;
      const nowMs = clock.nowMs();
      db.sqlite.run(
        `INSERT OR REPLACE INTO dmarc_overviews (domain, computed_at_ms, messages_7, aligned_7, messages_30, aligned_30, actionable_30, body)
          SELECT number, ?, 0, 0, 0, 0, 0, '{}' FROM dmarc_domains`,
        [nowMs],
      );
      db.sqlite.run("UPDATE dmarc_health SET due_at_ms = CASE domain WHEN ? THEN 0 ELSE due_at_ms END", [number]);
      await job.run();
      const computedAt = db.sqlite.query<{ ms: number }, [number]>(
        "SELECT computed_at_ms ms FROM dmarc_overviews WHERE domain = ?",
      );
      expect(computedAt.get(other.number)?.ms).toBe(nowMs);
      const ms = computedAt.get(number)?.ms ?? 0;
      expect([nowMs, dayOfTime(nowMs) * 24 * HOUR_MS - 1]).toContain(ms);
      return ms < nowMs;
    };
    await job.run();
    await clock.advance(24 * HOUR_MS);
    await job.run();
    await clock.advance(HOUR_MS);
    const due: boolean[] = [];
    for (const problem of [null, "no MX", "no MX", "no address", "note", null]) due.push(await overviewDue(problem));
    expect(due).toEqual([false, true, false, true, true, false]);
  });

  test("what the DNS did not respond to is checked again after two hours", async () => {
    const { job, enrol, checked, clock, state } = start();
    enrol("a.com");
    state.unchecked = ["Could not be checked."];
    await job.run();
    await clock.advance(2 * HOUR_MS);
    await job.run();
    expect(checked).toHaveLength(2);
  });

  test("a bug about one domain is logged, stops no other, and is tried again later", async () => {
    const { job, enrol, checked, clock, state, logged } = start();
    enrol("a.com");
    enrol("b.com");
    state.fails = true;
    await job.run();
    expect(checked).toHaveLength(2);
    expect(logged).toHaveLength(2);
    await job.run();
    expect(checked).toHaveLength(2);
    await clock.advance(HOUR_MS);
    await job.run();
    expect(checked).toHaveLength(4);
  });

  test("none begins when the service stops", async () => {
    const { job, runs, enrol, checked } = start();
    const domain = enrol("a.com");
    await runs.stop();
    await job.run();
    expect(checked).toEqual([]);
    await expect(runs.healthOf(domain, ASK)).rejects.toMatchObject({ code: "unavailable" });
  });
});
