import { expect, test } from "bun:test";
import { inspectReply } from "./replies.ts";

test("a reply is shown with code, enhanced code, reading, verdict, sub_status and rule", () => {
  const input = "550 5.1.1 <nobody@example.com>: User unknown";
  expect(inspectReply(input)).toEqual({
    input,
    code: 550,
    enhanced: "5.1.1",
    reading: "mailbox_not_found",
    verdict: "undeliverable",
    sub_status: "mailbox_not_found",
    rule: "unknown-by-code-and-words",
  });
});

test.each(["", "hello", "250-", "999 x", "550-5.1.1 no such\n", "250 OK\n550 no"])(
  "%p is no reply: protocol_error, without a code",
  (input) => {
    expect(inspectReply(input)).toEqual({
      input,
      code: null,
      enhanced: null,
      reading: "protocol_error",
      verdict: "risky",
      sub_status: "smtp_protocol_error",
      rule: "unparsable",
    });
  },
);

test("white space around the reply does not matter, and the input is shown as given", () => {
  expect(inspectReply("  250 OK\r\n")).toMatchObject({ input: "  250 OK\r\n", code: 250, reading: "accepted" });
});

test("a reply that a log folded into one line is unfolded", () => {
  expect(inspectReply("550-5.1.1 The account does not 550-5.1.1 exist. See 550 5.1.1 https://x.example")).toMatchObject(
    {
      code: 550,
      enhanced: "5.1.1",
      reading: "mailbox_not_found",
    },
  );
});

test("the stage decides who is meant", () => {
  const stages = (["banner", "ehlo", "mail", "rcpt"] as const).map(
    (stage) => inspectReply("550 5.1.1 User unknown", stage).reading,
  );
  expect(stages).toEqual(["blocked", "blocked", "sender_rejected", "mailbox_not_found"]);
});
