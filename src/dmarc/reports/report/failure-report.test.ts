import { describe, expect, test } from "bun:test";
import { redactFailureReport, FAILURE_REPORT_LIMITS, readFailureReport } from "./failure-report.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const read = (text: string, message: string | null = null) =>
  readFailureReport(bytes(text), message === null ? null : bytes(message));
const NOTHING = read("");

describe("a failure report", () => {
  test("that says nothing has nothing", () => {
    expect(new Set(Object.values({ ...NOTHING, headers: null }))).toEqual(new Set([null]));
    expect(NOTHING.headers).toEqual([]);
  });

  test.each([
    ["no field here", {}],
    ["FEEDBACK-TYPE:  Auth-Failure \r\nAuth-Failure: DMARC", { feedbackType: "auth-failure", authFailure: "dmarc" }],
    ["Reported-Domain: Example.COM.\nReported-Domain: other.example", { reportedDomain: "example.com" }],
    ["Source-IP: 2001:DB8::1", { sourceIp: "2001:db8::1" }],
    ["Source-IP: somewhere", {}],
    ["Received-Date: Thu,\r\n\t20 Nov 2025", { arrivalDate: "Thu, 20 Nov 2025" }],
    ["Delivery-Result: Reject\nIdentity-Alignment: None", { deliveryResult: "reject", identityAlignment: "none" }],
    ["DKIM-Domain: Example.com\nDKIM-Selector: s1", { dkimDomain: "example.com", dkimSelector: "s1" }],
    ["\r\n\r\nUser-Agent: R/1\r\n\r\nSource-IP: 192.0.2.1", { userAgent: "R/1" }],
    ["__proto__: x\nconstructor: y", {}],
  ])("%j", (text, fields) => {
    expect(read(text)).toEqual({ ...NOTHING, ...fields });
  });

  test.each([
    ["From: Ann <ann@example.com>", "example.com"],
    ['From: "a@b.example" <ann@Example.com>', "example.com"],
    ["From: ann@example.com", "example.com"],
    ["From: nobody", null],
    ["To: ann@example.com", null],
  ])("without Reported-Domain is about the domain in %s", (header, domain) => {
    expect(read("Auth-Failure: dmarc", `${header}\n\nbody From: x@other.example`).reportedDomain).toBe(domain);
  });

  test("has the header of its message, unfolded, and nothing of the body", () => {
    const { headers } = read("", "Received: from a\r\n\tby b\r\nSubject: Hi\r\n\r\nSecret: body");
    expect(headers).toEqual([
      { name: "Received", value: "from a by b" },
      { name: "Subject", value: "Hi" },
    ]);
  });

  test("is cut at its ceilings", () => {
    const { headerCharactersMax, headersMax, headersCharactersMax } = FAILURE_REPORT_LIMITS;
    const long = "x".repeat(headerCharactersMax + 1);
    expect(read("", `A: ${long}`).headers[0]?.value.length).toBe(headerCharactersMax);
    expect(read("", "A: b\n".repeat(headersMax + 1)).headers).toHaveLength(headersMax);
    const many = read("", `A: ${long}\n`.repeat(50)).headers;
    expect(many.reduce((sum, { name, value }) => sum + name.length + value.length, 0)).toBeLessThanOrEqual(
      headersCharactersMax,
    );
    expect(read(`User-Agent: ${long}`).userAgent?.length).toBe(headerCharactersMax);
  });
});

