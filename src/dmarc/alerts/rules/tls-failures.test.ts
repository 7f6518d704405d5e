import { describe, expect, test } from "bun:test";
import { DAY_MS, isoDay } from "../../../foundation/base/days.ts";
import { createApps } from "../../../testing/app.ts";
import { createDmarcAlertHarness, expectDocumented } from "../../../testing/dmarc-alert-harness.ts";
import { composeMail } from "../../../notifications/mail/compose-mail.ts";
import { MAIL_LINKS } from "../../../testing/mailing.ts";
import { alertSection } from "./alert-mails.ts";
import type { StoredTlsReport } from "./alert-rule-store.ts";
import { tlsFailureText } from "../../reports/report/tls-report.ts";
import { judgeTlsFailures, sumTlsFailures } from "./tls-failures.ts";

const start = createApps();
const TODAY = 20_000;

interface Made {
  readonly day: number;
  readonly good: number;
  /** Failed sessions by type. */
  readonly bad?: Readonly<Record<string, number>>;
  /** Failed sessions that no details tell of. */
  readonly rest?: number;
  readonly org?: string;
  readonly type?: string | null;
}

const reportOf = ({ day, good, bad = {}, rest = 0, org = "google", type = "sts" }: Made): StoredTlsReport => {
  const failures = Object.entries(bad).map(([resultType, sessions]) => ({
    resultType,
    sessions,
    mxHost: "mx.example.com",
  }));
  const failedSessions = rest + failures.reduce((sum, { sessions }) => sum + sessions, 0);
  const policy = { domain: "example.com", policyType: type, successfulSessions: good, failedSessions, failures };
  const beginMs = day * DAY_MS;
  return { org, beginMs, endMs: beginMs + DAY_MS - 1, receivedAtMs: beginMs + DAY_MS + 1, policies: [policy] };
};

describe("TLS reports are summed up", () => {
  const sums = (reports: readonly Made[], known: readonly string[] = []) =>
    sumTlsFailures(reports.map(reportOf), TODAY, new Set(known)).map(
      ({ policyType, resultType, failed, sessions }) => `${policyType} ${resultType} ${failed}/${sessions}`,
    );
  test.each<readonly [string, readonly Made[], readonly string[]]>([
    [
      "by type",
      [{ day: TODAY, good: 90, bad: { "certificate-expired": 6, "validation-failure": 4 } }],
      ["sts certificate-expired 6/100", "sts validation-failure 4/100"],
    ],
    [
      "over two days",
      [
        { day: TODAY, good: 5, bad: { "tlsa-invalid": 5 } },
        { day: TODAY - 1, good: 10 },
        { day: TODAY - 2, good: 99 },
      ],
      ["sts tlsa-invalid 5/20"],
    ],
    [
      "over the last two with reports",
      [
        { day: TODAY - 5, good: 5, bad: { "tlsa-invalid": 5 } },
        { day: TODAY - 3, good: 10 },
      ],
      ["sts tlsa-invalid 5/20"],
    ],
    [
      "by policy",
      [
        { day: TODAY, good: 1, rest: 1 },
        { day: TODAY, good: 2, rest: 2, type: "tlsa" },
      ],
      ["sts unspecified 1/2", "tlsa unspecified 2/4"],
    ],
    [
      "of all reporters",
      [
        { day: TODAY, good: 1, rest: 1 },
        { day: TODAY, good: 2, rest: 2, org: "microsoft" },
      ],
      ["sts unspecified 3/6"],
    ],
    [
      "with what details leave out",
      [{ day: TODAY, good: 0, bad: { "tlsa-invalid": 3 }, rest: 2 }],
      ["sts tlsa-invalid 3/5", "sts unspecified 2/5"],
    ],
    [
      "with types that nobody knows as one",
      [{ day: TODAY, good: 0, bad: { "made-up": 3, constructor: 2 } }],
      ["sts unspecified 5/5"],
    ],
    ["without what is long ago", [{ day: TODAY - 8, good: 0, rest: 50 }], []],
    [
      "with a policy type that has blanks",
      [{ day: TODAY, good: 0, rest: 2, type: "odd one" }],
      ["odd-one unspecified 2/2"],
    ],
    ["with none", [{ day: TODAY, good: 0, rest: 2, type: null }], [" unspecified 2/2"]],
  ])("%s", (_, reports, expected) => expect(sums(reports)).toEqual([...expected]));

  test("with zeros for what failed before", () => {
    const known = ["example.com sts certificate-expired", "example.com tlsa tlsa-invalid"];
    expect(sums([{ day: TODAY, good: 20 }], known)).toEqual(["sts certificate-expired 0/20"]);
  });
});

