import { expect, test } from "bun:test";
import { operatorAttention } from "./attention-board.ts";

test("the state of the service comes first, then what doctor found", () => {
  const items = operatorAttention({
    blockers: ["The database is not writable."],
    findings: ["The newest backup is 3 days old. Check POSTWARDEN_BACKUP_DIR."],
    examination: {
      atMs: 0,
      findings: [
        { title: "Outgoing port 25", area: "egress", severity: "fail", detail: "Blocked.", remedy: "Open it." },
        { title: "Clock", area: "clock", severity: "ok", detail: "Right.", remedy: null },
        { title: "HELO name", area: "egress", severity: "warn", detail: "Not the reverse name.", remedy: null },
      ],
    },
  });
  expect(items.map(({ severity, title, detail }) => [severity, title, detail])).toEqual([
    ["bad", "The database is not writable", ""],
    ["warn", "The newest backup is 3 days old", "Check POSTWARDEN_BACKUP_DIR."],
    ["bad", "Outgoing port 25", "Blocked. Open it."],
    ["warn", "HELO name", "Not the reverse name."],
  ]);
});

test("nothing is wrong before the first run of doctor", () => {
  expect(operatorAttention({ examination: null, blockers: [], findings: [] })).toEqual([]);
});
