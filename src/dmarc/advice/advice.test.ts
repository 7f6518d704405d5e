import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { advise } from "./advice.ts";
import type { AdvisedSource, AdviceFacts } from "./advice-facts.ts";
import { isWeaker } from "../domains/domain-change.ts";
import type { StatePolicy } from "../domains/domain-state.ts";
import { parseRecord } from "../record/record.ts";

const RUA = "rua=mailto:k@r.example";

/** What receivers apply by a record of the domain's own. */
const policyOf = (record: string): StatePolicy | null => {
  const { values } = parseRecord(record);
  if (values === null) return null;
  const { p, sp, np, adkim, aspf, t, pct } = values;
  return { p, sp, np, adkim, aspf, t, pct, own: true, inherited_from: null };
};

const source = (more: Partial<AdvisedSource> = {}): AdvisedSource => ({
  key: "dkim:example.com",
  name: "example.com",
  classification: "authorized",
  messages: 1000,
  aligned: 1000,
  forwarded: 0,
  ...more,
});

/** A domain that has everything. */
const facts = (record: string | null, more: Partial<AdviceFacts> = {}): AdviceFacts => ({
  domain: "example.com",
  isOrganisational: true,
  sendsMail: true,
  status: "active",
  failing: [],
  record,
  policy: record === null ? null : policyOf(record),
  reportedDays: 14,
  reporters: 2,
  sources: [source()],
  names: [],
  ...more,
});

const unmet = (record: string, more: Partial<AdviceFacts>) =>
  advise(facts(record, more))
    .requirements.filter(({ met }) => !met)
    .map(({ code }): string => code);

const MONITORING = `v=DMARC1; p=none; ${RUA}`;
const ALL_SET = `v=DMARC1; p=quarantine; np=reject; ${RUA}`;

