import { describe, expect, test } from "bun:test";
import { ALL_SET, facts, MONITORING, policyOf, RUA, source, stranger } from "../../../testing/dmarc-advice.ts";
import { advise } from "./advice.ts";
import type { AdvisedSource, AdviceFacts } from "./advice-model.ts";
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
    ["exactly 100 messages", [source({ messages: 100, aligned: 100 })]],
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
    expect(step?.why).toStartWith(
      "Mailchimp sends 7,244 messages a month that do not pass DMARC. Set up DKIM for example.com at Mailchimp (https://",
    );
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
      { code: "dkim_revoked", severity: "error", message: "The key mail is revoked.", fix: "Publish a key." },
      { code: "mta_sts_missing", severity: "warning", message: "No MTA-STS.", fix: null },
    ] as const;
    const step = next({ sources: [source({ aligned: 500 })], health });
    expect(step?.steps[0]).toBe("The key mail is revoked. Publish a key.");
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
    const address = { ip: "192.0.2.7", reverse_name: null, confirmed: false, asn: null, as_name: null, country: null };
    expect(next({ sources: [source({ aligned: 500, addresses: [address] })] })?.steps.join()).toContain("192.0.2.7");
  });
});