test.each([
  [100, 10, "failing"],
  [100, 9, "unclear"],
  [200, 10, "failing"],
  [201, 10, "unclear"],
  [10, 10, "failing"],
  [1_000, 24, "ended"],
  [1_000, 25, "unclear"],
  [3, 0, "ended"],
  [0, 0, "unclear"],
] as const)("of %d sessions %d failed: %s", (sessions, failed, judgement) => {
  expect(judgeTlsFailures({ sessions, failed })).toBe(judgement);
});

test("every result type of RFC 8460 has words, about the policy's domain where it needs one", () => {
  const types = [
    ...["starttls-not-supported", "certificate-host-mismatch", "certificate-expired", "certificate-not-trusted"],
    ...["validation-failure", "tlsa-invalid", "dnssec-invalid", "dane-required"],
    ...["sts-policy-fetch-error", "sts-policy-invalid", "sts-webpki-invalid", "unspecified"],
  ];
  const words = types.map((type) => tlsFailureText(type, "example.com"));
  expect(new Set(words.map(({ meaning }) => meaning)).size).toBe(types.length);
  expect(words.map(({ advice }) => advice).join()).not.toContain("DOMAIN");
  expect(tlsFailureText("sts-policy-fetch-error", "example.com").advice).toContain(
    "https://mta-sts.example.com/.well-known",
  );
});