describe("a redacted failure report", () => {
  const header = (line: string): string =>
    redactFailureReport(read("", line))
      .headers.map(({ name, value }) => `${name}: ${value}`)
      .join("\n");

  test.each([
    ["From: Ann Lee <ann.lee@example.com>", "From: redacted@example.com"],
    ['From: "ann@home.example" <"ann lee"@example.com>', "From: redacted@home.example, redacted@example.com"],
    ["From: =?utf-8?q?Ann=40home?= <ann@bücher.example>", "From: redacted@bücher.example"],
    ["To: bob@a.example, Carol <carol@b.example>", "To: redacted@a.example, redacted@b.example"],
    ["Return-Path: <bounce+ann=a.example@esp.example>", "Return-Path: redacted@esp.example"],
    ["Message-ID: <ann-1@mail.example.com>", "Message-ID: redacted@mail.example.com"],
    ["Subject: Your bill", ""],
    ["X-Customer: ann", ""],
    [
      "Received: from h.example (h.example [192.0.2.1]) (Authenticated sender: ann) by mx with ESMTPSA id 1 for <bob@b.example>; Thu, 1 Jan 2026",
      "Received: from h.example (h.example [192.0.2.1]) (authenticated) by mx with ESMTPSA id 1 for redacted; Thu, 1 Jan 2026",
    ],
    ["Received: by mx for bob; Thu", "Received: by mx for redacted; Thu"],
    [`Received-SPF: fail ${"a".repeat(1_200)}@b.example`, "Received-SPF: fail redacted@b.example"],
    [`Received-SPF: fail ${"b".repeat(1_200)}%40b.example`, "Received-SPF: fail redacted%40b.example"],
    ["Received-SPF: fail x=1 %40b a%40b%40c.example", "Received-SPF: fail x=1 %40b redacted%40c.example"],
    [
      "Authentication-Results: mx.b.example; spf=fail smtp.mailfrom=ann@a.example; dkim=fail header.i=@a.example header.s=s1",
      "Authentication-Results: mx.b.example; spf=fail smtp.mailfrom=redacted@a.example; dkim=fail header.i=@a.example header.s=s1",
    ],
    [
      'Received-SPF: fail (mx: domain of ann@a.example) envelope-from="ann x"@a.example; client-ip=192.0.2.1',
      "Received-SPF: fail (mx: domain of redacted@a.example) envelope-from=redacted@a.example; client-ip=192.0.2.1",
    ],
    [
      "DKIM-Signature: v=1; d=a.example; s=s1; i=ann@a.example; h=From:To; z=From:ann|Subject:Hi; bh=x; b=secret",
      "DKIM-Signature: v=1; d=a.example; s=s1; i=redacted@a.example; h=From:To; bh=x",
    ],
    ["List-Id: Friends of Ann <list.a.example>", "List-Id: <list.a.example>"],
    ["X-Mailer: Mail 1.0 ann%40a.example", "X-Mailer: Mail 1.0 redacted%40a.example"],
  ])("%s", (line, redacted) => expect(header(line)).toBe(redacted));

  test("has no local part in its fields", () => {
    const fields = [
      "Original-Mail-From: <ann@a.example>",
      "Original-Rcpt-To: rfc822;bob@b.example",
      "DKIM-Identity: ann@a.example",
      "Authentication-Results: mx; dmarc=fail header.from=a.example smtp.mailfrom=ann@a.example",
      "User-Agent: ann@a.example",
      "Source-IP: 192.0.2.1",
    ];
    expect(redactFailureReport(read(fields.join("\n")))).toEqual({
      ...NOTHING,
      originalMailFrom: "redacted@a.example",
      originalRcptTo: "redacted@b.example",
      dkimIdentity: "redacted@a.example",
      authenticationResults: "mx; dmarc=fail header.from=a.example smtp.mailfrom=redacted@a.example",
      userAgent: "redacted@a.example",
      sourceIp: "192.0.2.1",
    });
  });

  test("never shows a local part, whatever stands around it", () => {
    const secret = "zq9ann";
    const locals = [
      secret,
      `x+${secret}`,
      `${secret}=b.example`,
      `SRS0=h=t=b.example=${secret}`,
      `"${secret} lee"`,
      `${secret}.ü`,
    ];
    const around = [
      "",
      "<",
      "(",
      "smtp.mailfrom=",
      "id=",
      "to:",
      '"',
      ",",
      ";",
      "[",
      "=",
      "==",
      "for ",
      "for <",
      "\t",
      "'",
    ];
    const names = [
      "From",
      "Received",
      "Authentication-Results",
      "Received-SPF",
      "DKIM-Signature",
      "X-Mailer",
      "List-Id",
      "Date",
    ];
    const shown: string[] = [];
    for (const local of locals)
      for (const before of around)
        for (const name of names) {
          const line = `${name}: a ${before}${local}@a.example> b`;
          const text = JSON.stringify(redactFailureReport(read(`User-Agent: ${before}${local}@a.example`, line)));
          if (text.includes(secret)) shown.push(line);
        }
    expect(shown).toEqual([]);
  });
});
