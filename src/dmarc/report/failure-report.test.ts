import { describe, expect, test } from "bun:test";
import { readFailureReport } from "./failure-report.ts";

const read = (text: string) => readFailureReport(new TextEncoder().encode(text));
const NOTHING = { feedbackType: null, authFailure: null, reportedDomain: null, sourceIp: null, arrivalDate: null };

describe("a failure report", () => {
  test.each([
    ["", {}],
    ["no field here", {}],
    ["FEEDBACK-TYPE:  Auth-Failure \r\nAuth-Failure: DMARC", { feedbackType: "auth-failure", authFailure: "dmarc" }],
    ["Reported-Domain: Example.COM.\nReported-Domain: other.example", { reportedDomain: "example.com" }],
    ["Source-IP: 2001:DB8::1", { sourceIp: "2001:db8::1" }],
    ["Source-IP: somewhere", {}],
    ["Received-Date: Thu,\r\n\t20 Nov 2025", { arrivalDate: "Thu, 20 Nov 2025" }],
    ["__proto__: x\nconstructor: y", {}],
  ])("%j", (text, fields) => {
    expect(read(text)).toEqual({ ...NOTHING, ...fields });
  });
});
