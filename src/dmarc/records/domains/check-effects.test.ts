import { describe, expect, test } from "bun:test";
import { DmarcAlertStore, createAlertRaiser } from "./alert-store.ts";
import { ALERT_RULES } from "../../alerts/rules/alert-rules.ts";
import { createDomainHarness, LIVE, REPORT_HOST } from "../../../testing/monitored-domains.ts";

const newHarness = createDomainHarness();
const MINUTE_MS = 60_000;
const HOST = "example.com._report._dmarc.reports.example.net";

type Harness = ReturnType<typeof newHarness>;
const record = (token: string, tags: string) => `v=DMARC1; ${tags}; rua=mailto:${token}@${REPORT_HOST}`;
const rules = ({ alerts }: Harness) => alerts.map(({ rule }) => rule);

describe("a scheduled check", () => {
  test("needs two bad answers half an hour apart to leave active, and tells then, once", async () => {
    const harness = newHarness();
    const { id } = await harness.activate();
    harness.publish("example.com");
    const first = await harness.checkScheduled(id);
    expect(first).toMatchObject({ status: "active", badSinceMs: harness.clock.nowMs() });
    expect(first.nextCheckAtMs - harness.clock.nowMs()).toBe(35 * MINUTE_MS);
    expect(harness.alerts).toEqual([]);
    await harness.clock.advance(10 * MINUTE_MS);
    expect((await harness.checkScheduled(id)).status).toBe("active");
    await harness.clock.advance(25 * MINUTE_MS);
    expect(await harness.checkScheduled(id)).toMatchObject({ status: "action_required", badSinceMs: null });
    expect(rules(harness)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
    expect(harness.alerts[0]).toMatchObject({
      subject: "action_required",
      cooldown: false,
      data: { previous_status: "active", status: "action_required", trigger: "scheduled" },
    });
    expect(harness.alerts[1]?.data).toMatchObject({
      changes: ["record_removed", "policy_weakened", "reporting_address_removed"],
      record: null,
    });
    expect(harness.alerts[2]?.data).toMatchObject({ previous_policy: { p: "reject" }, policy: null });
    for (let n = 0; n < 3; n++) {
      await harness.clock.advance(24 * 60 * MINUTE_MS);
      await harness.checkScheduled(id);
    }
    expect(harness.alerts).toHaveLength(3);
    expect(harness.history(id)).toHaveLength(3);
  });

  test("drops a bad response when the next one is good", async () => {
    const harness = newHarness();
    const { id, token } = await harness.activate();
    harness.publish("example.com");
    await harness.checkScheduled(id);
    await harness.clock.advance(35 * MINUTE_MS);
    harness.publish("example.com", record(token, "p=reject"));
    expect(await harness.checkScheduled(id)).toMatchObject({ status: "active", badSinceMs: null });
    await harness.clock.advance(35 * MINUTE_MS);
    harness.publish("example.com");
    expect((await harness.checkScheduled(id)).status).toBe("active");
    expect(harness.alerts).toEqual([]);
  });

  test("moves nothing while the DNS is silent, and does not forget the bad answer before", async () => {
    const harness = newHarness();
    const { id } = await harness.activate();
    harness.publish("example.com");
    await harness.checkScheduled(id);
    for (let n = 0; n < 3; n++) {
      await harness.clock.advance(30 * MINUTE_MS);
      harness.zone["_dmarc.example.com"] = "servfail";
      const silent = await harness.checkScheduled(id);
      expect(silent.status).toBe("active");
      expect(silent.nextCheckAtMs - harness.clock.nowMs()).toBe(30 * MINUTE_MS);
      expect(JSON.parse(silent.lastCheck ?? "")).toMatchObject({
        ok: null,
        checks: [{ ok: null }, { ok: null }, { ok: true }],
      });
      expect(harness.domains.view(silent).policy?.p).toBe("reject");
    }
    harness.publish("example.com");
    expect((await harness.checkScheduled(id)).status).toBe("action_required");
  });

  test("believes a change that keeps our address only when it sees it twice", async () => {
    const harness = newHarness();
    const { id, token } = await harness.activate();
    harness.publish("example.com", record(token, "p=none"));
    const first = await harness.checkScheduled(id);
    expect(first.nextCheckAtMs - harness.clock.nowMs()).toBe(35 * MINUTE_MS);
    expect(harness.alerts).toEqual([]);
    expect(harness.domains.view(first).policy?.p).toBe("reject");
    await harness.clock.advance(35 * MINUTE_MS);
    const second = await harness.checkScheduled(id);
    expect(second.status).toBe("active");
    expect(rules(harness)).toEqual(["record_changed", "policy_weakened"]);
    expect(harness.alerts[0]).toMatchObject({
      summary: "the DMARC record was changed",
      cooldown: false,
      data: {
        changes: ["record_changed", "policy_weakened"],
        previous_record: record(token, "p=reject"),
        record: record(token, "p=none"),
      },
    });
    expect(harness.alerts[1]?.summary).toBe("the policy was weakened from p=reject to p=none");
    expect(harness.domains.view(second).policy?.p).toBe("none");
    expect(harness.history(id)[0]).toMatchObject({
      trigger: "scheduled",
      changes: ["record_changed", "policy_weakened"],
    });
  });

  test("is not fooled by servers that give old and new in turn", async () => {
    const harness = newHarness();
    const { id, token } = await harness.activate();
    for (let n = 0; n < 6; n++) {
      harness.publish("example.com", record(token, n % 2 === 0 ? "p=none" : "p=reject"));
      await harness.checkScheduled(id);
      await harness.clock.advance(35 * MINUTE_MS);
    }
    expect(harness.alerts).toEqual([]);
    expect(harness.history(id)).toHaveLength(2);
  });

  test("makes a pending domain active at once, and tells nothing but that", async () => {
    const harness = newHarness();
    harness.publish("example.com", "v=DMARC1; p=reject");
    const { domain } = await harness.enrol("example.com");
    harness.publish("example.com", record(domain.token, "p=none"));
    expect((await harness.checkScheduled(domain.id)).status).toBe("active");
    expect(rules(harness)).toEqual(["status_changed"]);
    expect(harness.alerts[0]?.summary).toBe("status changed from pending to active");
  });

  test("leaves a domain pending that published nothing, and tells nothing", async () => {
    const harness = newHarness();
    const { domain } = await harness.enrol("example.com");
    for (let n = 0; n < 5; n++) {
      await harness.clock.advance(60 * MINUTE_MS);
      expect((await harness.checkScheduled(domain.id)).status).toBe("pending");
    }
    expect(harness.alerts).toEqual([]);
    expect(harness.history(domain.id)).toHaveLength(1);
  });

  test("tells when receivers may no longer report to us, and when all is well again", async () => {
    const harness = newHarness();
    const { id } = await harness.activate();
    delete harness.zone[HOST];
    await harness.checkScheduled(id);
    await harness.clock.advance(35 * MINUTE_MS);
    await harness.checkScheduled(id);
    expect(harness.alerts.map(({ summary }) => summary)).toEqual([
      `${HOST} does not exist. Publish *._report._dmarc.reports.example.net TXT "v=DMARC1;" (status action_required, was active)`,
      "receivers may no longer send reports to the report host",
    ]);
    harness.alerts.length = 0;
    harness.zone[HOST] = { TXT: ["v=DMARC1;"] };
    expect((await harness.checkScheduled(id)).status).toBe("active");
    expect(rules(harness)).toEqual(["status_changed"]);
    expect(harness.history(id)[0]?.changes).toEqual(["authorisation_gained", "status"]);
  });
});

describe("a check by a user", () => {
  test("moves and tells at once", async () => {
    const harness = newHarness();
    const { id, token } = await harness.activate();
    harness.publish("example.com", record(token, "p=reject; t=y"));
    await harness.domains.verify(LIVE, id);
    expect(rules(harness)).toEqual(["record_changed", "policy_weakened"]);
    harness.publish("example.com");
    const { previousStatus, domain } = await harness.domains.verify(LIVE, id);
    expect([previousStatus, domain.status]).toEqual(["active", "action_required"]);
    expect(rules(harness).slice(2)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
  });

  test("moves nothing while the DNS is silent", async () => {
    const harness = newHarness();
    const { id } = await harness.activate();
    harness.zone["_dmarc.example.com"] = "timeout";
    const { previousStatus, domain, result } = await harness.domains.verify(LIVE, id);
    expect([previousStatus, domain.status]).toEqual(["active", "active"]);
    expect(result.checks.map(({ ok }) => ok)).toEqual([null, null, true]);
    expect(harness.alerts).toEqual([]);
    expect(harness.history(id)).toHaveLength(2);
  });

  test("settles the doubt of a scheduled one", async () => {
    const harness = newHarness();
    const { id } = await harness.activate();
    harness.publish("example.com");
    await harness.checkScheduled(id);
    expect((await harness.domains.verify(LIVE, id)).domain).toMatchObject({
      status: "action_required",
      badSinceMs: null,
    });
    expect(rules(harness)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
  });
});

test("every weakening of a day is reported, whatever the final state", async () => {
  const harness = newHarness();
  const { id, token } = await harness.activate();
  const raise = createAlertRaiser({
    rules: ALERT_RULES,
    store: new DmarcAlertStore(harness.db),
    hasMail: false,
    defaultRecipients: () => [],
  });
  const steps = ["quarantine", "none", "reject", "none", "reject", "none"];
  for (const p of steps) {
    harness.publish("example.com", record(token, `p=${p}`));
    await harness.domains.verify(LIVE, id);
    await harness.clock.advance(10 * MINUTE_MS);
  }
  const told = harness.db.transact((tx) =>
    harness.alerts.filter((alert) => raise(tx, harness.find(id), alert, harness.clock.nowMs())),
  );
  expect(told.filter(({ rule }) => rule === "policy_weakened").map(({ summary }) => summary)).toEqual([
    "the policy was weakened from p=reject to p=quarantine",
    "the policy was weakened from p=quarantine to p=none",
    "the policy was weakened from p=reject to p=none",
    "the policy was weakened from p=reject to p=none",
  ]);
  expect(told.filter(({ rule }) => rule === "record_changed")).toHaveLength(steps.length);
});

test("the history has the first check, and then only what changed", async () => {
  const harness = newHarness();
  harness.publish("example.com", "v=DMARC1; p=quarantine");
  const { domain } = await harness.enrol("example.com");
  await harness.domains.verify(LIVE, domain.id);
  await harness.domains.verify(LIVE, domain.id);
  expect(harness.history(domain.id)).toMatchObject([
    { trigger: "manual", previous_status: "pending", status: "action_required", changes: ["status"] },
    {
      trigger: "enrolled",
      status: "pending",
      record: "v=DMARC1; p=quarantine",
      policy: { p: "quarantine", own: true },
      changes: [],
    },
  ]);
});

test("a domain whose DNS was silent at enrolment has its first state later, and no alert for it", async () => {
  const harness = newHarness();
  harness.publish("example.com", "v=DMARC1; p=reject");
  harness.zone["_dmarc.example.com"] = "servfail";
  const { domain, dnsRecords } = await harness.enrol("example.com");
  expect(dnsRecords).toMatchObject([{ action: "conflict", reason: "dns_failure", value: "" }]);
  harness.publish("example.com", "v=DMARC1; p=reject");
  const checked = await harness.checkScheduled(domain.id);
  expect(harness.domains.view(checked).policy).toMatchObject({ p: "reject" });
  expect(harness.alerts).toEqual([]);
});
