import { describe, expect, test } from "bun:test";
import { err, ok } from "../../foundation/base/errors.ts";
import { emptyResponse, type DnsResolver } from "../../foundation/net/dns.ts";
import { NO_CAPABILITIES } from "../../foundation/net/smtp-handshake.ts";
import type { SmtpSession } from "../../foundation/net/smtp-session.ts";
import { createTestClock } from "../../testing/clock.ts";
import { failureOf, OK, question, replyOf } from "../../testing/probe-pool.ts";
import { Metrics, TICK_MS } from "./metrics.ts";
import { exerciseActivity, exerciseMetrics, FULL_STATE, STATE_NOW_MS } from "../../testing/metrics.ts";
import type { ServiceState } from "./state-metrics.ts";

/** The samples of a text: name and labels → value. */
const samplesOf = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), line.slice(line.lastIndexOf(" ") + 1)]),
  );

const scrape = async (metrics: Metrics, change: Partial<ServiceState> = {}) =>
  samplesOf(await metrics.render({ ...FULL_STATE, ...change }));

describe("gauges", () => {
  test("show the state, with ages in seconds", async () => {
    expect(await scrape(new Metrics(createTestClock()))).toMatchObject({
      'postwarden_build_info{version="1.2.3"}': "1",
      postwarden_ready: "1",
      postwarden_findings: "2",
      postwarden_smtp_connections: "3",
      postwarden_smtp_waiting_probes: "4",
      postwarden_smtp_hosts: "5",
      postwarden_smtp_cooldowns: "6",
      postwarden_webhook_queues_sending: "7",
      'postwarden_verifications_running{source="single"}': "8",
      'postwarden_verifications_running{source="list"}': "9",
      'postwarden_blocklist_usable{list="one"}': "1",
      'postwarden_blocklist_usable{list="two"}': "0",
      postwarden_verifications_pending: "10",
      postwarden_reports_pending: "11",
      'postwarden_credits_balance{state="available"}': "12",
      'postwarden_credits_balance{state="held"}': "13",
      'postwarden_bulk_jobs{status="running"}': "2",
      'postwarden_bulk_jobs{status="queued"}': "0",
      'postwarden_bulk_rows_left{status="running"}': "1000",
      postwarden_reports_oldest_pending_seconds: "1.5",
      postwarden_webhook_oldest_pending_seconds: "0",
      postwarden_webhook_overdue_seconds: "0",
      postwarden_blocklist_check_overdue_seconds: "60",
      postwarden_database_size_bytes: "1",
      postwarden_database_wal_size_bytes: "2",
      postwarden_disk_free_bytes: "3",
      postwarden_disk_size_bytes: "4",
    });
  });

  test("are absent when the value is not known, also after it was known", async () => {
    const metrics = new Metrics(createTestClock());
    const known = await scrape(metrics, { outage: "dns_unavailable" });
    expect(known['postwarden_outage{reason="dns_unavailable"}']).toBe("1");
    const unknown = await scrape(metrics, { backlog: null, usage: null, blocklists: new Map(), isReady: false });
    const gone = Object.keys(known).filter((name) => !(name in unknown));
    expect(gone).toContain("postwarden_verifications_pending");
    expect(gone).toContain("postwarden_database_size_bytes");
    expect(gone).toContain('postwarden_blocklist_usable{list="two"}');
    expect(gone).toContain('postwarden_outage{reason="dns_unavailable"}');
    expect(unknown.postwarden_ready).toBe("0");
  });
});

test("every metric has a sample once everything has happened", async () => {
  const metrics = new Metrics(createTestClock());
  await exerciseMetrics(metrics);
  const text = await metrics.render({ ...FULL_STATE, outage: "dns_unavailable" });
  const names = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(40);
  expect(names.filter((name) => !new RegExp(`^${name}(_bucket)?[{ ]`, "m").test(text))).toEqual([]);
});

describe("counters of what was stored", () => {
  test("count by mode and outcome, and from zero", async () => {
    const metrics = new Metrics(createTestClock());
    const { activity } = metrics;
    const before = await scrape(metrics);
    for (const move of ["grant", "hold", "settle", "release"])
      expect(before[`postwarden_credits_total{move="${move}"}`]).toBe("0");
    expect(before['postwarden_webhook_attempts_total{mode="live",outcome="failed"}']).toBe("0");
    exerciseActivity(activity);
    expect(await scrape(metrics)).toMatchObject({
      'postwarden_verifications_total{mode="test",source="list",verdict="risky",sub_status="catch_all"}': "1",
      'postwarden_credits_total{move="hold"}': "100",
      'postwarden_reports_total{mode="live",via="smtp",outcome="rejected",reason="not_authentic"}': "1",
      'postwarden_reports_total{mode="live",via="upload",outcome="stored",reason=""}': "1",
      'postwarden_blocklist_checks_total{mode="live",trigger="schedule",status="listed"}': "1",
      'postwarden_webhook_attempts_total{mode="live",outcome="retry"}': "1",
      'postwarden_webhook_attempts_total{mode="live",outcome="delivered"}': "1",
      'postwarden_webhook_delivery_seconds_sum{mode="live"}': "4",
      'postwarden_webhook_delivery_seconds_count{mode="live"}': "1",
    });
  });

  test("requests: an unknown method does not become a label", async () => {
    const metrics = new Metrics(createTestClock());
    metrics.countRequest("GET", 200);
    metrics.countRequest("BREW", 405);
    expect(await scrape(metrics)).toMatchObject({
      'postwarden_http_requests_total{method="GET",status="200"}': "1",
      'postwarden_http_requests_total{method="other",status="405"}': "1",
    });
  });
});

