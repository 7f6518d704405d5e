import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { domainWith, type EvidenceParts, evidenceWith, findingWith, replyEvidenceOf } from "../testing/evidence.ts";
import {
  type DomainEvidence,
  type Evidence,
  evidenceSchema,
  type ProbeFinding,
  type ReplyEvidence,
} from "./evidence.ts";
import { findingOfFailure, findingOfReplies, mostTelling } from "./findings.ts";
import { REPLY_READINGS } from "./reply-rules/signs.ts";
import { type Signals, SIGNAL_VALUES, SUB_STATUSES, type SubStatus, VERDICT_OF } from "./result.ts";
import { decideVerdict } from "./verdict.ts";

const refused = (reading: ProbeFinding["reading"], reply: string | null = "4xx or 5xx"): Partial<EvidenceParts> => ({
  findings: [findingWith({ reading, reply })],
});
const unheard = (reading: ProbeFinding["reading"]): EvidenceParts => ({
  findings: [findingWith({ reading, reply: null, stage: "banner", heard: false })],
});
const failedDomain = (outcome: DomainEvidence["outcome"]): EvidenceParts => ({
  domain: { outcome, hosts: [] },
  findings: [],
});
const LISTED: Evidence["dnsbl"] = { outcome: "listed", listings: [{ listing: "some-list", subject: "x.example" }] };
const CLEAN: Evidence["dnsbl"] = { outcome: "clean", listings: [] };

/** For each sub_status the evidence that leads to it, in the order of contract §4, with what is charged. */
const CASES: ReadonlyArray<readonly [SubStatus, EvidenceParts, "charged" | "free"]> = [
  ["invalid_syntax", { address: { problem: "No @." }, domain: null, findings: [] }, "charged"],
  ["domain_not_found", failedDomain("nxdomain"), "charged"],
  ["no_mail_server", failedDomain("no_mail_server"), "charged"],
  ["null_mx", failedDomain("null_mx"), "charged"],
  ["unroutable_mx", failedDomain("unroutable"), "charged"],
  ["mailbox_not_found", refused("mailbox_not_found"), "charged"],
  ["mailbox_disabled", refused("mailbox_disabled"), "charged"],
  ["null_mx", refused("null_mx"), "charged"],
  ["smtputf8_unsupported", refused("smtputf8_unsupported", null), "charged"],
  ["toxic", { toxic: "x.example" }, "charged"],
  ["disposable", { address: { disposable: "x.example" } }, "charged"],
  ["mailbox_full", refused("mailbox_full"), "charged"],
  ["catch_all", { findings: [findingWith({ catch_all: "yes" })] }, "charged"],
  ["greylisted", refused("greylisted"), "charged"],
  ["rate_limited", refused("rate_limited"), "charged"],
  ["smtp_blocked", refused("blocked"), "charged"],
  ["smtp_blocked", refused("ambiguous"), "charged"],
  ["sender_rejected", refused("sender_rejected"), "charged"],
  ["tls_required", refused("tls_required"), "charged"],
  ["smtp_temporary_error", refused("temporary"), "charged"],
  ["smtp_protocol_error", refused("protocol_error"), "charged"],
  ["smtp_unreachable", unheard("unreachable"), "free"],
  ["smtp_timeout", unheard("timeout"), "free"],
  ["internal_error", unheard("internal"), "free"],
  ["smtp_protocol_error", unheard("protocol_error"), "free"],
  ["dns_error", failedDomain("dns_error"), "free"],
  ["internal_error", failedDomain("local_failure"), "free"],
  ["internal_error", { domain: null, findings: [] }, "free"],
  ["unverifiable_provider", { domain: { unverifiable_provider: "Some" } }, "charged"],
  ["dnsbl_listed", { dnsbl: LISTED }, "charged"],
  ["role_account", { address: { role_account: "info" } }, "charged"],
  ["mailbox_exists", {}, "charged"],
];

const QUALITY_RANGE = { deliverable: [80, 100], risky: [30, 79], undeliverable: [0, 20] } as const;

