import fc from "fast-check";
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type SmtpReply, parseReply } from "../foundation/net/smtp-reply.ts";
import { type ReplyHints, type ReplyStage, readReply, subStatusOf, verdictOf } from "./replies.ts";
import { REPLY_READINGS, REPLY_STAGES, TEXT_CHARS_MAX } from "./reply-rules/signs.ts";
import { RULES } from "./reply-rules/table.ts";

const fixtureSchema = z.array(
  z.strictObject({
    reply: z.string(),
    stage: z.enum(REPLY_STAGES),
    reading: z.enum(REPLY_READINGS),
    rule: z.string().optional(),
    hints: z.record(z.string(), z.union([z.string(), z.boolean()])).optional(),
  }),
);

const directory = fileURLToPath(new URL("../../fixtures/replies", import.meta.url));
const groups = readdirSync(directory).map((name) => ({
  name,
  fixtures: fixtureSchema.parse(JSON.parse(readFileSync(`${directory}/${name}`, "utf8"))),
}));
const fixtures = groups.flatMap((group) => group.fixtures);

const replyOf = (text: string): SmtpReply => {
  const parsed = parseReply(text);
  if (!parsed.ok) throw new Error(`${parsed.error}: ${text}`);
  return parsed.value;
};

const read = (text: string, stage: ReplyStage = "rcpt", hints: ReplyHints = {}) =>
  readReply(replyOf(text), stage, hints);

for (const group of groups) {
  test(`every reply of ${group.name} reads as written there`, () => {
    const wrong = group.fixtures.flatMap((fixture) => {
      const { reading, rule } = read(fixture.reply, fixture.stage, fixture.hints);
      const asWritten = reading === fixture.reading && rule === (fixture.rule ?? rule);
      return asWritten
        ? []
        : [{ reply: fixture.reply, stage: fixture.stage, expected: fixture.reading, reading, rule }];
    });
    expect(wrong).toEqual([]);
  });
}

test("the collection is large enough to mean something", () => {
  expect(fixtures.length).toBeGreaterThanOrEqual(350);
});

test("every rule of the table is the one that reads some fixture", () => {
  const spoken = new Set(fixtures.map((fixture) => read(fixture.reply, fixture.stage, fixture.hints).rule));
  expect(RULES.map((rule) => rule.id).filter((id) => !spoken.has(id))).toEqual([]);
});

test("every reading is reached by some fixture", () => {
  const reached = new Set(fixtures.map((fixture) => fixture.reading));
  expect(REPLY_READINGS.filter((reading) => !reached.has(reading))).toEqual([]);
});

test("rule ids are kebab-case and unique", () => {
  expect(RULES.map((rule) => rule.id).filter((id) => !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(id))).toEqual([]);
  expect(new Set(RULES.map((rule) => rule.id)).size).toBe(RULES.length);
});

test("a reply that no rule reads does not exist: every stage and class ends in a rule without conditions", () => {
  const codes = [200, 250, 299, 300, 399, 400, 499, 500, 550, 599];
  const rules = REPLY_STAGES.flatMap((stage) => codes.map((code) => read(`${code}`, stage).rule));
  expect(rules).not.toContain("unreadable");
});

const ABOUT_MAILBOX = ["mailbox_not_found", "mailbox_disabled", "mailbox_full", "null_mx"];

test("before RCPT nothing is about the mailbox, whatever the words", () => {
  for (const fixture of fixtures) {
    for (const stage of ["banner", "ehlo", "starttls", "mail"] as const) {
      const { reading } = read(fixture.reply, stage);
      if (ABOUT_MAILBOX.includes(reading)) throw new Error(`${stage}: ${fixture.reply} reads ${reading}`);
    }
  }
});

const asTemporary = (text: string): string => text.replace(/^5(?=\d\d)/gm, "4").replace(/^(4\d\d[ -])5\./gm, "$14.");

test("a refusal turned temporary is never undeliverable, whatever its words", () => {
  const wrong = fixtures.filter(
    (fixture) => verdictOf(read(asTemporary(fixture.reply), fixture.stage).reading) === "undeliverable",
  );
  expect(wrong.map((fixture) => fixture.reply)).toEqual([]);
});

const POLICY_ADDITIONS = [
  "Your IP 192.0.2.10 is blacklisted",
  "blocked using zen.spamhaus.org",
  "SPF check failed",
  "no reverse DNS for your host",
  "poor reputation",
  "see https://postmaster.example/?ip=192.0.2.10",
];

test("a refusal that also names a policy against us is never undeliverable", () => {
  const wrong = fixtures
    .filter((fixture) => fixture.stage === "rcpt" && fixture.reading === "mailbox_not_found" && !fixture.hints)
    .flatMap((fixture) => POLICY_ADDITIONS.map((words) => `${fixture.reply}; ${words}`))
    .filter((text) => verdictOf(read(text).reading) === "undeliverable");
  expect(wrong).toEqual([]);
});

const FOR_NOW_ADDITIONS = [
  "please try again later",
  "temporarily",
  "LDAP lookup failed",
  "vorübergehend",
  "temporairement",
  "временно",
  "暂时",
];

