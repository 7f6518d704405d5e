import { describe, expect, test } from "bun:test";
import {
  ALL_SET,
  detailOf,
  facts,
  historyOf,
  MONITORING,
  policyOf,
  RUA,
  source,
  stranger,
  TODAY,
} from "../../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";
import { conclusionOf } from "./advice-model.ts";
import type { AdvisedSource, AdviceFacts } from "./advice-facts.ts";
import type { StatePolicy } from "../../records/domains/domain-state.ts";

const NAME = { name: "a", exists: true, messages: 100, aligned: 100 };

/** Mail of a mailbox provider that nothing ties to the domain's account there. */
const othersAt = (messages: number, firstDay: string) =>
  stranger(messages, { key: "service:google-workspace/others", kind: "service", first_day: firstDay });

const unmet = (record: string, more: Partial<AdviceFacts>) =>
  advise(facts(record, more))
    .requirements.filter(({ met }) => !met)
    .map(({ code }): string => code);

describe("the way of a domain that has all that is needed", () => {
  test.each([
    [MONITORING, "monitoring", "rehearse_quarantine", `v=DMARC1; p=quarantine; t=y; ${RUA}`],
    [`v=DMARC1; p=quarantine; t=y; ${RUA}`, "rehearsal", "end_rehearsal", `v=DMARC1; p=quarantine; ${RUA}`],
    [`v=DMARC1; p=quarantine; t=n; ${RUA}`, "quarantine", "reject", `v=DMARC1; p=reject; ${RUA}`],
    [`v=DMARC1; p=reject; t=y; ${RUA}`, "reject_rehearsal", "end_rehearsal", `v=DMARC1; p=reject; ${RUA}`],
    [`v=DMARC1; p=quarantine; pct=20; ${RUA}`, "quarantine", "reject", `v=DMARC1; p=reject; ${RUA}`],
    [`v=DMARC1; p=reject; pct=20; ${RUA}`, "reject", "remove_pct", `v=DMARC1; p=reject; ${RUA}`],
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

test("mail that receivers could not check stops no stage while it is little", () => {
  const recentOf = (failing: number) => [source({ messages: 1_000, aligned: 1_000 - failing })];
  const unmetWith = (failing: number, unchecked: number) =>
    unmet(ALL_SET, { recentSources: recentOf(failing), recentUnchecked: () => unchecked });
  expect(unmetWith(15, 0)).toEqual(["recent_share"]);
  expect(unmetWith(15, 15)).toEqual([]);
  expect(unmetWith(35, 35)).toEqual(["recent_share"]);
});

describe("enforcement waits for", () => {
  test.each<[string, Partial<AdviceFacts>, string[]]>([
    ["14 days with reports under the present policy", { reportedDays: 30, policyDays: 13 }, ["reported_days"]],
    ["2 reporters", { reporters: 1 }, ["reporters"]],
    ["10 messages", { sources: [source({ messages: 9, aligned: 9 })] }, ["messages"]],
    [
      "100 messages where one of them failed",
      { sources: [source({ messages: 99, aligned: 98 })] },
      ["messages", "aligned_share", "recent_share"],
    ],
    ["99 % of them aligned", { sources: [source({ aligned: 989 })], recentSources: [source()] }, ["aligned_share"]],
    ["99 % of those of the last days as well", { recentSources: [source({ aligned: 989 })] }, ["recent_share"]],
    ["any mail at all", { sources: [] }, ["messages", "aligned_share"]],
    [
      "a word about unknown sources with ten messages",
      {
        sources: [source({ messages: 5000, aligned: 5000 }), stranger(10)],
      },
      ["unknown_sources"],
    ],
    [
      "a word about mail of unknown accounts at a provider, from 1 % and two weeks",
      { sources: [source(), othersAt(11, "2026-01-01")] },
      ["unknown_sources"],
    ],
    [
      "a word about unknown sources with a thousandth of the mail",
      {
        sources: [source({ messages: 9_990, aligned: 9_990 }), stranger(10)],
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
    ["exactly 10 messages, of which none failed", [source({ messages: 10, aligned: 10 })]],
    ["exactly 99 %", [source({ aligned: 990 })]],
    ["forwarders that fail", [source(), source({ classification: "forwarder", aligned: 0 })]],
    ["threats that fail", [source(), source({ classification: "threat", messages: 9000, aligned: 0 })]],
    ["messages passed on by others", [source({ messages: 1500, forwarded: 500 })]],
    ["an unknown source of little weight", [source(), stranger(9)]],
    ["an unknown source of a small share", [source({ messages: 100_000, aligned: 100_000 }), stranger(99)]],
    [
      "unauthenticated mail of an organization that comes and goes",
      [source(), stranger(500, { authenticated_unaligned: 0, first_day: "2026-01-20" })],
    ],
    [
      "unauthenticated mail whose addresses are still looked up",
      [source(), stranger(500, { kind: "unauthenticated", authenticated_unaligned: 0 })],
    ],
    [
      "mail of addresses beyond those that are kept apart",
      [source(), stranger(500, { key: "other", kind: "network" })],
    ],
    ["mail of other accounts at a provider of two weeks less a day", [source(), othersAt(500, "2026-01-19")]],
    [
      "mail of other accounts at a provider below 1 %",
      [source({ messages: 10_000, aligned: 10_000 }), othersAt(99, "2026-01-01")],
    ],
    [
      "mail of other accounts at a provider that was forwarded",
      [source(), { ...othersAt(500, "2026-01-01"), aligned: 300, forwarded: 191 }],
    ],
  ])("nothing more with %s", (_, sources) => {
    expect(unmet(MONITORING, { sources })).toEqual([]);
  });
});

describe("what to do first", () => {
  test.each<[string, string | null, Partial<AdviceFacts>, string]>([
    ["the record, when reports do not come here", MONITORING, { status: "action_required" }, "fix_record"],
    ["the record, when its policy is void", `v=DMARC1; p=foo; ${RUA}`, {}, "fix_record"],
    ["the record, when there is none", null, { status: "pending" }, "publish_record"],
    ["a word, when sources are unknown", ALL_SET, { sources: [source(), stranger(10)] }, "classify_sources"],
    ["the sources, when mail fails", ALL_SET, { sources: [source({ aligned: 500 })] }, "fix_sources"],
    ["the sources, when mail fails of late", ALL_SET, { recentSources: [source({ aligned: 500 })] }, "fix_sources"],
    ["nothing but to wait, when there are few reports", ALL_SET, { policyDays: 3 }, "wait"],
    ["nothing but to wait, where np=reject would cost the rehearsal", MONITORING, { policyDays: 3 }, "wait"],
    ["np=reject, while the rest waits", `v=DMARC1; p=quarantine; ${RUA}`, { policyDays: 3 }, "protect_missing_names"],
    [
      "the sources, before np=reject",
      `v=DMARC1; p=quarantine; ${RUA}`,
      { sources: [source({ aligned: 500 })] },
      "fix_sources",
    ],
    [
      "the sources, also at the top",
      `v=DMARC1; p=reject; ${RUA}`,
      { sources: [source({ aligned: 500 })] },
      "fix_sources",
    ],
    ["sp, when all else is done", `v=DMARC1; p=reject; sp=none; np=reject; ${RUA}`, {}, "protect_subdomains"],
    [
      "not sp, when mail of subdomains fails",
      `v=DMARC1; p=reject; sp=none; np=reject; ${RUA}`,
      { policyDays: 1, names: [{ ...NAME, aligned: 90 }] },
      "nothing",
    ],
  ])("%s", (_, record, more, action) => {
    expect(advise(facts(record, more)).next?.action ?? "nothing").toBe(action as never);
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
  const QUARANTINE = `v=DMARC1; p=quarantine; ${RUA}`;
  const early = { reportedDays: 1, policyDays: 1, reporters: 1 };
  test.each<[string, string, Partial<AdviceFacts>, boolean]>([
    ["is not advised before p is in force", MONITORING, early, false],
    ["is not advised in a rehearsal", `v=DMARC1; p=quarantine; t=y; ${RUA}`, early, false],
    ["is advised at quarantine", QUARANTINE, early, true],
    ["is advised at the top, where sp is weaker", `v=DMARC1; p=reject; sp=none; ${RUA}`, {}, true],
    ["is not, before any report", QUARANTINE, { reportedDays: 0, policyDays: 0 }, false],
    ["is not, where np stands already", `v=DMARC1; p=quarantine; np=none; ${RUA}`, early, false],
    ["is not, where sp says so already", `v=DMARC1; p=quarantine; sp=reject; ${RUA}`, early, false],
    ["is not, where the domain is a subdomain", QUARANTINE, { ...early, isOrganisational: false }, false],
    ["is, where the names that send exist", QUARANTINE, { ...early, names: [{ ...NAME, exists: true }] }, true],
    [
      "is not, where a name that sends does not exist",
      QUARANTINE,
      { ...early, names: [{ ...NAME, exists: false }] },
      false,
    ],
    ["is not, where nobody knows", QUARANTINE, { ...early, names: [{ ...NAME, exists: null }] }, false],
  ])("%s", (_, record, more, isAdvised) => {
    expect(advise(facts(record, more)).next?.action === "protect_missing_names").toBe(isAdvised);
  });
});

describe("a domain whose mail is passed on", () => {
  const sources = [source(), source({ classification: "forwarder", messages: 50, aligned: 0 })];

  test("stops at quarantine, with the reason", () => {
    const advice = advise(facts(ALL_SET, { sources }));
    expect(advice).toMatchObject({ stage: "quarantine", ready: false, next: null });
    expect(advice.requirements.find(({ met }) => !met)?.message).toContain("Stay at p=quarantine");
    expect(advice.notes.map(({ code }) => code)).toContain("mailing_lists");
  });

  test("also stays at the rehearsal of reject", () => {
    const advice = advise(facts(`v=DMARC1; p=reject; t=y; ${RUA}`, { sources }));
    expect(advice).toMatchObject({ stage: "reject_rehearsal", ready: false, next: null });
    expect(advice.requirements.find(({ met }) => !met)?.message).toContain("Keep t=y");
  });

  test("gets as far as quarantine", () => {
    expect(advise(facts(MONITORING, { sources })).next?.action).toBe("rehearse_quarantine");
  });
});

describe("the obstacles", () => {
  const obstacles = (more: Parameters<typeof facts>[1]) =>
    advise(facts(MONITORING, more)).obstacles.map(({ source: key, problem, messages, failing }) => [
      key,
      problem,
      messages,
      failing,
    ]);

  test("are all sources that keep a requirement from being met, the most mail first", () => {
    const failing = source({ key: "service:x", messages: 60, aligned: 10 });
    expect(obstacles({ sources: [source(), failing, stranger(61)] })).toEqual([
      ["org:example.net", "unclassified", 61, 61],
      ["service:x", "failing", 60, 50],
    ]);
    expect(obstacles({ sources: [source(), source({ key: "one", messages: 2, aligned: 1 })] })).toEqual([]);
  });

  test("are at most 20", () => {
    const many = Array.from({ length: 30 }, (_, n) => source({ key: `k${n}`, messages: 100 + n, aligned: 0 }));
    expect(
      obstacles({ sources: many })
        .map(([key]) => key)
        .slice(0, 2),
    ).toEqual(["k29", "k28"]);
    expect(obstacles({ sources: many })).toHaveLength(20);
  });
});

describe("the obstacle", () => {
  const mailchimp = source({
    ...{ key: "service:mailchimp", kind: "service", name: "Mailchimp", service_id: "mailchimp" },
    ...{ classification: "misconfigured", messages: 7_244, aligned: 0, authenticated_unaligned: 7_244 },
  });
  const next = (more: Partial<AdviceFacts>, record = MONITORING) => advise(facts(record, more)).next;

  test("is the sender that holds the most mail, with what to do there", () => {
    const step = next({ sources: [source(), source({ messages: 50, aligned: 0 }), mailchimp] });
    expect(step).toMatchObject({ action: "fix_sources", source: "service:mailchimp", record: null });
    expect(step?.why).toStartWith("Mailchimp: 7,244 messages of the last 30 days failed.");
    expect(step?.steps[0]).toStartWith("Set up DKIM for example.com at Mailchimp (https://");
    expect(step?.steps.length).toBeGreaterThan(1);
  });

  test("is the unknown sender when that sends more, and the failing one otherwise", () => {
    const failing = source({ messages: 60, aligned: 0 });
    expect(next({ sources: [source(), failing, stranger(61)] })).toMatchObject({
      action: "classify_sources",
      source: "org:example.net",
    });
    expect(next({ sources: [source(), failing, stranger(59)] })?.action).toBe("fix_sources");
  });

  test("comes with the invalid key that the health check found", () => {
    const health = [
      {
        code: "dkim_revoked",
        severity: "error",
        ...{ message: "The key mail is revoked.", fix: "Publish a key." },
        key: { selector: "mail", isInUse: false, isNeverValid: false },
      },
      { code: "mta_sts_missing", severity: "warning", message: "No MTA-STS.", fix: null, key: null },
    ] as const;
    const signed = (selector: string) =>
      source({ aligned: 500, dkim: [{ domain: "example.com", selector, aligned: true, messages: 500 }] });
    const step = next({ sources: [signed("mail")], health });
    expect(step?.steps[0]).toBe("The key mail is revoked. Publish a key.");
    expect(next({ sources: [signed("other")], health })?.steps.join()).not.toContain("The key mail");
    expect(step?.steps.join()).not.toContain("MTA-STS");
    const { notes } = advise(facts(MONITORING, { health }));
    expect(notes.map(({ code, message }) => [code, message])).toEqual([
      ["health", "The key mail is revoked. Publish a key."],
      ["health", "No MTA-STS."],
    ]);
  });

  test("of strict alignment names the domain to sign as", () => {
    const dkim = [{ domain: "app.example.com", selector: "s", aligned: true, messages: 500 }];
    const step = next({ sources: [source({ aligned: 500, dkim })] }, `v=DMARC1; p=none; adkim=s; ${RUA}`);
    expect(step?.steps[0]).toContain("signs as app.example.com");
    expect(step?.steps[0]).toContain("Have it sign as example.com");
  });

  test("of own servers names their addresses for SPF", () => {
    const history = historyOf({ sinceDay: TODAY - 29, lastDay: TODAY - 1 });
    const detail = detailOf({
      addresses: Array.from({ length: 63 }, (_, n) => ({ ip: `192.0.2.${n}`, failing: 99 - n })),
    });
    const step = next({ sources: [source({ aligned: 500, history })], detailOf: () => detail });
    expect(step?.steps).toEqual([
      "Sign the mail with DKIM as example.com on the servers that fail: 192.0.2.0 (99), 192.0.2.1 (98), 192.0.2.2 (97), 60 more.",
      "Or let SPF pass: use an envelope address at example.com, and have its SPF record name these addresses.",
    ]);
  });
});

describe("a sender", () => {
  const key = (isInUse: boolean) => ({ selector: "s1", isInUse, isNeverValid: false });
  const missing = (isInUse: boolean) => ({
    ...({ code: "dkim_missing", severity: "error" } as const),
    ...{ message: "There is no DKIM key at s1._domainkey.example.com.", fix: "Publish the key." },
    key: key(isInUse),
  });
  const cause = { code: "dkim_failing", domain: "example.com", selector: "s1", result: "permerror" } as const;
  const broken = source({
    ...{ key: "service:sendgrid", kind: "service", name: "SendGrid", messages: 300, aligned: 240 },
    history: historyOf({ sinceDay: TODAY - 3, hasPassedBefore: true, messages: 60, failing: 60 }),
  });
  const large = source({ messages: 100_000, aligned: 100_000 });
  const old = source({ key: "org:old.example", classification: "misconfigured", messages: 5_000, aligned: 0 });

  test("that used to pass and fails now comes before a larger one that never passed, and stops the next stage", () => {
    const detail = detailOf({ causes: [cause], results: "DKIM permerror", selectors: new Set(["s1"]) });
    const advice = advise(facts(MONITORING, { sources: [large, broken, old], detailOf: () => detail }));
    expect(advice.next).toEqual({
      ...{ action: "fix_sources", source: "service:sendgrid", record: null },
      why: "SendGrid: DKIM signatures of example.com with selector s1 have failed since 2026-01-28 (permerror: receivers find no key that they can use). Its mail passed until then; 60 of 60 messages failed since then, the last on 2026-01-30.",
      steps: ["Publish the key that SendGrid signs with at s1._domainkey.example.com."],
    });
    const small = advise(facts(MONITORING, { sources: [large, broken], detailOf: () => detail }));
    expect([small.ready, small.next?.source]).toEqual([false, "service:sendgrid"]);
    expect(small.requirements.find(({ met }) => !met)?.code).toBe("no_new_failures");
    expect(small.obstacles.map(({ source: one }) => one)).toEqual(["service:sendgrid"]);
  });

  test("has the steps of its own selectors only", () => {
    const other = { ...missing(false), key: { selector: "zendesk1", isInUse: false, isNeverValid: false } };
    const spf = {
      code: "spf_lookups",
      severity: "error",
      message: "13 lookups.",
      fix: "Cut them.",
      key: null,
    } as const;
    const steps = (usesSpf: boolean) =>
      advise(
        facts(MONITORING, {
          sources: [{ ...old, history: historyOf() }],
          health: [other, missing(false), spf],
          detailOf: () => detailOf({ selectors: new Set(["s1"]), usesSpf }),
        }),
      ).next?.steps.join(" ");
    expect(steps(false)).toContain("There is no DKIM key at s1._domainkey.example.com. Publish the key.");
    expect(steps(false)).not.toMatch(/lookups/);
    expect(steps(true)).toContain("13 lookups. Cut them.");
  });

  test("signs with a key that has an error: that comes before any policy", () => {
    const signer = source({ dkim: [{ domain: "example.com", selector: "s1", aligned: true, messages: 500 }] });
    const advice = advise(facts(MONITORING, { health: [missing(true)], sources: [signer] }));
    // Reports that do not count, such as forged ones, can name a selector that no sender uses.
    expect(advise(facts(MONITORING, { health: [missing(true)] })).ready).toBe(true);
    expect(advice).toMatchObject({
      ready: false,
      next: { action: "fix_key", why: missing(true).message, steps: ["Publish the key."] },
    });
    expect(advise(facts(MONITORING, { health: [missing(false)] })).ready).toBe(true);
  });

  test.each([
    ["is signed with a key that never existed", true, false],
    ["was, and is no longer", false, true],
  ])("whose mail passes by SPF %s", (_, isInUse, ready) => {
    const never = { ...missing(isInUse), key: { ...key(isInUse), isNeverValid: true } };
    const advice = advise(facts(MONITORING, { health: [never] }));
    expect([advice.ready, advice.next?.action === "fix_key"]).toEqual([ready, isInUse]);
  });

  test("that has recovered leaves nothing to do but to wait, until a day", () => {
    const history = historyOf({ sinceDay: TODAY - 25, lastDay: TODAY - 10, hasRecovered: true });
    const recovered = source({ name: "Brevo", key: "service:brevo", messages: 1_000, aligned: 500, history });
    const ownDays = Array.from({ length: 30 }, (_, at) => ({
      ...{ day: TODAY - 29 + at, messages: 100, forwarded: 0 },
      aligned: at >= 5 && at < 20 ? 50 : 100,
    }));
    const more = { sources: [source(), recovered], recentSources: [source()], ownDays };
    const advice = advise(facts(MONITORING, more));
    expect(advice.next).toMatchObject({ action: "wait", source: null });
    expect(advice.next?.why).toBe(
      "Brevo: its mail has passed since 2026-01-22; 500 messages of the last 30 days failed before. There is nothing to do: 99 % of the mail of 30 days will have passed on about 2026-02-20.",
    );
    expect([advice.ready, advice.not_before, advice.obstacles]).toEqual([false, "2026-02-20", []]);
    // Another sender still fails.
    expect(advise(facts(MONITORING, { ...more, sources: [source(), recovered, old] })).next?.source).toBe(old.key);
  });
});

describe("a domain with little mail", () => {
  const few = (failing: number) => ({
    sources: [source({ messages: 12, aligned: 12 })],
    little: { messages: 36, failing, reporters: 2 },
  });

  test("goes on after four weeks of which it has reports, when none failed", () => {
    const rare = { policyDays: 9, policyAgeDays: 28, reporters: 0 };
    expect(advise(facts(MONITORING, { ...few(0), ...rare })).next?.action).toBe("rehearse_quarantine");
    const early = advise(facts(MONITORING, { ...few(0), ...rare, policyAgeDays: 20, policyDays: 6 }));
    expect([early.next?.action, early.not_before]).toEqual(["wait", "2026-02-09"]);
  });

  test.each([
    ["waits for a second reporter", 59, 1, 0, false],
    ["goes on with one after 60 days", 60, 1, 0, true],
    ["needs the second where some mail failed", 60, 1, 1, false],
    ["needs one at least", 60, 0, 0, false],
  ])("%s", (_, policyAgeDays, reporters, failing, met) => {
    const little = { messages: 36, failing, reporters };
    const advice = advise(facts(MONITORING, { ...few(failing), little, reporters: 0, policyDays: 9, policyAgeDays }));
    expect(advice.requirements.find(({ code }) => code === "reporters")?.met).toBe(met);
    expect([advice.ready, advice.not_before]).toEqual([met, null]);
  });

  test("says when one provider is enough", () => {
    const little = { messages: 36, failing: 0, reporters: 1 };
    const textAt = (policyAgeDays: number) =>
      advise(facts(MONITORING, { ...few(0), little, reporters: 0, policyAgeDays })).requirements.find(
        ({ code }) => code === "reporters",
      )?.message;
    const period = "with at least two days since the present policy was published, at most 90 days ago";
    const sole = "With little mail of which none failed, 1 is enough after 60 days.";
    expect(textAt(30)).toBe(`1 of 2 reporters so far, each ${period}. ${sole}`);
    expect(textAt(60)).toBe(`1 reporter ${period}. ${sole}`);
  });

  test("needs a rate when some failed, and gets no date for that", () => {
    const advice = advise(facts(MONITORING, { ...few(1), policyDays: 9 }));
    expect([advice.ready, advice.not_before]).toEqual([false, null]);
    expect(advice.requirements.find(({ code }) => code === "messages")?.message).toBe(
      "12 messages in the last 30 days: too few for a rate. 36 messages since the present policy was published, at most 90 days ago; 1 failed. 100 are needed, or ten of which none failed.",
    );
  });
});

test("a complete policy with an open alert says so", () => {
  const advice = advise(facts(`v=DMARC1; p=reject; ${RUA}`, { openAlerts: ["Forged mail"] }));
  expect(advice.next).toBeNull();
  expect(conclusionOf(advice)).toBe("Policy complete. 1 alert is open: Forged mail.");
});