describe("one thing at a time", () => {
  test.each(CASES)("%s", (subStatus, parts, charge) => {
    const decided = decideVerdict(evidenceWith(parts));
    expect(decided.sub_status).toBe(subStatus);
    expect(decided.verdict).toBe(VERDICT_OF[subStatus]);
    expect(decided.chargeable).toBe(charge === "charged");
    expect(decided.because).toMatch(/^\S.*[.!]$/);
    expect(decided.because).not.toMatch(/null(?! MX)|undefined|""/);
  });

  test("every sub_status has a case", () => {
    expect([...new Set(CASES.map(([subStatus]) => subStatus))].toSorted()).toEqual(SUB_STATUSES.toSorted());
  });

  test("a clean deliverable address has ten pass and full marks", () => {
    const { signals, quality_score, confidence } = decideVerdict(evidenceWith());
    expect(Object.values(signals)).toEqual(Array.from({ length: 10 }, () => "pass"));
    expect([quality_score, confidence]).toEqual([100, 98]);
  });

  test("greylisting that was passed is a pass", () => {
    const greylisted = findingWith({ reading: "greylisted" });
    const { sub_status, signals } = decideVerdict(evidenceWith({ findings: [greylisted, findingWith()] }));
    expect([sub_status, signals.greylisting]).toEqual(["mailbox_exists", "pass"]);
  });

  test("an acceptance without a catch-all answer is one-sided", () => {
    const { sub_status, confidence, signals } = decideVerdict(
      evidenceWith({ findings: [findingWith({ catch_all: "unknown" })] }),
    );
    expect([sub_status, confidence, signals.catch_all]).toEqual(["mailbox_exists", 70, "unknown"]);
  });

  const SIGNAL_ROWS: ReadonlyArray<readonly [Partial<ProbeFinding>, Partial<Signals>]> = [
    [{ reading: "accepted" }, { smtp: "pass", greylisting: "pass" }],
    [{ reading: "mailbox_full" }, { smtp: "warn", greylisting: "pass" }],
    [{ reading: "mailbox_not_found" }, { smtp: "fail", catch_all: "skipped" }],
    [{ reading: "blocked" }, { smtp: "unknown", greylisting: "pass" }],
    [{ reading: "greylisted" }, { smtp: "unknown", greylisting: "warn" }],
    [
      { reading: "timeout", heard: false },
      { smtp: "unknown", greylisting: "skipped" },
    ],
  ];
  test.each(SIGNAL_ROWS)("the signals of the finding %p", (finding, signals) => {
    expect(decideVerdict(evidenceWith({ findings: [findingWith(finding)] })).signals).toMatchObject(signals);
  });

  test.each<readonly [EvidenceParts, string]>([
    [failedDomain("local_failure"), "This machine could not send its DNS queries."],
    [{ domain: null, findings: [] }, "The verification failed on our side."],
    [failedDomain("dns_error"), "DNS gave no usable response for the domain."],
    [
      { domain: { outcome: "dns_error" }, findings: [] },
      "No mail host with a public address was found, and the lookup of at least one failed.",
    ],
    [
      { findings: [findingWith({ reading: "internal", rule: "local_failure", reply: null, heard: false })] },
      "This machine could not open a connection; no probe was sent.",
    ],
    [refused("mailbox_not_found", "550 5.1.1 User unknown"), 'mx.x.example replied "550 5.1.1 User unknown".'],
    [refused("smtputf8_unsupported", null), "mx.x.example does not offer SMTPUTF8, which the address needs."],
  ])("%p: %s", (parts, because) => {
    expect(decideVerdict(evidenceWith(parts)).because).toBe(because);
  });

  test("evidence without mail hosts is not charged, whatever the finding", () => {
    const parts: EvidenceParts = { ...failedDomain("dns_error"), findings: [findingWith({ reading: "greylisted" })] };
    expect(decideVerdict(evidenceWith(parts)).chargeable).toBe(false);
  });

  test("without a reply none is quoted", () => {
    expect(decideVerdict(evidenceWith(unheard("timeout"))).because).toBe("No mail host responded in time.");
  });

  test("an implicit MX lowers the quality, not the verdict", () => {
    const { quality_score, signals, sub_status } = decideVerdict(evidenceWith({ domain: { implicit_mx: true } }));
    expect([sub_status, signals.mx, quality_score]).toEqual(["mailbox_exists", "warn", 95]);
  });
});

describe("an unverifiable provider settles nothing", () => {
  const provider = { unverifiable_provider: "Some" };
  const rows: ReadonlyArray<readonly [SubStatus, Partial<ProbeFinding>]> = [
    ["unverifiable_provider", { reading: "mailbox_not_found", reply: "550" }],
    ["unverifiable_provider", { reading: "mailbox_disabled", reply: "550" }],
    ["unverifiable_provider", { reading: "accepted", catch_all: "yes" }],
    ["unverifiable_provider", { reading: "accepted", catch_all: "no" }],
    ["smtp_blocked", { reading: "blocked", reply: "554" }],
    ["mailbox_full", { reading: "mailbox_full", reply: "452" }],
  ];
  test.each(rows)("%s", (subStatus, finding) => {
    const decided = decideVerdict(evidenceWith({ domain: provider, findings: [findingWith(finding)] }));
    expect(decided.sub_status).toBe(subStatus);
    expect([decided.signals.smtp, decided.signals.catch_all]).toEqual(["unknown", "unknown"]);
  });
});