test("a refusal that also says it holds for now is never undeliverable", () => {
  const wrong = fixtures
    .filter((fixture) => fixture.stage === "rcpt" && verdictOf(fixture.reading) === "undeliverable")
    .flatMap(({ reply, hints }) => FOR_NOW_ADDITIONS.map((words) => ({ text: `${reply}; ${words}`, hints })))
    .filter(({ text, hints }) => ABOUT_MAILBOX.includes(read(text, "rcpt", hints).reading))
    .filter(({ text }) => read(text).reading !== "mailbox_full");
  expect(wrong).toEqual([]);
});

test("an address cannot speak for the server", () => {
  for (const local of [
    "spam",
    "user.unknown",
    "mailbox.full",
    "blocked-by-spamhaus",
    "greylisted",
    "250",
    "no-such-user",
    "relay.denied",
  ]) {
    expect(read(`550 5.1.1 <${local}@example.com>: User unknown`).reading).toBe("mailbox_not_found");
    expect(read(`550 <${local}@unknown.example>: sorry`).reading).toBe("ambiguous");
    expect(read(`451 4.3.0 <${local}@example.com>: sorry`).reading).toBe("temporary");
  }
});

test("numbers in the text are not reply codes", () => {
  expect(read("550 5.1.1 <x@example.com> 250 OK").reading).toBe("mailbox_not_found");
  expect(read("451 host said: 550 5.1.1 user unknown").reading).toBe("temporary");
});

test.each([
  ["451 4.7.1 Greylisted, try again in 300 seconds", 300],
  ["451 4.7.1 Please try again in 5 minutes", 300],
  ["450 4.2.0 Greylisted, see http://postgrey.schweikert.ch/help/example.com.html", undefined],
  ["550 5.7.1 try again in 5 minutes", undefined],
  ["421 4.7.0 Too many connections, retry after 1 hour", 3600],
] as const)("%p asks to wait %p seconds", (text, seconds) => {
  expect(read(text).retryAfterS).toBe(seconds);
});

test("any text at any stage is read, a 4xx never as undeliverable, before RCPT never about the mailbox", () => {
  const words = fc.constantFrom(
    ...[
      "user",
      "unknown",
      "mailbox",
      "full",
      "not",
      "found",
      "blocked",
      "spam",
      "5.1.1",
      "5.7.1",
      "4.2.1",
      "disabled",
      "no",
      "such",
      "@",
      "relay",
    ],
    ...[
      "try",
      "again",
      "in",
      "300",
      "seconds",
      "null",
      "mx",
      "smtputf8",
      "tls",
      "sender",
      "rejected",
      "不存在",
      "用户",
      "\u0000",
      "https://x/?1.2.3.4",
    ],
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 200, max: 599 }),
      fc.oneof(
        fc.array(words, { maxLength: 12 }).map((list) => list.join(" ")),
        fc.string({ unit: "binary", maxLength: 300 }),
      ),
      fc.constantFrom(...REPLY_STAGES),
      (code, text, stage) => {
        const parsed = parseReply(`${code} ${text.replace(/[\r\n\\]/g, " ")}`);
        if (!parsed.ok) return;
        const { reading, rule, retryAfterS } = readReply(parsed.value, stage);
        if (code >= 400 && code < 500) expect(verdictOf(reading)).not.toBe("undeliverable");
        if (stage !== "rcpt") expect(ABOUT_MAILBOX).not.toContain(reading);
        if (code >= 300 && reading === "accepted") expect(rule).toBe("receiving-too-fast");
        if (retryAfterS !== undefined) expect(retryAfterS).toBeGreaterThan(0);
      },
    ),
    { numRuns: 2000 },
  );
});

test("no pattern backtracks without bound: the work on hostile texts is capped and ends", () => {
  const seeds = [
    "user ",
    "mailbox is ",
    "a@",
    "@",
    "the ",
    "ip ",
    "www.",
    "http://",
    "relay ",
    "user unknown ",
    "用户",
    "ユーザ",
    "пользователь ",
    "<@>",
  ];
  for (const seed of seeds) {
    const text = seed.repeat(Math.ceil((TEXT_CHARS_MAX * 2) / seed.length));
    const reply: SmtpReply = { code: 550, enhanced: null, lines: [text], text, raw: [] };
    expect(readReply(reply, "rcpt").rule).not.toBe("unreadable");
  }
});

test("every reading leads to one verdict and one sub_status", () => {
  expect(
    Object.fromEntries(REPLY_READINGS.map((reading) => [reading, `${verdictOf(reading)}/${subStatusOf(reading)}`])),
  ).toEqual({
    accepted: "deliverable/mailbox_exists",
    mailbox_not_found: "undeliverable/mailbox_not_found",
    mailbox_disabled: "undeliverable/mailbox_disabled",
    null_mx: "undeliverable/null_mx",
    smtputf8_unsupported: "undeliverable/smtputf8_unsupported",
    mailbox_full: "risky/mailbox_full",
    greylisted: "risky/greylisted",
    rate_limited: "risky/rate_limited",
    blocked: "risky/smtp_blocked",
    sender_rejected: "risky/sender_rejected",
    tls_required: "risky/tls_required",
    temporary: "risky/smtp_temporary_error",
    protocol_error: "risky/smtp_protocol_error",
    ambiguous: "risky/smtp_blocked",
  });
});

test.each(["unwelcome", "go away", "not welcome", "get lost", "message blocked", "is protected by"])(
  "a refusal that says %p is about us",
  (words) => {
    const reply = parseReply(`550 You: ${words} here`);
    expect(reply.ok && readReply(reply.value, "rcpt").reading).toBe("blocked");
  },
);
