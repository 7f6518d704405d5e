import { expect, test } from "bun:test";
import { demandsTls, failureKindOf } from "./smtp-failure.ts";
import { parseReply } from "./smtp-reply.ts";

const replyOf = (text: string) => {
  const reply = parseReply(text);
  if (!reply.ok) throw new Error(reply.error);
  return reply.value;
};

for (const text of [
  "530 5.7.0 Must issue a STARTTLS command first",
  "530 Must issue a STARTTLS command first",
  "530 no",
  "554 5.7.10 encryption needed",
  "550 5.7.1 Please use STARTTLS",
  "451 4.7.0 TLS is required for this recipient",
  "550 Session encryption is required",
  "554 5.7.1 This server requires TLS",
  "554 5.7.0 STARTTLS is required for this domain",
]) {
  test(`"${text}" demands TLS`, () => {
    expect(demandsTls(replyOf(text))).toBe(true);
  });
}

for (const text of [
  "250 2.0.0 STARTTLS required, but fine",
  "530 5.7.0 Authentication required",
  "550 5.1.1 <starttls@x.example>: User unknown",
  "550 5.7.1 Client host blocked",
  "454 4.7.0 TLS not available due to local problem",
]) {
  test(`"${text}" does not demand TLS`, () => {
    expect(demandsTls(replyOf(text))).toBe(false);
  });
}

for (const [problem, kind] of [
  ["closed", "closed"],
  ["timeout", "timeout"],
  ["deadline", "deadline"],
  ["tls_failed", "tls_failed"],
  ["surplus_reply", "garbage"],
  ["bytes_max", "garbage"],
  ["not_a_reply", "garbage"],
] as const) {
  test(`the problem ${problem} is a failure of the kind ${kind}`, () => {
    expect(failureKindOf(problem)).toBe(kind);
  });
}
