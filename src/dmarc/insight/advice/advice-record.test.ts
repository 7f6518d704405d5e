import { describe, expect, test } from "bun:test";
import { facts, MONITORING, RUA, source } from "../../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";

describe("a policy that receivers do not know", () => {
  test.each([
    ["p=bogus", "p=none", "p=none, sp=none, np=none"],
    ["p=reject; sp=bogus", "p=reject; sp=none", "p=reject, sp=none, np=none"],
    ["P = rejec; sp=reject; np=x; t=y", "P = none; sp=reject; np=none; t=y", "p=none, sp=reject, np=none"],
    ["p=", "p=none", "p=none, sp=none, np=none"],
    ["sp=reject", "p=none; sp=reject", "p=none, sp=reject, np=reject"],
  ])("is fixed in place, and the record is not in order before: %p", (policy, recovered, applied) => {
    const { ready, next, requirements } = advise(facts(`v=DMARC1; ${policy}; ${RUA}`));
    expect([ready, next?.action, next?.record]).toEqual([false, "fix_record", `v=DMARC1; ${recovered}; ${RUA}`]);
    expect(next?.why).toEndWith(`With this text they apply ${applied}.`);
    expect(requirements.find(({ code }) => code === "record_in_order")).toMatchObject({
      met: false,
      observed: "policy_invalid",
    });
    expect(advise(facts(next?.record ?? "")).requirements[0]?.met).toBe(true);
  });

  test("is not corrected while reports do not arrive: then the whole record is", () => {
    const advice = advise(facts(`v=DMARC1; p=bogus; ${RUA}`, { status: "action_required" }));
    expect(advice.next).toMatchObject({ action: "fix_record", record: null });
    expect(advice.requirements[0]).toMatchObject({ met: false, observed: "action_required" });
  });
});

describe("a domain that sends no mail", () => {
  const silent = { sendsMail: false, reportedDays: 0, policyDays: 0, reporters: 0, sources: [] };
  test.each([
    [MONITORING, `v=DMARC1; p=reject; ${RUA}`],
    [`v=DMARC1; p=none; sp=none; np=none; t=y; ${RUA}`, `v=DMARC1; p=reject; sp=reject; np=reject; ${RUA}`],
    [`v=DMARC1; p=quarantine; ${RUA}`, `v=DMARC1; p=reject; ${RUA}`],
  ])("rejects at once: %p", (record, next) => {
    const advice = advise(facts(record, silent));
    expect(advice).toMatchObject({ ready: true, next: { action: "reject_all", record: next } });
    expect(advice.notes.map(({ code }) => code)).toEqual(expect.arrayContaining(["publish_spf_none"]));
  });

  test("also where mail is spoofed, but not where mail passes", () => {
    const forged = source({ classification: "unknown", aligned: 0 });
    expect(advise(facts(MONITORING, { ...silent, sources: [forged] })).next?.action).toBe("reject_all");
    const advice = advise(facts(MONITORING, { ...silent, sources: [source({ messages: 1, aligned: 1 })] }));
    expect(advice).toMatchObject({ ready: false, next: { action: "wait", record: null } });
  });

  test("has nothing left to do at p=reject", () => {
    expect(advise(facts(`v=DMARC1; p=reject; ${RUA}`, silent)).next).toBeNull();
  });
});
