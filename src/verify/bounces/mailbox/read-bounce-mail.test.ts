import { describe, expect, test } from "bun:test";
import { proveHeader } from "../../../foundation/dkim/signed-header.ts";
import {
  bounceMailOf,
  deliveryReportMail,
  type DeliveryReportMail,
  failedRecipient,
  signedMessageTo,
} from "../../../testing/bounce-mails.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import { KEY_RECORD } from "../../../testing/signed-message.ts";
import { readBounceMail } from "./read-bounce-mail.ts";

const NOW_MS = Date.UTC(2026, 0, 2);
const ANNA = "anna@b.example";
const resolver = createZoneResolver({ "s1._domainkey.shop.example": { TXT: [KEY_RECORD] } });
const clock = createTestClock(NOW_MS);

const read = async (mail: string, { believesAll = false, deliveredAtMs = (NOW_MS - 1_000) as number | null } = {}) => {
  const domains = ["shop.example"];
  const found = await readBounceMail(Buffer.from(mail), {
    prove: believesAll ? null : (returned) => proveHeader(returned, { domains, resolver, clock }),
    ...{ deliveredAtMs, nowMs: NOW_MS, turn: async () => undefined },
  });
  if (found.outcome === "unknown") throw new Error(found.key);
  return [found.outcome, ...found.bounces.map(({ email, kind, status }) => `${email} ${kind} ${status}`)].join("; ");
};

const own = (given: Partial<DeliveryReportMail>): string =>
  deliveryReportMail({ recipients: [failedRecipient(ANNA)], returned: signedMessageTo(ANNA), ...given });

describe("a report about a message that was ours", () => {
  test.each<[string, string, string]>([
    ["denies the mailbox", bounceMailOf(ANNA), `bounce; ${ANNA} hard 5.1.1`],
    [
      "has a status, and words about a block",
      bounceMailOf(ANNA, { diagnostic: "smtp; 550 5.1.1 Blocked by our spam filter, see https://bl.example" }),
      `bounce; ${ANNA} soft 5.1.1`,
    ],
    [
      "repeats what the policy service said",
      bounceMailOf(ANNA, { diagnostic: "smtp; 550 5.1.1 known not to exist since 2026-01-01 (Postwarden)" }),
      `bounce; ${ANNA} soft 5.1.1`,
    ],
    ["has no diagnostic", bounceMailOf(ANNA, { diagnostic: "" }), `bounce; ${ANNA} hard 5.1.1`],
    ["is of a full mailbox", bounceMailOf(ANNA, { status: "5.2.2" }), `bounce; ${ANNA} soft 5.2.2`],
    [
      "was given up after days",
      bounceMailOf(ANNA, { status: "4.4.1", diagnostic: "smtp; connection timed out" }),
      `bounce; ${ANNA} soft 4.4.1`,
    ],
    [
      "has a vague status, and a better one in the reply",
      bounceMailOf(ANNA, { status: "5.0.0", diagnostic: "smtp; 550 5.1.1 No such user" }),
      `bounce; ${ANNA} hard 5.1.1`,
    ],
    [
      "has a comment in the status",
      bounceMailOf(ANNA).replace("Status: 5.1.1", "Status: 5.1.1 (bad destination mailbox address)"),
      `bounce; ${ANNA} hard 5.1.1`,
    ],
    ["was delayed", bounceMailOf(ANNA, { action: "delayed", status: "4.4.1" }), "notice"],
    ["was delivered", bounceMailOf(ANNA, { action: "delivered", status: "2.1.5" }), "notice"],
    ["was relayed", bounceMailOf(ANNA, { action: "relayed", status: "2.1.9" }), "notice"],
    ["was expanded", bounceMailOf(ANNA, { action: "expanded", status: "2.1.5" }), "notice"],
    ["names fields in other letters", bounceMailOf("Anna@B.example"), `bounce; anna@b.example hard 5.1.1`],
    [
      "returns the header only",
      own({ returned: signedMessageTo(ANNA) }).replace("message/rfc822", "text/rfc822-headers"),
      `bounce; ${ANNA} hard 5.1.1`,
    ],
    [
      "has other recipients, too, which the message does not name",
      own({ recipients: [failedRecipient("bert@b.example"), failedRecipient(ANNA)] }),
      `bounce; ${ANNA} hard 5.1.1`,
    ],
    [
      "is of the address that the recipient forwards to",
      own({
        recipients: [failedRecipient("old@c.example", { more: `Original-Recipient: rfc822; ${ANNA}` })],
      }),
      `bounce; ${ANNA} soft 5.1.1`,
    ],
    [
      "writes the original recipient as xtext",
      own({
        recipients: [failedRecipient("old@c.example", { more: "Original-Recipient: rfc822;anna+2Bnews@b.example" })],
        returned: signedMessageTo("anna+news@b.example"),
      }),
      "bounce; anna+news@b.example soft 5.1.1",
    ],
    [
      "is about an address in UTF-8, with code points",
      own({
        form: "global",
        recipients: [failedRecipient("x").replace("rfc822; x", String.raw`utf-8; j\x{FC}rgen@b.example`)],
        returned: signedMessageTo("jürgen@b.example"),
      }),
      "bounce; jürgen@b.example hard 5.1.1",
    ],
    [
      "is about an address in UTF-8, as it is",
      own({
        form: "global",
        recipients: [failedRecipient("x").replace("rfc822; x", "utf-8; jürgen@b.example")],
        returned: signedMessageTo("jürgen@b.example"),
      }),
      "bounce; jürgen@b.example hard 5.1.1",
    ],
  ])("%s", async (_, mail, expected) => {
    expect(await read(mail)).toBe(expected);
  });

  test("is one event, however often it comes, and dated by the mailbox", async () => {
    const prove = (returned: Uint8Array) => proveHeader(returned, { domains: ["shop.example"], resolver, clock });
    const returned = signedMessageTo(ANNA);
    const readings = [];
    for (const from of ["MAILER-DAEMON@mx.b.example", "postmaster@b.example"]) {
      const mail = Buffer.from(own({ returned, from }));
      readings.push(
        await readBounceMail(mail, { prove, deliveredAtMs: 5_000, nowMs: NOW_MS, turn: async () => undefined }),
      );
    }
    const [first, second] = readings.map((one) => (one.outcome === "bounce" ? one.bounces[0] : undefined));
    expect(first).toEqual(second as never);
    expect(first).toMatchObject({ source: "mailbox", bouncedAtMs: 5_000 });
  });
});

