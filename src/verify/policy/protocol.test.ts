import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatAction, PolicyParser } from "./protocol.ts";

const readAll = (...pieces: ReadonlyArray<string | Uint8Array>) => {
  const parser = new PolicyParser();
  const inputs = [];
  for (const piece of pieces) {
    parser.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    for (let input = parser.next(); input !== null; input = parser.next()) {
      inputs.push(input.kind === "problem" ? input.problem : input.question);
      if (input.kind === "problem") return { inputs, unread: parser.unreadBytes };
    }
  }
  return { inputs, unread: parser.unreadBytes };
};

const REQUEST = "request=smtpd_access_policy\nprotocol_state=RCPT\nprotocol_name=ESMTP\n";
const attributes = (recipient: string | null) => ({ form: "attributes", recipient });
const line = (recipient: string) => ({ form: "line", recipient });

describe("a question", () => {
  test.each([
    ["of Postfix", `${REQUEST}sender=\nrecipient=bob@x.example\n\n`, attributes("bob@x.example")],
    ["with unknown names", `${REQUEST}mail_version=3.11\nrecipient=b@x.example\nx=\n\n`, attributes("b@x.example")],
    ["with CRLF", "request=smtpd_access_policy\r\nprotocol_state=RCPT\r\nrecipient=b@x\r\n\r\n", attributes("b@x")],
    ["whose recipient has =", `${REQUEST}recipient=b=c@x.example\n\n`, attributes("b=c@x.example")],
    ["with a name twice", `${REQUEST}recipient=one@x\nrecipient=two@x\n\n`, attributes("one@x")],
    ["at DATA", "request=smtpd_access_policy\nprotocol_state=DATA\nrecipient=b@x\n\n", attributes(null)],
    ["of another kind", "request=junk\nprotocol_state=RCPT\nrecipient=b@x\n\n", attributes(null)],
    ["without a recipient", `${REQUEST}\n`, attributes(null)],
    ["with UTF-8", `${REQUEST}recipient=bücher@x.example\n\n`, attributes("bücher@x.example")],
    ["of Exim", "RCPT bob@x.example\n", line("bob@x.example")],
    ["of Exim with brackets", "rcpt  <bob@x.example> \r\n", line("bob@x.example")],
  ])("%s", (_, text, question) => {
    expect(readAll(text)).toEqual({ inputs: [question] as never, unread: 0 });
  });

  test.each([
    ["an empty line first", "\n", "not_the_protocol"],
    ["a line without =", "hello\n", "not_the_protocol"],
    ["a request of a browser", "POST /?a=b HTTP/1.1\r\nHost: x\r\n\r\n", "not_the_protocol"],
    ["TLS", "\x16\x03\x01\x02\n", "not_the_protocol"],
    ["a line inside attributes", `${REQUEST}RCPT a@x\n`, "not_the_protocol"],
    ["an endless line", "a".repeat(4_097), "line_too_long"],
    ["a long line", `recipient=${"a".repeat(4_096)}\n`, "line_too_long"],
    ["a large request", `a=${"b".repeat(4_000)}\n`.repeat(5), "request_too_large"],
    ["many attributes", "a=b\n".repeat(101), "request_too_large"],
  ] as const)("%s ends it", (_, text, problem) => {
    expect(readAll(text)).toEqual({ inputs: [problem], unread: 0 });
  });

  test("after a problem nothing more is read", () => {
    const parser = new PolicyParser();
    parser.push(Buffer.from("junk\n"));
    expect(parser.next()).toEqual({ kind: "problem", problem: "not_the_protocol" });
    parser.push(Buffer.from("RCPT a@x\n"));
    expect(parser.next()).toEqual({ kind: "problem", problem: "not_the_protocol" });
  });

  test("is the same in pieces of any size, and several follow each other", () => {
    const question = fc.oneof(
      fc.constant(`${REQUEST}recipient=a@x.example\n\n`),
      fc.constant("RCPT b@x.example\n"),
      fc.constant("request=other\n\n"),
    );
    fc.assert(
      fc.property(fc.array(question, { maxLength: 5 }), fc.array(fc.integer({ min: 1, max: 40 })), (all, sizes) => {
        const bytes = Buffer.from(all.join(""));
        const pieces: Uint8Array[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(bytes.subarray(at, at + size));
          at += size;
        }
        pieces.push(bytes.subarray(at));
        expect(readAll(...pieces)).toEqual(readAll(bytes));
        expect(readAll(bytes).inputs).toHaveLength(all.length);
      }),
    );
  });

  test("of any bytes: nothing is thrown, and little is kept", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3_000 }), { maxLength: 20 }), (pieces) => {
        expect(readAll(...pieces).unread).toBeLessThanOrEqual(4_096);
      }),
    );
  });
});

test("an answer has the form of its question", () => {
  expect(formatAction("attributes", "DUNNO")).toBe("action=DUNNO\n\n");
  expect(formatAction("line", "DUNNO")).toBe("DUNNO\n");
});