describe("network", () => {
  test("DNS queries by outcome; the time of cached responses does not count", async () => {
    const clock = createTestClock();
    const metrics = new Metrics(clock);
    const cached: boolean[] = [false, true];
    const inner: DnsResolver = {
      async resolve(name, type) {
        const fromCache = cached.shift() === true;
        if (!fromCache) await clock.advance(300);
        return { ...emptyResponse(name, type, "servfail"), fromCache };
      },
    };
    const resolver = metrics.network.watchResolver(inner);
    expect(await resolver.resolve("example.com", "MX")).toMatchObject({ name: "example.com", outcome: "servfail" });
    await resolver.resolve("example.com", "MX");
    expect(await scrape(metrics)).toMatchObject({
      'postwarden_dns_queries_total{type="MX",outcome="servfail",cached="false"}': "1",
      'postwarden_dns_queries_total{type="MX",outcome="servfail",cached="true"}': "1",
      postwarden_dns_query_seconds_sum: "0.3",
      postwarden_dns_query_seconds_count: "1",
    });
  });

  const sessionOf = (rcpt: string): SmtpSession & { closed: number } => ({
    closed: 0,
    capabilities: NO_CAPABILITIES,
    ...{ transcript: [], tls: true, usable: true },
    probe: async () => ({ mail: OK, rcpts: [replyOf(rcpt), null], failure: failureOf("closed", "rcpt") }),
    close() {
      this.closed++;
    },
  });

  test("a session counts its replies, failures and duration, and stays what it is", async () => {
    const clock = createTestClock();
    const metrics = new Metrics(clock);
    const session = sessionOf("550 5.1.1 No");
    const open = metrics.network.watchSessions(async (_target: null) => {
      await clock.advance(100);
      return ok(session);
    });
    const opened = await open(null);
    if (!opened.ok) throw new Error("not opened");
    const watched = opened.value;
    const { capabilities, transcript, tls, usable } = watched;
    expect({ capabilities, transcript, tls, usable }).toEqual({
      ...{ capabilities: session.capabilities, transcript: session.transcript, tls: true, usable: true },
    });
    expect((await watched.probe(question("a@example.com", "b@example.com"))).mail).toBe(OK);
    await clock.advance(2_000);
    watched.close();
    await clock.advance(5_000);
    watched.close();
    expect(session.closed).toBe(2);
    expect(await scrape(metrics)).toMatchObject({
      'postwarden_smtp_open_seconds_sum{result="opened"}': "0.1",
      postwarden_smtp_session_seconds_sum: "2.1",
      postwarden_smtp_session_seconds_count: "1",
      'postwarden_smtp_replies_total{command="mail",class="2xx"}': "1",
      'postwarden_smtp_replies_total{command="rcpt",class="5xx"}': "1",
      'postwarden_smtp_failures_total{stage="rcpt",kind="closed"}': "1",
    });
  });

  test("a host that cannot be reached is a failure with its time", async () => {
    const clock = createTestClock();
    const metrics = new Metrics(clock);
    const failure = failureOf("connect_timeout", "connect");
    const open = metrics.network.watchSessions(async (_target: null) => {
      await clock.advance(10_000);
      return err(failure);
    });
    expect(await open(null)).toEqual(err(failure));
    const samples = await scrape(metrics);
    expect(samples).toMatchObject({
      'postwarden_smtp_open_seconds_sum{result="failed"}': "10",
      'postwarden_smtp_failures_total{stage="connect",kind="connect_timeout"}': "1",
      postwarden_smtp_session_seconds_count: "0",
    });
  });
});

describe("the process", () => {
  test("memory, CPU and files are read at the scrape", async () => {
    const samples = await scrape(new Metrics(createTestClock()));
    expect(Number(samples.process_resident_memory_bytes)).toBeGreaterThan(1e6);
    expect(Number(samples.process_cpu_seconds_total)).toBeGreaterThan(0);
    expect(Number(samples.process_open_fds)).toBeGreaterThan(2);
    expect(Number(samples.process_max_fds)).toBeGreaterThan(Number(samples.process_open_fds));
    expect(samples.process_start_time_seconds).toBe(String(STATE_NOW_MS / 1_000));
  });

  test("a tick that comes late is lag, until the service stops", async () => {
    const clock = createTestClock();
    let lateMs = 0;
    const metrics = new Metrics({ ...clock, monotonicMs: () => clock.monotonicMs() + lateMs });
    metrics.start();
    await clock.advance(TICK_MS);
    lateMs = 400;
    await clock.advance(TICK_MS);
    expect(await scrape(metrics)).toMatchObject({
      postwarden_event_loop_lag_seconds_sum: "0.4",
      'postwarden_event_loop_lag_seconds_bucket{le="0.25"}': "1",
      'postwarden_event_loop_lag_seconds_bucket{le="0.5"}': "2",
    });
    metrics.stop();
    expect(clock.pending()).toBe(0);
  });
});
