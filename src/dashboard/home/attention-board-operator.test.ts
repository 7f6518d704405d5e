import { expect, test } from "bun:test";
import type { DoctorAdvice } from "../../doctor/doctor.ts";
import { createTestClock } from "../../testing/clock.ts";
import type { Viewer } from "../visit.ts";
import { AttentionBoard, operatorSources } from "./attention-board.ts";

const advice = (severity: "fail" | "warn", title: string, remedy: string | null): DoctorAdvice => ({
  ...{ key: title, area: "Egress", severity, title, detail: "It is so.", remedy },
});

const OPERATOR: Viewer = {
  user: { id: "u", email: "u@example.com", role: "owner", isOperator: true },
  account: { id: "a", name: "acme" },
  ...{ mode: "live", sessionId: "s", csrfToken: "t", timeZone: "UTC", href: (path) => path },
  caller: { keyId: "user:u", accountId: "a", mode: "live", scopes: [], rate: { perSecond: 1, burst: 2 } },
};

test("blockers and failures are urgent; warnings of the machine are counted, and no items", () => {
  const sources = operatorSources(() => ({
    blockers: ["The database is not writable."],
    findings: [{ label: "Backup", text: "The newest backup is 3 days old. Check POSTWARDEN_BACKUP_DIR." }],
    machine: {
      failures: [advice("fail", "Outgoing port 25", "Open it.")],
      warnings: [advice("warn", "HELO name", null), advice("warn", "Clock", null)],
    },
  }));
  const board = new AttentionBoard(createTestClock(), sources);
  const items = board.items(OPERATOR);
  expect(items.map(({ severity, label, title, detail }) => [severity, label, title, detail])).toEqual([
    ["bad", "Service", "The database is not writable", ""],
    ["bad", "Egress", "Outgoing port 25", "It is so. Open it."],
    ["warn", "Backup", "The newest backup is 3 days old", "Check POSTWARDEN_BACKUP_DIR."],
  ]);
  expect(board.counts(OPERATOR)).toEqual({ settings: { count: 5, isUrgent: true } });
});

test("warnings alone are not urgent", () => {
  const machine = { failures: [], warnings: [advice("warn", "Clock", null)] };
  const sources = operatorSources(() => ({ machine, blockers: [], findings: [] }));
  const board = new AttentionBoard(createTestClock(), sources);
  expect(board.items(OPERATOR)).toEqual([]);
  expect(board.counts(OPERATOR)).toEqual({ settings: { count: 1, isUrgent: false } });
});