describe("a report is not believed", () => {
  test.each<[string, Partial<DeliveryReportMail>]>([
    ["without the message", { returned: null }],
    ["without a signature", { returned: `From: news@shop.example\r\nTo: ${ANNA}\r\n\r\nHello\r\n` }],
    ["with the message of another sender", { returned: signedMessageTo(ANNA, { d: "evil.example" }) }],
    ["with a message to somebody else", { returned: signedMessageTo("mallory@evil.example") }],
    ["with a message to several", { returned: signedMessageTo(`${ANNA}, mallory@evil.example`) }],
    [
      "with a message whose recipient was replaced",
      { returned: signedMessageTo("m@evil.example").replace("m@evil.example", ANNA) },
    ],
  ])("%s", async (_, given) => {
    expect(await read(own(given))).toBe("unproven");
  });

  test.each([
    ["a person's answer", "From: a@b.example\r\nSubject: Re: Your order\r\n\r\nThank you!\r\n"],
    ["an empty message", ""],
    ["a report of nobody", own({ recipients: [] })],
    [
      "a report of more recipients than the limit",
      own({ recipients: Array.from({ length: 101 }, () => failedRecipient(ANNA)) }),
    ],
    [
      "an address in UTF-8 with a code point that does not exist",
      own({
        form: "global",
        recipients: [failedRecipient("x").replace("rfc822; x", String.raw`utf-8; j\x{FFFFFF}@b.example`)],
      }),
    ],
    ["a status part that is too large", own({ recipients: [failedRecipient(ANNA), `X: ${"y".repeat(300_000)}`] })],
    [
      "a report to a fax",
      own({ recipients: [failedRecipient(ANNA).replace("rfc822;", "x-fax;")] }).replace(
        /--=b\r\nContent-Type: message\/rfc822[\s\S]*/,
        "--=b--\r\n",
      ),
    ],
  ])("%s stays in the mailbox", async (_, mail) => {
    expect(await read(mail)).toMatch(/^(?:other|unproven)$/);
  });
});

