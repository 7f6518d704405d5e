import { describe, expect, test } from "bun:test";
import { DmarcAlertStore } from "./alert-store.ts";
import { createAlertRaiser } from "./raise.ts";
import { createDomainHarness, LIVE, REPORT_HOST } from "../../testing/monitored-domains.ts";

const newWorld = createDomainHarness();
const MINUTE_MS = 60_000;
const HOST = "example.com._report._dmarc.reports.example.net";

type World = ReturnType<typeof newWorld>;
const record = (token: string, tags: string) => `v=DMARC1; ${tags}; rua=mailto:${token}@${REPORT_HOST}`;
const rules = ({ alerts }: World) => alerts.map(({ rule }) => rule);

describe("a scheduled check", () => {
  test("needs two bad answers half an hour apart to leave active, and tells then, once", async () => {
    const world = newWorld();
    const { id } = await world.activate();
    world.publish("example.com");
    const first = await world.checkScheduled(id);
    expect(first).toMatchObject({ status: "active", badSinceMs: world.clock.nowMs() });
    expect(first.nextCheckAtMs - world.clock.nowMs()).toBe(35 * MINUTE_MS);
    expect(world.alerts).toEqual([]);
    await world.clock.advance(10 * MINUTE_MS);
    expect((await world.checkScheduled(id)).status).toBe("active");
    await world.clock.advance(25 * MINUTE_MS);
    expect(await world.checkScheduled(id)).toMatchObject({ status: "action_required", badSinceMs: null });
    expect(rules(world)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
    expect(world.alerts[0]).toMatchObject({
      subject: "action_required",
      cooldown: false,
      data: { previous_status: "active", status: "action_required", trigger: "scheduled" },
    });
    expect(world.alerts[1]?.data).toMatchObject({
      changes: ["record_removed", "policy_weakened", "reporting_address_removed"],
      record: null,
    });
    expect(world.alerts[2]?.data).toMatchObject({ previous_policy: { p: "reject" }, policy: null });
    for (let n = 0; n < 3; n++) {
      await world.clock.advance(24 * 60 * MINUTE_MS);
      await world.checkScheduled(id);
    }
    expect(world.alerts).toHaveLength(3);
    expect(world.history(id)).toHaveLength(3);
  });

  test("forgets a bad answer when the next one is good", async () => {
    const world = newWorld();
    const { id, token } = await world.activate();
    world.publish("example.com");
    await world.checkScheduled(id);
    await world.clock.advance(35 * MINUTE_MS);
    world.publish("example.com", record(token, "p=reject"));
    expect(await world.checkScheduled(id)).toMatchObject({ status: "active", badSinceMs: null });
    await world.clock.advance(35 * MINUTE_MS);
    world.publish("example.com");
    expect((await world.checkScheduled(id)).status).toBe("active");
    expect(world.alerts).toEqual([]);
  });

  test("moves nothing while the DNS is silent, and does not forget the bad answer before", async () => {
    const world = newWorld();
    const { id } = await world.activate();
    world.publish("example.com");
    await world.checkScheduled(id);
    for (let n = 0; n < 3; n++) {
      await world.clock.advance(30 * MINUTE_MS);
      world.zone["_dmarc.example.com"] = "servfail";
      const silent = await world.checkScheduled(id);
      expect(silent.status).toBe("active");
      expect(silent.nextCheckAtMs - world.clock.nowMs()).toBe(30 * MINUTE_MS);
      expect(JSON.parse(silent.lastCheck ?? "")).toMatchObject({
        ok: null,
        checks: [{ ok: null }, { ok: null }, { ok: true }],
      });
      expect(world.domains.view(silent).policy?.p).toBe("reject");
    }
    world.publish("example.com");
    expect((await world.checkScheduled(id)).status).toBe("action_required");
  });

  test("believes a change that keeps our address only when it sees it twice", async () => {
    const world = newWorld();
    const { id, token } = await world.activate();
    world.publish("example.com", record(token, "p=none"));
    const first = await world.checkScheduled(id);
    expect(first.nextCheckAtMs - world.clock.nowMs()).toBe(35 * MINUTE_MS);
    expect(world.alerts).toEqual([]);
    expect(world.domains.view(first).policy?.p).toBe("reject");
    await world.clock.advance(35 * MINUTE_MS);
    const second = await world.checkScheduled(id);
    expect(second.status).toBe("active");
    expect(rules(world)).toEqual(["record_changed", "policy_weakened"]);
    expect(world.alerts[0]).toMatchObject({
      summary: "the DMARC record was changed",
      cooldown: false,
      data: {
        changes: ["record_changed", "policy_weakened"],
        previous_record: record(token, "p=reject"),
        record: record(token, "p=none"),
      },
    });
    expect(world.alerts[1]?.summary).toBe("the policy was weakened from p=reject to p=none");
    expect(world.domains.view(second).policy?.p).toBe("none");
    expect(world.history(id)[0]).toMatchObject({
      trigger: "scheduled",
      changes: ["record_changed", "policy_weakened"],
    });
  });

  test("is not fooled by servers that give old and new in turn", async () => {
    const world = newWorld();
    const { id, token } = await world.activate();
    for (let n = 0; n < 6; n++) {
      world.publish("example.com", record(token, n % 2 === 0 ? "p=none" : "p=reject"));
      await world.checkScheduled(id);
      await world.clock.advance(35 * MINUTE_MS);
    }
    expect(world.alerts).toEqual([]);
    expect(world.history(id)).toHaveLength(2);
  });

  test("makes a pending domain active at once, and tells nothing but that", async () => {
    const world = newWorld();
    world.publish("example.com", "v=DMARC1; p=reject");
    const { domain } = await world.enrol("example.com");
    world.publish("example.com", record(domain.token, "p=none"));
    expect((await world.checkScheduled(domain.id)).status).toBe("active");
    expect(rules(world)).toEqual(["status_changed"]);
    expect(world.alerts[0]?.summary).toBe("the status is active, was pending");
  });

  test("leaves a domain pending that published nothing, and tells nothing", async () => {
    const world = newWorld();
    const { domain } = await world.enrol("example.com");
    for (let n = 0; n < 5; n++) {
      await world.clock.advance(60 * MINUTE_MS);
      expect((await world.checkScheduled(domain.id)).status).toBe("pending");
    }
    expect(world.alerts).toEqual([]);
    expect(world.history(domain.id)).toHaveLength(1);
  });

  test("tells when receivers may no longer report to us, and when all is well again", async () => {
    const world = newWorld();
    const { id } = await world.activate();
    delete world.zone[HOST];
    await world.checkScheduled(id);
    await world.clock.advance(35 * MINUTE_MS);
    await world.checkScheduled(id);
    expect(world.alerts.map(({ summary }) => summary)).toEqual([
      `${HOST} does not exist. Publish *._report._dmarc.reports.example.net TXT "v=DMARC1;" (status action_required, was active)`,
      "receivers may no longer send reports to the report host",
    ]);
    world.alerts.length = 0;
    world.zone[HOST] = { TXT: ["v=DMARC1;"] };
    expect((await world.checkScheduled(id)).status).toBe("active");
    expect(rules(world)).toEqual(["status_changed"]);
    expect(world.history(id)[0]?.changes).toEqual(["authorisation_gained", "status"]);
  });
});

describe("a check by a user", () => {
  test("moves and tells at once", async () => {
    const world = newWorld();
    const { id, token } = await world.activate();
    world.publish("example.com", record(token, "p=reject; t=y"));
    await world.domains.verify(LIVE, id);
    expect(rules(world)).toEqual(["record_changed", "policy_weakened"]);
    world.publish("example.com");
    const { previousStatus, domain } = await world.domains.verify(LIVE, id);
    expect([previousStatus, domain.status]).toEqual(["active", "action_required"]);
    expect(rules(world).slice(2)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
  });

  test("moves nothing while the DNS is silent", async () => {
    const world = newWorld();
    const { id } = await world.activate();
    world.zone["_dmarc.example.com"] = "timeout";
    const { previousStatus, domain, result } = await world.domains.verify(LIVE, id);
    expect([previousStatus, domain.status]).toEqual(["active", "active"]);
    expect(result.checks.map(({ ok }) => ok)).toEqual([null, null, true]);
    expect(world.alerts).toEqual([]);
    expect(world.history(id)).toHaveLength(2);
  });

  test("settles the doubt of a scheduled one", async () => {
    const world = newWorld();
    const { id } = await world.activate();
    world.publish("example.com");
    await world.checkScheduled(id);
    expect((await world.domains.verify(LIVE, id)).domain).toMatchObject({
      status: "action_required",
      badSinceMs: null,
    });
    expect(rules(world)).toEqual(["status_changed", "record_changed", "policy_weakened"]);
  });
});

test("each weakening of a day is told, whatever it ends in and however often", async () => {
  const world = newWorld();
  const { id, token } = await world.activate();
  const raise = createAlertRaiser({
    store: new DmarcAlertStore(world.db),
    hasMail: false,
    defaultRecipients: () => [],
  });
  const steps = ["quarantine", "none", "reject", "none", "reject", "none"];
  for (const p of steps) {
    world.publish("example.com", record(token, `p=${p}`));
    await world.domains.verify(LIVE, id);
    await world.clock.advance(10 * MINUTE_MS);
  }
  const told = world.db.transact((tx) =>
    world.alerts.filter((alert) => raise(tx, world.find(id), alert, world.clock.nowMs())),
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
  const world = newWorld();
  world.publish("example.com", "v=DMARC1; p=quarantine");
  const { domain } = await world.enrol("example.com");
  await world.domains.verify(LIVE, domain.id);
  await world.domains.verify(LIVE, domain.id);
  expect(world.history(domain.id)).toMatchObject([
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
  const world = newWorld();
  world.publish("example.com", "v=DMARC1; p=reject");
  world.zone["_dmarc.example.com"] = "servfail";
  const { domain, dnsRecords } = await world.enrol("example.com");
  expect(dnsRecords).toMatchObject([{ action: "conflict", reason: "dns_failure", value: "" }]);
  world.publish("example.com", "v=DMARC1; p=reject");
  const checked = await world.checkScheduled(domain.id);
  expect(world.domains.view(checked).policy).toMatchObject({ p: "reject" });
  expect(world.alerts).toEqual([]);
});