describe("a review of TLS reports", () => {
  const newHarness = createDmarcAlertHarness();
  const EXPIRED = { "certificate-expired": 30 };
  const begin = () => {
    const harness = newHarness();
    const { number } = harness.add("example.com");
    let serial = 0;
    return {
      harness,
      /** A report about the day before today arrives. */
      async arrive(made: Omit<Made, "day">, author: string | null = null): Promise<void> {
        const nowMs = harness.clock.nowMs();
        const { org, beginMs, endMs, policies } = reportOf({ ...made, day: Math.floor(nowMs / DAY_MS) - 1 });
        serial += 1;
        harness.db.sqlite.run(
          `INSERT INTO dmarc_tls_reports (id, domain, ingestion, org, begin_ms, end_ms, successful_sessions, failed_sessions,
            body, sameness, received_at_ms) VALUES (?, ?, '', ?, ?, ?, 0, 0, ?, ?, ?)`,
          [
            ...[`${1_000 + serial}`, number, org, beginMs, endMs, JSON.stringify({ contact: null, policies })],
            ...[author === null ? `s${serial}` : `s${serial} ${author}`, nowMs],
          ],
        );
        await harness.review(number);
      },
      states: () => harness.events().map(({ data }) => `${data.result_type} ${data.state}`),
    };
  };

  test("alerts once when sessions begin to fail, and once when that is over", async () => {
    const { harness, arrive, states } = begin();
    await arrive({ good: 100 });
    for (let day = 0; day < 4; day++) {
      await harness.clock.advance(DAY_MS);
      await arrive({ good: 100, bad: EXPIRED });
      await arrive({ good: 50, org: "microsoft" });
    }
    expect(states()).toEqual(["certificate-expired began"]);
    await harness.clock.advance(DAY_MS);
    await arrive({ good: 100 });
    expect(states()).toEqual(["certificate-expired began"]);
    await harness.clock.advance(DAY_MS);
    await arrive({ good: 100 });
    await arrive({ good: 50, org: "microsoft" });
    expect(states()).toEqual(["certificate-expired began", "certificate-expired ended"]);
    await harness.clock.advance(DAY_MS);
    await arrive({ good: 100, bad: EXPIRED });
    expect(states()).toEqual([
      ...["certificate-expired began", "certificate-expired ended", "certificate-expired began"],
    ]);
    expect(harness.raised()[0]).toBe("tls_failures example.com sts certificate-expired");
    expectDocumented(harness);
  });

  test("says in a mail what failed, where, and what to do", async () => {
    const { harness, arrive } = begin();
    await arrive({ good: 1_000, bad: { "certificate-expired": 203 } });
    const [alert] = harness.alerts.listAlerts(1, { before: null, limit: 1 });
    const { atMs = 0, body = "" } = alert ?? {};
    const queued = {
      id: "x",
      createdAtMs: 0,
      rule: "tls_failures",
      atMs,
      body,
      domain: "example.com",
      domainId: "d",
      accountId: "a",
      label: null,
    };
    const section = alertSection(queued);
    const { text } = composeMail({ subject: "", sections: section === null ? [] : [section], closing: [] }, MAIL_LINKS);
    expect(text)
      .toBe(`example.com: 203 of 1,203 inbound TLS sessions with mx.example.com failed: the certificate has expired
  - Renew the certificate of the MX host, and make sure that the mail server has loaded the new one.
  - Policy: sts
  - Reported by google
  - mx.example.com: 203 sessions failed
Show the TLS reports: https://verify.example.org/dmarc/d/tls
2026-11-20 12:00 UTC
`);
  });

  test("raises no alert about few failures, or about untrusted reports", async () => {
    const { harness, arrive } = begin();
    await arrive({ good: 1_000, bad: { "certificate-expired": 9 } });
    await arrive({ good: 0, bad: EXPIRED }, "unauthenticated");
    expect(harness.raised()).toEqual([]);
  });

  test("raises at most five alerts at once, and the others in the next review", async () => {
    const { harness, arrive } = begin();
    const types = [
      "starttls-not-supported",
      "certificate-host-mismatch",
      "certificate-expired",
      "certificate-not-trusted",
    ];
    const bad = Object.fromEntries([...types, "validation-failure", "tlsa-invalid"].map((type) => [type, 50]));
    await arrive({ good: 0, bad });
    expect(harness.raised()).toHaveLength(5);
    await arrive({ good: 0 });
    expect(harness.raised()).toHaveLength(6);
  });
});

test("an uploaded TLS report raises an alert", async () => {
  const app = start();
  const key = app.newKey();
  const { body } = await app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "shop.example" } });
  const { id } = body.domain as { id: string };
  const day = isoDay(Math.floor(app.clock.nowMs() / DAY_MS) - 1);
  const details = {
    "result-type": "starttls-not-supported",
    "failed-session-count": 40,
    "receiving-mx-hostname": "MX1.shop.example.",
  };
  const report = {
    "organization-name": "Receiver",
    "report-id": "one",
    "date-range": { "start-datetime": `${day}T00:00:00Z`, "end-datetime": `${day}T23:59:59Z` },
    policies: [
      {
        policy: { "policy-type": "no-policy-found", "policy-domain": "shop.example" },
        summary: { "total-successful-session-count": 60, "total-failure-session-count": 40 },
        "failure-details": [details],
      },
    ],
  };
  const stored = await app.request("POST", "/v1/dmarc/reports", { key, body: JSON.stringify(report) });
  expect(stored.text).toContain("tls_report");
  await app.service.dmarc.jobs.raiseDmarcAlerts();
  const { body: told } = await app.request("GET", `/v1/dmarc/domains/${id}/alerts`, { key });
  expect(told.alerts).toMatchObject([
    { summary: "40 of 100 inbound TLS sessions with mx1.shop.example failed: the MX host did not offer STARTTLS" },
  ]);
  const { body: listed } = await app.request("GET", `/v1/dmarc/domains/${id}/tls-reports`, { key });
  expect(JSON.stringify(listed)).toContain('"receiving_mx_hostname":"mx1.shop.example"');
});