describe("the way of a domain that has all that is needed", () => {
  test.each([
    [MONITORING, "monitoring", "rehearse_quarantine", `v=DMARC1; p=quarantine; t=y; ${RUA}`],
    [`v=DMARC1; p=quarantine; t=y; ${RUA}`, "rehearsal", "end_rehearsal", `v=DMARC1; p=quarantine; t=n; ${RUA}`],
    [`v=DMARC1; p=quarantine; t=n; ${RUA}`, "quarantine", "reject", `v=DMARC1; p=reject; t=n; ${RUA}`],
    [`v=DMARC1; p=reject; t=y; ${RUA}`, "reject_rehearsal", "end_rehearsal", `v=DMARC1; p=reject; t=n; ${RUA}`],
    [`v=DMARC1; p=none; t=y; ${RUA}`, "monitoring", "rehearse_quarantine", `v=DMARC1; p=quarantine; t=y; ${RUA}`],
    [`v=DMARC1; ${RUA}`, "monitoring", "rehearse_quarantine", `v=DMARC1; p=quarantine; t=y; ${RUA}`],
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
    ["14 days with reports", { reportedDays: 13 }, ["reported_days"]],
    ["2 reporters", { reporters: 1 }, ["reporters"]],
    ["100 messages", { sources: [source({ messages: 99, aligned: 99 })] }, ["messages"]],
    ["99 % of them aligned", { sources: [source({ aligned: 989 })] }, ["aligned_share"]],
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
    ["nothing but to wait, when there are few reports", ALL_SET, { reportedDays: 3 }, "wait"],
    ["np=reject, while the rest waits", MONITORING, { reportedDays: 3 }, "protect_missing_names"],
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
  const early = { reportedDays: 1, reporters: 1 };
  test.each<[string, string, Partial<AdviceFacts>, boolean]>([
    ["is advised early", MONITORING, early, true],
    ["is advised at the top, where sp is weaker", `v=DMARC1; p=reject; sp=none; ${RUA}`, {}, true],
    ["is not, before any report", MONITORING, { reportedDays: 0 }, false],
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

describe("a domain that sends no mail", () => {
  const silent = { sendsMail: false, reportedDays: 0, reporters: 0, sources: [] };
  test.each([
    [MONITORING, `v=DMARC1; p=reject; ${RUA}`],
    [`v=DMARC1; p=none; sp=none; np=none; t=y; ${RUA}`, `v=DMARC1; p=reject; sp=reject; np=reject; t=n; ${RUA}`],
    [`v=DMARC1; p=quarantine; ${RUA}`, `v=DMARC1; p=reject; ${RUA}`],
  ])("rejects at once: %p", (record, next) => {
    const advice = advise(facts(record, silent));
    expect(advice).toMatchObject({ ready: true, next: { action: "reject_all", record: next } });
    expect(advice.notes.map(({ code }) => code)).toEqual(expect.arrayContaining(["publish_spf_none"]));
  });

  test("also where forged mail comes, but not where mail passes", () => {
    const forged = source({ classification: "unknown", aligned: 0 });
    expect(advise(facts(MONITORING, { ...silent, sources: [forged] })).next?.action).toBe("reject_all");
    const advice = advise(facts(MONITORING, { ...silent, sources: [source({ messages: 1, aligned: 1 })] }));
    expect(advice).toMatchObject({ ready: false, next: { action: "wait", record: null } });
  });

  test("has nothing left to do at p=reject", () => {
    expect(advise(facts(`v=DMARC1; p=reject; ${RUA}`, silent)).next).toBeNull();
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

  test("gets as far as quarantine", () => {
    expect(advise(facts(MONITORING, { sources })).next?.action).toBe("rehearse_quarantine");
  });
});

describe("notes", () => {
  test.each<[string, string, Partial<AdviceFacts>]>([
    ["subdomain_policy_weaker", `v=DMARC1; p=reject; sp=none; ${RUA}`, {}],
    ["pct_historic", `v=DMARC1; p=quarantine; pct=20; ${RUA}`, {}],
    ["test_mode", `v=DMARC1; p=quarantine; t=y; ${RUA}`, {}],
    ["mailing_lists", `v=DMARC1; p=reject; ${RUA}`, {}],
    ["names_unchecked", MONITORING, { names: [{ name: "a.example.com", exists: null }] }],
    ["sends_mail_unset", MONITORING, { sendsMail: null, sources: [] }],
  ])("%s", (code, record, more) => {
    expect(advise(facts(record, more)).notes.map((note) => note.code)).toContain(code as never);
    expect(advise(facts(ALL_SET.replace("quarantine", "none"))).notes.map((note) => note.code)).not.toContain(
      code as never,
    );
  });
});

describe("whatever the record and the mail are", () => {
  const tag = fc.constantFrom(
    ...["p=none", "p=quarantine", "P = Reject ", "sp=none", "sp=reject", "np=none", "np = quarantine", "t=y", "t=n"],
    ...["adkim=s", "aspf=s", "pct=10", "p=x", "sp=x", "x=1", "", RUA],
  );
  const records = fc.array(tag, { maxLength: 7 }).map((tags) => ["v=DMARC1", ...tags].join("; "));
  const counts = fc.record({
    key: fc.constant("k"),
    name: fc.constant("n"),
    classification: fc.constantFrom("authorized", "misconfigured", "forwarder", "unknown", "threat"),
    messages: fc.constantFrom(0, 1, 9, 100, 10_000),
    aligned: fc.constantFrom(0, 1, 9, 100),
    forwarded: fc.constantFrom(0, 1),
  });
  const situations = fc.record({
    isOrganisational: fc.boolean(),
    sendsMail: fc.constantFrom(true, false, null),
    status: fc.constantFrom("active", "active", "active", "active", "pending", "action_required"),
    reportedDays: fc.constantFrom(0, 13, 14, 30, 30),
    reporters: fc.constantFrom(0, 2, 2),
    sources: fc.array(counts, { maxLength: 4 }),
    names: fc.constantFrom([], [{ name: "a", exists: null }], [{ name: "a", exists: true }]),
  });

  test("no advice weakens: no policy, no alignment, no test mode over a policy in force", () => {
    fc.assert(
      fc.property(records, situations, (record, situation) => {
        const { next } = advise(facts(record, situation as Partial<AdviceFacts>));
        if (next?.record == null) return;
        const [before, after] = [policyOf(record), policyOf(next.record)];
        expect(isWeaker(before, after)).toBe(false);
        expect([after?.adkim, after?.aspf, after?.pct]).toEqual([before?.adkim, before?.aspf, before?.pct]);
        expect(next.record).not.toBe(record);
        expect(parseRecord(next.record).tags.length).toBeGreaterThanOrEqual(parseRecord(record).tags.length);
      }),
      { numRuns: 2000 },
    );
  });

  test("following the advice again and again comes to an end", () => {
    fc.assert(
      fc.property(records, (start) => {
        let record = start;
        for (let steps = 0; steps < 8; steps++) {
          const next = advise(facts(record)).next?.record ?? null;
          if (next === null) return;
          record = next;
        }
        throw new Error(`no end from ${start}`);
      }),
      { numRuns: 500 },
    );
  });
});
