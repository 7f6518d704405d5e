import { expect, test } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import type { Fact } from "../foundation/db/facts.ts";
import { HourlyActivity } from "./hourly-activity.ts";
import { createTestClock } from "../testing/clock.ts";

const check = { kind: "blocklist_check", mode: "live", trigger: "scheduled" } as const;
const webhook = { kind: "webhook", mode: "live", ageMs: 1 } as const;
const report = { kind: "report", mode: "live", via: "smtp", reason: null } as const;
const single = { kind: "verification", mode: "live", source: "single", subStatus: "mailbox_exists" } as const;

const FACTS: readonly Fact[] = [
  { ...single, verdict: "deliverable" },
  { ...single, source: "list", verdict: "deliverable" },
  { ...single, verdict: "risky" },
  { ...single, mode: "test", verdict: "risky" },
  { kind: "credits", move: "hold", credits: 1 },
  { ...report, outcome: "stored" },
  { ...report, outcome: "rejected" },
  { ...check, status: "listed", listed: 2, delisted: 0 },
  { ...check, status: "clean", listed: 0, delisted: 1 },
  { ...check, status: "clean", listed: 0, delisted: 0 },
  { ...webhook, status: "delivered" },
  { ...webhook, status: "pending" },
  { ...webhook, status: "failed" },
  { kind: "list_end", mode: "live", status: "completed" },
];

test("one line names what was done for live keys, and the next begins anew", () => {
  const lines: unknown[] = [];
  const activity = new HourlyActivity(createLog("info", createTestClock(), (line) => lines.push(JSON.parse(line))));
  for (const fact of FACTS) activity.count(fact);
  activity.write();
  activity.write();
  const head = { at: "2026-01-01T00:00:00.000Z", level: "info", message: "activity" };
  expect(lines).toEqual([
    {
      ...head,
      verifications: { deliverable: 2, risky: 1 },
      reports: { stored: 1, rejected: 1 },
      blocklist_checks: { listed: 1, clean: 2 },
      listings: { found: 2, removed: 1 },
      webhooks: { delivered: 1, retried: 1, failed: 1 },
      lists: { completed: 1 },
    },
    head,
  ]);
});