describe("precedence of contract §4, pairwise", () => {
  /** What applies at the same time, the stronger first; each is a way to change the evidence of a good address. */
  const LAYERS: ReadonlyArray<readonly [SubStatus, EvidenceParts]> = [
    ["invalid_syntax", { address: { problem: "No @." } }],
    ["domain_not_found", { domain: { outcome: "nxdomain" } }],
    ["mailbox_not_found", refused("mailbox_not_found")],
    ["toxic", { toxic: "x.example" }],
    ["disposable", { address: { disposable: "x.example" } }],
    ["mailbox_full", refused("mailbox_full")],
    ["catch_all", { findings: [findingWith({ catch_all: "yes" })] }],
    ["greylisted", refused("greylisted")],
    ["dnsbl_listed", { dnsbl: LISTED }],
    ["role_account", { address: { role_account: "info" } }],
  ];
  const together = (weaker: EvidenceParts, stronger: EvidenceParts): Evidence =>
    evidenceWith({ ...weaker, ...stronger, address: { ...weaker.address, ...stronger.address } });

  for (const [at, [stronger, strong]] of LAYERS.entries())
    for (const [weaker, weak] of LAYERS.slice(at + 1))
      test(`${stronger} before ${weaker}`, () =>
        expect(decideVerdict(together(weak, strong)).sub_status).toBe(stronger));

  test("a list hit counts when no reply settles it", () => {
    for (const parts of [refused("greylisted"), unheard("timeout"), failedDomain("dns_error")]) {
      expect(decideVerdict(evidenceWith({ ...parts, address: { disposable: "x.example" } })).sub_status).toBe(
        "disposable",
      );
      expect(decideVerdict(evidenceWith({ ...parts, toxic: "x.example" })).sub_status).toBe("toxic");
    }
  });

  test("a list hit is not charged when no server responded", () => {
    expect(decideVerdict(evidenceWith({ ...unheard("timeout"), toxic: "x.example" })).chargeable).toBe(false);
    expect(decideVerdict(evidenceWith({ ...refused("greylisted"), toxic: "x.example" })).chargeable).toBe(true);
  });
});

const orNull = <T>(value: T) => fc.constantFrom(null, value);

const anyFinding: fc.Arbitrary<ProbeFinding> = fc.record({
  reading: fc.constantFrom(...REPLY_READINGS, "unreachable", "timeout", "internal"),
  host: fc.constantFrom(null, "mx.x.example"),
  stage: fc.constantFrom(null, "banner", "mail", "rcpt"),
  rule: fc.constant(null),
  reply: fc.constantFrom(null, "550 5.1.1 User unknown"),
  catch_all: fc.constantFrom("yes", "no", "unknown", "skipped"),
  catch_all_age_s: fc.constant(null),
  positive_control: orNull({ recipient: "postmaster" as const, age_s: 0 }),
  retryable: fc.boolean(),
  retry_hint_s: fc.constant(null),
  heard: fc.boolean(),
});

const anyEvidence: fc.Arbitrary<Evidence> = fc
  .record({
    problem: orNull("No @."),
    role: orNull("info"),
    disposable: orNull("x.example"),
    toxic: fc.constantFrom(null, { entry: null }, { entry: "x.example" }),
    dnsbl: fc.constantFrom(null, CLEAN, LISTED),
    outcome: fc.constantFrom(
      null,
      "mail_hosts",
      "nxdomain",
      "no_mail_server",
      "null_mx",
      "unroutable",
      "dns_error",
      "local_failure",
    ),
    implicit: fc.boolean(),
    provider: orNull("Some"),
    findings: fc.array(anyFinding, { maxLength: 3 }),
  })
  .map(({ problem, role, disposable, toxic, dnsbl, outcome, implicit, provider, findings }) => {
    const rest = { implicit_mx: implicit, unverifiable_provider: provider };
    const domain = outcome === null ? null : { outcome, ...rest };
    const address = { problem, role_account: role, disposable };
    return { ...evidenceWith({ address, domain, findings, dnsbl }), toxic };
  });

const DOMAIN_NO: readonly string[] = ["nxdomain", "no_mail_server", "null_mx", "unroutable"];
const MAILBOX_NO: readonly string[] = ["mailbox_not_found", "mailbox_disabled", "null_mx", "smtputf8_unsupported"];

