import { describe, expect, test } from "bun:test";
import { ALL_SET, facts, MONITORING, policyOf, RUA, source } from "../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";
import type { AdvisedSource, AdviceFacts } from "./advice-facts.ts";
import type { StatePolicy } from "../domains/domain-state.ts";

const unmet = (record: string, more: Partial<AdviceFacts>) =>
  advise(facts(record, more))
    .requirements.filter(({ met }) => !met)
    .map(({ code }): string => code);

describe("the way of a domain that has all that is needed", () => {
  test.each([
    [MONITORING, "monitoring", "rehearse_quarantine", `v=DMARC1; p=quarantine; t=y; ${RUA}`],
    [`v=DMARC1; p=quarantine; t=y; ${RUA}`, "rehearsal", "end_rehearsal", `v=DMARC1; p=quarantine; t=n; ${RUA}`],
    [`v=DMARC1; p=quarantine; t=n; ${RUA}`, "quarantine", "reject", `v=DMARC1; p=reject; t=n; ${RUA}`],
    [`v=DMARC1; p=reject; t=y; ${RUA}`, "reject_rehearsal", "end_rehearsal", `v=DMARC1; p=reject; t=n; ${RUA}`],
    [`v=DMARC1; p=none; t=y; ${RUA}`, "monitoring", "rehearse_quarantine", `v=DMARC1; p=quarantine; t=y; ${RUA}`],
  ] as const)("%p", (record, stage, action, next) => {
    expect(advise(facts(record))).toMatchObject({ stage, ready: true, next: { action, record: next } });
  });

  test("ends at p=reject", () => {
    expect(advise(facts(`v=DMARC1; p=reject; ${RUA}`))).toMatchObject({ stage: "reject", ready: true, next: null });
  });

  test("has no rehearsal where t=y would soften what protects the names below it already", () => {
    expect(advise(facts(`v=DMARC1; p=none; np=reject; ${RUA}`)).next).toMatchObject({
      action: "quarantine",
      record: `v=DMARC1; p=quarantine; np=reject; ${RUA}`,
    });
  });
});

test("whoever protects missing names before the rehearsal is told what that means for it", () => {
  const more = { policyDays: 1, reportedDays: 5 };
  expect(advise(facts(`v=DMARC1; p=none; ${RUA}`, more)).next).toMatchObject({ action: "protect_missing_names" });
  expect(advise(facts(`v=DMARC1; p=none; ${RUA}`, more)).next?.why).toContain("without a rehearsal");
  expect(advise(facts(`v=DMARC1; p=quarantine; ${RUA}`, more)).next?.why).not.toContain("without a rehearsal");
});

describe("enforcement waits for", () => {
  test.each<[string, Partial<AdviceFacts>, string[]]>([
    ["14 days with reports under the present policy", { reportedDays: 30, policyDays: 13 }, ["reported_days"]],
    ["2 reporters", { reporters: 1 }, ["reporters"]],
    ["100 messages", { sources: [source({ messages: 99, aligned: 99 })] }, ["messages"]],
    ["99 % of them aligned", { sources: [source({ aligned: 989 })], recentSources: [source()] }, ["aligned_share"]],
    ["99 % of those of the last days as well", { recentSources: [source({ aligned: 989 })] }, ["recent_share"]],
    ["any mail at all", { sources: [] }, ["messages", "aligned_share"]],
    [
      "a word about unknown sources with ten messages",
      {
        sources: [
          source({ messages: 5000, aligned: 5000 }),
          source({ classification: "unknown", messages: 10, aligned: 10 }),
        ],
      },
      ["unknown_sources"],
    ],
    [
      "a word about unknown sources with 1 % of the mail",
      {
        sources: [
          source({ messages: 495, aligned: 495 }),
          source({ classification: "unknown", messages: 5, aligned: 5 }),
        ],
      },
      ["unknown_sources"],
    ],
  ])("%s", (_, more, codes) => {
    expect(unmet(MONITORING, more)).toEqual(codes);
    const { ready, next } = advise(facts(MONITORING, more));
    expect(ready).toBe(false);
    expect(next?.record ?? MONITORING).not.toContain("p=quarantine");
  });

  test.each<[string, AdvisedSource[]]>([
    ["exactly 100 messages", [source({ messages: 100, aligned: 100 })]],
    ["exactly 99 %", [source({ aligned: 990 })]],
    ["forwarders that fail", [source(), source({ classification: "forwarder", aligned: 0 })]],
    ["threats that fail", [source(), source({ classification: "threat", messages: 9000, aligned: 0 })]],
    ["messages passed on by others", [source({ messages: 1500, forwarded: 500 })]],
    ["an unknown source of little weight", [source(), source({ classification: "unknown", messages: 9, aligned: 9 })]],
  ])("nothing more with %s", (_, sources) => {
    expect(unmet(MONITORING, { sources })).toEqual([]);
  });
});

