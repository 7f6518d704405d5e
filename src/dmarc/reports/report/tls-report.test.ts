import { describe, expect, test } from "bun:test";
import { readTlsReport, TLS_REPORT_LIMITS } from "./tls-report.ts";

const read = (json: unknown) => readTlsReport(new TextEncoder().encode(JSON.stringify(json)));
const policyOf = (json: unknown) => {
  const report = read({ policies: [json] });
  return report.ok ? report.value.policies[0] : report.error;
};

describe("a TLS report", () => {
  test("that says nothing but its policies is one", () => {
    const nothing = { orgName: null, reportId: null, contact: null, beginMs: null, endMs: null, policies: [] };
    expect(read({ policies: [] })).toEqual({ ok: true, value: nothing });
  });

  test.each([
    [{}, { domain: null, policyType: null, successfulSessions: 0, failedSessions: 0, failures: [] }],
    [
      { policy: { "policy-domain": "EXAMPLE.com.", "policy-type": "tlsa" } },
      { domain: "example.com", policyType: "tlsa" },
    ],
    [
      { summary: { "total-successful-session-count": "12", "total-failure-session-count": -1 } },
      { successfulSessions: 12, failedSessions: 0 },
    ],
    [{ "failure-details": [{ "failed-session-count": 2 }] }, { failures: [{ resultType: "unknown", sessions: 2 }] }],
    [
      { "failure-details": "none", policy: [], summary: null },
      { failures: [], domain: null, successfulSessions: 0 },
    ],
  ])("reads the policy %j", (json, policy) => {
    expect(policyOf(json)).toMatchObject(policy);
  });

  test("is cut at its ceilings", () => {
    const policy = { "failure-details": Array.from({ length: TLS_REPORT_LIMITS.failuresMax + 1 }, () => ({})) };
    expect(policyOf(policy)).toMatchObject({ failures: { length: TLS_REPORT_LIMITS.failuresMax } });
    const report = read({ policies: Array.from({ length: TLS_REPORT_LIMITS.policiesMax + 1 }, () => ({})) });
    expect(report.ok && report.value.policies.length).toBe(TLS_REPORT_LIMITS.policiesMax);
  });
});

test("other JSON is no TLS report, and what is no JSON is damaged", () => {
  for (const json of [{}, [], null, 1, "policies", { policies: {} }, { policies: [1] }]) {
    expect(read(json)).toEqual({ ok: false, error: "not_tls_report" });
  }
  const tooLarge = new Uint8Array(TLS_REPORT_LIMITS.bytesMax + 1).fill(0x20);
  for (const bytes of [new TextEncoder().encode('{"policies": ['), tooLarge]) {
    expect(readTlsReport(bytes)).toEqual({ ok: false, error: "damaged" });
  }
});