describe("whatever the evidence", () => {
  test("the result is well-formed, and its scores lie in the range of its verdict", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        expect(evidenceSchema.safeParse(evidence).success).toBe(true);
        const { verdict, sub_status, quality_score, confidence, signals, because } = decideVerdict(evidence);
        expect(verdict).toBe(VERDICT_OF[sub_status]);
        const [lowest, highest] = QUALITY_RANGE[verdict];
        expect(quality_score).toBeWithin(lowest, highest + 1);
        expect(confidence).toBeWithin(20, 101);
        expect(Number.isInteger(quality_score) && Number.isInteger(confidence)).toBe(true);
        for (const signal of Object.values(signals)) expect(SIGNAL_VALUES).toContain(signal);
        expect(because).not.toBe("");
      }),
    );
  });

  test("undeliverable follows from the syntax, the domain, or the latest finding about the mailbox", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        if (decideVerdict(evidence).verdict !== "undeliverable") return;
        const reading = evidence.attempts.at(-1)?.finding.reading ?? "";
        const grounds = [
          evidence.address.problem !== null,
          DOMAIN_NO.includes(evidence.domain?.outcome ?? ""),
          MAILBOX_NO.includes(reading) && evidence.domain?.unverifiable_provider == null,
        ];
        expect(grounds).toContain(true);
      }),
    );
  });

  test("a signal fails only with its own verdict or list", () => {
    fc.assert(
      fc.property(anyEvidence, (evidence) => {
        const { verdict, signals } = decideVerdict(evidence);
        const failing = (name: keyof Signals) => signals[name] === "fail";
        if (failing("syntax") || failing("domain") || failing("mx")) expect(verdict).toBe("undeliverable");
        expect(failing("toxic")).toBe(evidence.toxic?.entry != null);
      }),
    );
  });
});

const REPLIES = [
  "250 2.1.5 Ok",
  "252 cannot verify",
  "421 4.7.0 Too many connections",
  "450 4.1.1 User unknown in virtual alias table",
  "450 4.2.0 Greylisted, try again later",
  "452 4.2.2 Over quota",
  "451 4.3.0 Temporary lookup failure",
  "501 5.1.3 Bad recipient address syntax",
  "550 5.1.1 User unknown",
  "550 5.2.1 Account disabled",
  "550 5.7.1 User unknown",
  "550 5.7.1 Client host blocked using a blocklist",
  "550 Rejected",
  "550 5.1.8 Sender address rejected",
  "553 5.6.7 SMTPUTF8 required",
  "554 5.7.1 Service unavailable",
  "556 5.1.10 Recipient address has null MX",
] as const;
const STAGE_OF_US = ["banner", "ehlo", "starttls", "mail"] as const;

/** One host: what it said before RCPT and at RCPT, and how the dialogue ended. */
const anyHost = fc
  .record({
    us: fc.array(fc.tuple(fc.constantFrom(...STAGE_OF_US), fc.constantFrom(...REPLIES)), { maxLength: 2 }),
    submitted: fc.option(fc.constantFrom(...REPLIES), { nil: null }),
    randoms: fc.array(fc.constantFrom(...REPLIES), { maxLength: 2 }),
    kind: fc.constantFrom("closed", "timeout", "connect_timeout", "reply", "garbage", "tls_failed"),
    receivedAnything: fc.boolean(),
  })
  .map(({ us, submitted, randoms, kind, receivedAnything }) => {
    const replies: ReplyEvidence[] = us.map(([stage, line]) => replyEvidenceOf(stage, "us", line));
    if (submitted !== null) {
      replies.push(replyEvidenceOf("rcpt", "submitted", submitted));
      replies.push(...randoms.map((line) => replyEvidenceOf("rcpt", "random", line)));
    }
    const failure = { kind, stage: "banner", receivedAnything } as const;
    return { replies, failure };
  });

describe("whatever mail hosts say", () => {
  test("undeliverable needs a permanent reply to RCPT about this recipient, or to MAIL about SMTPUTF8", () => {
    fc.assert(
      fc.property(fc.array(anyHost, { minLength: 1, maxLength: 3 }), (hosts) => {
        const open: ProbeFinding[] = [];
        let settled: ProbeFinding | null = null;
        for (const { replies, failure } of hosts) {
          settled = findingOfReplies("mx.x.example", replies);
          if (settled !== null) break;
          open.push(findingOfFailure("mx.x.example", replies, failure));
        }
        const finding = settled ?? mostTelling(open);
        if (
          decideVerdict({ ...evidenceWith({ findings: [finding] }), domain: domainWith() }).verdict !== "undeliverable"
        )
          return;
        const said = hosts.flatMap(({ replies }) => replies).filter(({ code }) => code >= 500);
        const definite = said.some(
          ({ stage, about, reading }) =>
            about === "submitted" || (stage === "mail" && reading === "smtputf8_unsupported"),
        );
        expect(definite).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
