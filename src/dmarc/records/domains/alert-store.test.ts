import { describe, expect, test } from "bun:test";
import { createDmarcAlertHarness, type DmarcAlertHarness } from "../../../testing/dmarc-alert-harness.ts";
import { ALERT_RULES, DMARC_EVENTS } from "../../alerts/rules/alert-rules.ts";
import { AlertMailQueue } from "../../alerts/rules/mail-queue-store.ts";
import type { Alert } from "./alert-store.ts";
import type { DomainRow } from "./domain-store.ts";

const newHarness = createDmarcAlertHarness();
const HOUR_MS = 60 * 60_000;
const ALERT: Alert = {
  rule: "status_changed",
  subject: "action_required",
  data: { status: "action_required" },
  summary: "the record is gone",
  cooldown: true,
};
const raiseIn = ({ db, raise, clock }: DmarcAlertHarness, domain: DomainRow, alert: Partial<Alert> = {}) =>
  db.transact((tx) => raise(tx, domain, { ...ALERT, ...alert }, clock.nowMs()));

describe("an alert that is raised", () => {
  test("is kept, sent to the webhook and lined up for each recipient", () => {
    const harness = newHarness();
    const domain = harness.add("example.com", { label: "shop", recipients: ["a@example.com", "b@example.com"] });
    expect(raiseIn(harness, domain)).toBe(true);
    expect(harness.raised()).toEqual(["status_changed action_required"]);
    expect(harness.events()).toEqual([
      {
        type: "dmarc.status_changed",
        url: "https://example.com/hook",
        data: { domain_id: domain.id, domain: "example.com", label: "shop", mode: "live", status: "action_required" },
      },
    ]);
    expect(new AlertMailQueue(harness.db).recipients("", 9)).toEqual(["a@example.com", "b@example.com"]);
  });

  test("is an event without mail for test keys", () => {
    const harness = newHarness();
    raiseIn(harness, harness.add("example.com", { mode: "test" }));
    expect(harness.events()).toMatchObject([{ data: { mode: "test" } }]);
    expect(harness.countMails()).toBe(0);
  });

  test("is kept where there is neither webhook nor mail, and is an event for nobody but the feed", () => {
    const harness = newHarness({ hasMail: false });
    harness.defaults.push("all@example.com");
    expect(raiseIn(harness, harness.add("example.com", { webhookUrl: null }))).toBe(true);
    expect([harness.countMails(), harness.raised()]).toEqual([0, ["status_changed action_required"]]);
    expect(harness.events()).toMatchObject([{ type: "dmarc.status_changed", url: null }]);
  });

  test("is lined up for the recipients of the account as well, once for each address", () => {
    const harness = newHarness();
    harness.defaults.push("all@example.com", "a@example.com");
    raiseIn(harness, harness.add("example.com", { recipients: ["a@example.com"] }));
    expect(new AlertMailQueue(harness.db).recipients("", 9)).toEqual(["a@example.com", "all@example.com"]);
    expect(harness.countMails()).toBe(2);
  });
});

describe("nothing is raised", () => {
  test("by a rule that is off; those that nobody spoke of are on", () => {
    const harness = newHarness();
    const domain = harness.add("example.com", { alerts: { status_changed: false } });
    expect(raiseIn(harness, domain)).toBe(false);
    expect(raiseIn(harness, domain, { rule: "record_changed" })).toBe(true);
    expect(harness.raised()).toEqual(["record_changed action_required"]);
  });

  test("twice in a day about the same subject, but about another one, of another domain, or without cooldown", async () => {
    const harness = newHarness();
    const [one, two] = [harness.add("example.com"), harness.add("example.org")];
    expect(raiseIn(harness, one)).toBe(true);
    await harness.clock.advance(24 * HOUR_MS - 1);
    expect(raiseIn(harness, one)).toBe(false);
    expect(raiseIn(harness, one, { cooldown: false })).toBe(true);
    expect(raiseIn(harness, one, { subject: "active" })).toBe(true);
    expect(raiseIn(harness, two)).toBe(true);
    await harness.clock.advance(24 * HOUR_MS);
    expect(raiseIn(harness, one)).toBe(true);
  });
});

test("an alert of a clock that was ahead keeps nothing quiet, and what is raised after it does", async () => {
  const harness = newHarness();
  const domain = harness.add("example.com");
  const raiseAt = (atMs: number) => harness.db.transact((tx) => harness.raise(tx, domain, ALERT, atMs));
  const nowMs = harness.clock.nowMs();
  expect(raiseAt(nowMs + 72 * HOUR_MS)).toBe(true);
  expect(raiseAt(nowMs)).toBe(true);
  expect(raiseAt(nowMs + HOUR_MS)).toBe(false);
  expect(raiseAt(nowMs + 25 * HOUR_MS)).toBe(true);
});

describe("the documentation of the events", () => {
  test("has every rule, and examples that fit", () => {
    expect(DMARC_EVENTS.map(({ type }) => type)).toEqual(ALERT_RULES.map(({ name }) => `dmarc.${name}`));
    for (const { data, example, type } of DMARC_EVENTS) {
      expect([type, data.safeParse(example).error?.issues ?? []]).toEqual([type, []]);
    }
  });
});
