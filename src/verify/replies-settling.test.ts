import { expect, test } from "bun:test";
import { parseReply } from "../foundation/net/smtp-reply.ts";
import { mayBeSettledByRandom, readReply } from "./replies.ts";
import { RULES } from "./reply-rules/table.ts";

const settledByRandom = (text: string): boolean => {
  const parsed = parseReply(text);
  if (!parsed.ok) throw new Error(`${parsed.error}: ${text}`);
  const { reading, rule } = readReply(parsed.value, "rcpt");
  return reading === "ambiguous" && mayBeSettledByRandom(rule);
};

test.each([
  "550 sorry",
  "550",
  "550 5.0.0 error",
  "550 Address rejected",
  "550 User rejected",
  "553 sorry, badrcptto",
  "550 5.7.1 user unknown",
  "554 5.7.1 <x@example.com>: Recipient address rejected: User unknown",
])("%p is settled by an accepted random recipient", (text) => {
  expect(settledByRandom(text)).toBe(true);
});

test.each([
  "552 5.2.3 Message length exceeds administrative limit",
  "552 5.3.4 Message size exceeds fixed limit",
  "550 5.3.4 sorry",
  "550 5.7.1 Blocked: user unknown to the allow list",
  "550 5.7.1 User unknown, access denied",
  "550 5.7.1 account disabled",
  "550 5.1.1 Recipient not accepting messages from outside",
  "550 user unknown or access denied",
  "550 5.1.1 Message refused",
  "554 Transaction failed",
  "554 5.4.6 Too many hops",
  "554 Service currently unavailable",
  "550 System error",
  "550 local configuration error",
  "550 5.6.9 improper use of 8-bit data in message header",
  "550 5.1.1 <x@example.com>: connect to backend[10.0.0.1]: Connection refused",
  "550 no such user, says the sender",
  "550 mailbox disabled for external mail",
  "550 Invalid recipient list size",
  "550 blocked",
])("%p is not", (text) => {
  expect(settledByRandom(text)).toBe(false);
});

test("only rules that read ambiguous can be settled, and an unknown rule cannot", () => {
  const settled = RULES.filter(({ id }) => mayBeSettledByRandom(id));
  expect(settled.length).toBeGreaterThan(0);
  expect(settled.map(({ reading }) => reading).filter((reading) => reading !== "ambiguous")).toEqual([]);
  expect(mayBeSettledByRandom("no-such-rule")).toBe(false);
});
