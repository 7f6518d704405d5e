import { describe, expect, test } from "bun:test";
import { ALL_SET, facts, MONITORING, RUA, source } from "../../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";
import type { AdviceFacts } from "./advice-model.ts";

describe("a requirement", () => {
  const requirement = (more: Partial<AdviceFacts>, wanted: string) =>
    advise(facts(MONITORING, more)).requirements.find(({ code }) => code === wanted);

  test("that is not met says how much is missing", () => {
    expect(requirement({ policyDays: 1 }, "reported_days")).toMatchObject({
      observed: 1,
      message: "1 of 14 days with reports so far, in the last 30 days and since the present policy was published.",
    });
  });

  test.each([
    [2, 3, 0.6666],
    [9_899_999, 10_000_000, 0.9899],
    [29, 100, 0.29],
    [99, 100, 0.99],
  ])("about shares has four digits, and never reads as more than it is: %p of %p", (aligned, messages, observed) => {
    expect(requirement({ sources: [source({ messages, aligned })] }, "aligned_share")?.observed).toBe(observed);
  });

  test("about the last days is met when they had no mail", () => {
    expect(requirement({ recentSources: [] }, "recent_share")).toMatchObject({ met: true, observed: "no mail" });
  });
});

describe("without reports the advice says nothing about mail that passes or fails", () => {
  const none = { reportedDays: 0, policyDays: 0, reporters: 0, sources: [] };
  const texts = (more: Partial<AdviceFacts>) => {
    const { next, requirements, notes } = advise(facts(MONITORING, { ...none, ...more }));
    return [next?.why ?? "", ...requirements.map(({ message }) => message), ...notes.map(({ message }) => message)];
  };

  test("so it does not ask whether the domain sends mail at all", () => {
    const codes = (more: Partial<AdviceFacts>) =>
      advise(facts(MONITORING, { ...none, sendsMail: null, ...more })).notes.map(({ code }) => code);
    expect(codes({})).not.toContain("sends_mail_unset");
    expect(codes({ reportedDays: 20, reportedLately: 0 })).not.toContain("sends_mail_unset");
    expect(codes({ reportedLately: 1 })).toContain("sends_mail_unset");
  });

  test("and repeats what the user declared", () => {
    const advice = advise(facts(MONITORING, { ...none, sendsMail: false }));
    expect(advice.next).toMatchObject({
      action: "reject_all",
      why: "You declared that this domain sends no mail: let receivers reject all mail from it.",
    });
    expect(texts({ sendsMail: false }).join()).not.toMatch(/passed DMARC|in 14 days/);
  });

  test("with reports it says how many days they are about", () => {
    const words = "Reports about 3 of the last 14 days show no mail that passed DMARC.";
    const [why, ...rest] = texts({ sendsMail: false, reportedLately: 3 });
    expect([why?.endsWith(words), rest.includes(words)]).toEqual([true, true]);
    expect(texts({ sendsMail: null, reportedLately: 3 }).join()).toContain(words);
  });
});

describe("notes", () => {
  test.each<[string, string, Partial<AdviceFacts>]>([
    ["subdomain_policy_weaker", `v=DMARC1; p=reject; sp=none; ${RUA}`, {}],
    ["pct_historic", `v=DMARC1; p=quarantine; pct=20; ${RUA}`, {}],
    ["test_mode", `v=DMARC1; p=quarantine; t=y; ${RUA}`, {}],
    ["mailing_lists", `v=DMARC1; p=reject; ${RUA}`, {}],
    ["names_unchecked", MONITORING, { names: [{ name: "a.example.com", exists: null, messages: 1, aligned: 1 }] }],
    ["sends_mail_unset", MONITORING, { sendsMail: null, sources: [] }],
  ])("%s", (code, record, more) => {
    expect(advise(facts(record, more)).notes.map((note) => note.code)).toContain(code as never);
    expect(advise(facts(ALL_SET.replace("quarantine", "none"))).notes.map((note) => note.code)).not.toContain(
      code as never,
    );
  });
});