describe("what to do first", () => {
  test.each<[string, string | null, Partial<AdviceFacts>, string]>([
    ["the record, when reports do not come here", MONITORING, { status: "action_required" }, "mend_record"],
    ["the record, when its policy is void", `v=DMARC1; p=foo; ${RUA}`, {}, "mend_record"],
    ["the record, when there is none", null, { status: "pending" }, "publish_record"],
    [
      "a word, when sources are unknown",
      ALL_SET,
      { sources: [source({ classification: "unknown" })] },
      "classify_sources",
    ],
    ["the sources, when mail fails", ALL_SET, { sources: [source({ aligned: 500 })] }, "fix_sources"],
    ["the sources, when mail fails of late", ALL_SET, { recentSources: [source({ aligned: 500 })] }, "fix_sources"],
    ["nothing but to wait, when there are few reports", ALL_SET, { policyDays: 3 }, "wait"],
    ["np=reject, while the rest waits", MONITORING, { policyDays: 3 }, "protect_missing_names"],
  ])("%s", (_, record, more, action) => {
    expect(advise(facts(record, more)).next?.action).toBe(action as never);
  });

  test("the failing checks are named", () => {
    const failing = [{ code: "reporting_address", message: "Ours is not in rua." }];
    expect(advise(facts(MONITORING, { status: "action_required", failing })).next?.why).toContain(
      "Ours is not in rua.",
    );
  });

  test("the parent, when the policy comes from there", () => {
    const policy = { ...(policyOf(MONITORING) as StatePolicy), own: false, inherited_from: "example.org" };
    const advice = advise(facts(null, { domain: "a.example.org", policy }));
    expect(advice).toMatchObject({ stage: "monitoring", next: { action: "raise_parent", record: null } });
    expect(advice.notes.map(({ code }) => code)).toContain("policy_inherited");
  });
});

describe("np=reject", () => {
  const early = { reportedDays: 1, policyDays: 1, reporters: 1 };
  test.each<[string, string, Partial<AdviceFacts>, boolean]>([
    ["is advised early", MONITORING, early, true],
    ["is advised at the top, where sp is weaker", `v=DMARC1; p=reject; sp=none; ${RUA}`, {}, true],
    ["is not, before any report", MONITORING, { reportedDays: 0, policyDays: 0 }, false],
    ["is not, where np stands already", `v=DMARC1; p=none; np=none; ${RUA}`, early, false],
    ["is not, where sp says so already", `v=DMARC1; p=none; sp=reject; ${RUA}`, early, false],
    ["is not, where the domain is a subdomain", MONITORING, { ...early, isOrganisational: false }, false],
    ["is, where the names that send exist", MONITORING, { ...early, names: [{ name: "a", exists: true }] }, true],
    [
      "is not, where a name that sends does not exist",
      MONITORING,
      { ...early, names: [{ name: "a", exists: false }] },
      false,
    ],
    ["is not, where nobody knows", MONITORING, { ...early, names: [{ name: "a", exists: null }] }, false],
  ])("%s", (_, record, more, isAdvised) => {
    expect(advise(facts(record, more)).next?.action === "protect_missing_names").toBe(isAdvised);
  });
});

describe("a domain whose mail is passed on", () => {
  const sources = [source(), source({ classification: "forwarder", messages: 50, aligned: 0 })];

  test("stops at quarantine, and is told why", () => {
    const advice = advise(facts(ALL_SET, { sources }));
    expect(advice).toMatchObject({ stage: "quarantine", ready: false, next: null });
    expect(advice.requirements.find(({ met }) => !met)?.message).toContain("Stay at p=quarantine");
    expect(advice.notes.map(({ code }) => code)).toContain("mailing_lists");
  });

  test("goes no further from a rehearsal of reject either", () => {
    const advice = advise(facts(`v=DMARC1; p=reject; t=y; ${RUA}`, { sources }));
    expect(advice).toMatchObject({ stage: "reject_rehearsal", ready: false, next: null });
    expect(advice.requirements.find(({ met }) => !met)?.message).toContain("Keep t=y");
  });

  test("gets as far as quarantine", () => {
    expect(advise(facts(MONITORING, { sources })).next?.action).toBe("rehearse_quarantine");
  });
});
