import { describe, expect, test } from "bun:test";
import { ALL_SET, facts, MONITORING, RUA, source } from "../../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";
import type { AdviceFacts } from "./advice-facts.ts";

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

  test("so it asks whether the domain sends mail only where reports or a record show none", () => {
    const next = (more: Partial<AdviceFacts>) => advise(facts(MONITORING, { ...none, sendsMail: null, ...more })).next;
    expect(next({})?.action).toBe("wait");
    expect(next({ silentDays: 36 })?.why).toBe("No mail of example.com has passed DMARC in 36 days. Does it send any?");
    const declaredSilent = "It receives no mail (null MX).";
    expect(next({ declaredSilent })?.action).toBe("set_sends_mail");
    expect(next({ declaredSilent, sendsMail: true })?.action).toBe("wait");
    const failing = source({ classification: "misconfigured", aligned: 0 });
    expect(next({ silentDays: 36, sources: [failing] })?.action).toBe("fix_sources");
  });

  test("and waits for them in one sentence, unless there are some that do not count", () => {
    const { next } = advise(facts(MONITORING, none));
    expect(next).toMatchObject({ action: "wait", why: expect.stringMatching(/^No report about the last 30 days/) });
    expect(texts({ unauthenticated: 9 })[0]).toContain("0 of 14 days with reports so far");
  });

  test("and repeats what the user declared", () => {
    const advice = advise(facts(MONITORING, { ...none, sendsMail: false }));
    expect(advice.next).toMatchObject({
      action: "reject_all",
      why: "You declared that this domain sends no mail: let receivers reject all mail from it.",
    });
    expect(texts({ sendsMail: false }).join()).not.toMatch(/passed DMARC|in 14 days/);
  });

  test("with reports it says that they confirm it", () => {
    const words = "You declared that this domain sends no mail, and no mail has passed DMARC in 14 days.";
    expect(texts({ sendsMail: false, reportedLately: 3 })).toContain(words);
  });
});

describe("notes", () => {
  test.each<[string, string, Partial<AdviceFacts>]>([
    ["subdomain_policy_weaker", `v=DMARC1; p=reject; sp=none; ${RUA}`, {}],
    ["pct_historic", `v=DMARC1; p=quarantine; pct=20; ${RUA}`, {}],
    ["test_mode", `v=DMARC1; p=quarantine; t=y; ${RUA}`, {}],
    ["mailing_lists", ALL_SET, { sources: [source({ messages: 1010, forwarded: 10 })] }],
    ["open_alerts", MONITORING, { openAlerts: ["Mail of Brevo fails"] }],
    ["names_unchecked", MONITORING, { names: [{ name: "a.example.com", exists: null, messages: 1, aligned: 1 }] }],
    ["sends_mail_unset", `v=DMARC1; p=reject; ${RUA}`, { sendsMail: null, sources: [], silentDays: 14 }],
  ])("%s", (code, record, more) => {
    expect(advise(facts(record, more)).notes.map((note) => note.code)).toContain(code as never);
    expect(advise(facts(ALL_SET.replace("quarantine", "none"))).notes.map((note) => note.code)).not.toContain(
      code as never,
    );
  });
});