describe("where every bounce is believed", () => {
  test.each<[string, string, string]>([
    ["a report without the message", own({ returned: null }), `bounce; ${ANNA} hard 5.1.1`],
    [
      "each recipient counts",
      own({ recipients: [failedRecipient(ANNA), failedRecipient("bert@b.example", { status: "5.2.2" })] }),
      `bounce; ${ANNA} hard 5.1.1; bert@b.example soft 5.2.2`,
    ],
    [
      "the original recipient counts, softly",
      own({ recipients: [failedRecipient("old@c.example", { more: `Original-Recipient: rfc822;${ANNA}` })] }),
      `bounce; ${ANNA} soft 5.1.1`,
    ],
    [
      "an original recipient in xtext that is the final one is no other",
      own({
        recipients: [failedRecipient("anna+n@b.example", { more: "Original-Recipient: rfc822;anna+2Bn@b.example" })],
      }),
      "bounce; anna+n@b.example hard 5.1.1",
    ],
    ["a delay is a notice", own({ recipients: [failedRecipient(ANNA, { action: "delayed" })] }), "notice"],
  ])("%s", async (_, mail, expected) => {
    expect(await read(mail, { believesAll: true })).toBe(expected);
  });
});

describe("a report of qmail", () => {
  const qmail = (reason: string, message = signedMessageTo(ANNA)): string =>
    `From: MAILER-DAEMON@b.example\r\nTo: bounces@shop.example\r\nSubject: failure notice\r\n\r\nHi. This is the qmail-send program at b.example.\r\nI'm afraid I wasn't able to deliver your message to the following addresses.\r\n\r\n${reason}\r\n\r\n--- Below this line is a copy of the message.\r\n\r\nReturn-Path: <bounces@shop.example>\r\n${message}`;

  test.each([
    [`<${ANNA}>:\r\nSorry, no mailbox here by that name. (#5.1.1)`, `bounce; ${ANNA} hard 5.1.1`],
    [
      `<${ANNA}>:\r\n192.0.2.1 does not like recipient.\r\nRemote host said: 550 5.1.1 User unknown\r\nGiving up on 192.0.2.1.`,
      `bounce; ${ANNA} hard 5.1.1`,
    ],
    [`<${ANNA}>:\r\nThe user's mailbox is full. (#5.2.2)`, `bounce; ${ANNA} soft 5.2.2`],
    ["<victim@c.example>:\r\nSorry, no mailbox here by that name. (#5.1.1)", "unproven"],
  ])("%s", async (reason, expected) => {
    expect(await read(qmail(reason))).toBe(expected);
  });

  const failed = `<${ANNA}>:\r\nSorry, no mailbox here by that name. (#5.1.1)`;
  const parts = (text: string, second: string) => {
    const first = '\r\nContent-Type: multipart/mixed; boundary="=b"\r\n\r\n--=b\r\nContent-Type: text/plain\r\n\r\n';
    return `${text.replace("\r\n\r\n", first)}\r\n--=b\r\nContent-Type: ${second}\r\n\r\nx\r\n--=b--\r\n`;
  };
  test.each([
    ["that is HTML", qmail(failed).replace("\r\n\r\n", "\r\nContent-Type: text/html\r\n\r\n")],
    ["with another part", parts(qmail(failed), "text/plain")],
    ["of more recipients than the limit", qmail(Array.from({ length: 101 }, () => failed).join("\r\n\r\n"))],
  ])("%s is none", async (_, mail) => {
    expect(await read(mail)).toBe("other");
  });

  test("with a message that was not ours is not believed", async () => {
    const forged = `From: a@b.example\r\nTo: ${ANNA}\r\n\r\nx\r\n`;
    expect(await read(qmail(`<${ANNA}>:\r\nNo mailbox here by that name. (#5.1.1)`, forged))).toBe("unproven");
  });
});
