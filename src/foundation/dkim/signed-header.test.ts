import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { createTestClock } from "../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../testing/dns-zone.ts";
import { ED25519_KEY_RECORD, type HeaderSigning, KEY_RECORD, signHeader } from "../../testing/signed-message.ts";
import { proveHeader } from "./signed-header.ts";

const KEY = "s1._domainkey.shop.example";
const ZONE: Zone = {
  [KEY]: { TXT: [KEY_RECORD] },
  "s1._domainkey.evil.example": { TXT: [KEY_RECORD] },
};

const prove = (message: string, zone: Zone = ZONE) =>
  proveHeader(Buffer.from(message), {
    domains: ["shop.example", "other.example"],
    resolver: createZoneResolver(zone),
    clock: createTestClock(),
  });

const fieldsTo = (...to: readonly string[]): (readonly [string, string])[] => [
  ["From", "Shop <news@shop.example>"],
  ...to.map((one): readonly [string, string] => ["To", one]),
  ["Subject", "Your order"],
];

const provenTo = async (to: string, signing: HeaderSigning = {}, zone = ZONE): Promise<string | null> => {
  const proof = await prove(signHeader(fieldsTo(to), signing), zone);
  return proof.kind === "signed" ? proof.recipient : proof.kind;
};

describe("a header that is signed", () => {
  test.each([
    ["anna@b.example", "anna@b.example"],
    ["Anna <anna@b.example>", "anna@b.example"],
    ['"Doe, Anna" <anna@b.example>', "anna@b.example"],
    ["Anna\r\n\t<anna@b.example>", "anna@b.example"],
    ["=?utf-8?Q?=C3=84nna?= <anna@b.example>", "anna@b.example"],
    ["jürgen@müller.example", "jürgen@müller.example"],
    ["anna@b.example, bert@b.example", null],
    ["team: anna@b.example;", null],
    ["undisclosed-recipients:;", null],
    ["anna@b.example (Anna)", null],
    // Strangers chose these names: an address in a name does not count.
    ['"<victim@c.example>" <anna@b.example>', "anna@b.example"],
    ["=?utf-8?Q?x=20=3Cvictim=40c.example=3E?= <anna@b.example>", "anna@b.example"],
    ["<victim@c.example> <anna@b.example>", null],
    ["x (victim@c.example) <anna@b.example>", null],
    ["anna@b.example,victim@c.example", null],
    [`${"x".repeat(2_000)} <anna@b.example>`, null],
    ['"a" <victim@c.example> "b" <anna@b.example>', null],
  ])("To: %s is to %p", async (to, recipient) => {
    expect(await provenTo(to)).toBe(recipient);
  });

  test.each<[string, HeaderSigning, Zone]>([
    ["by Ed25519", { a: "ed25519-sha256" }, { [KEY]: { TXT: [ED25519_KEY_RECORD] } }],
    ["long ago", { tags: "t=1000; x=2000;" }, ZONE],
  ])("%s is proven", async (_, signing, zone) => {
    expect(await provenTo("anna@b.example", signing, zone)).toBe("anna@b.example");
  });

  test("is proven without its body, cut anywhere in it, and below the fields that servers put on top", async () => {
    const header = signHeader(fieldsTo("anna@b.example"));
    for (const text of [header, `${header}\r\n`, `${header}\r\ncut of`, `Received: by mx.b.example\r\n${header}\r\n`])
      expect(await prove(text)).toMatchObject({ kind: "signed", recipient: "anna@b.example" });
    expect(await prove(header.replaceAll("\r\n", "\n"))).toMatchObject({ kind: "signed" });
  });
});

describe("nothing is proven by", () => {
  test.each<[string, HeaderSigning, Zone]>([
    ["a domain that is not ours", { d: "evil.example" }, ZONE],
    ["a domain below ours", { d: "mail.shop.example" }, { "s1._domainkey.mail.shop.example": { TXT: [KEY_RECORD] } }],
    ["a signature without To", { names: ["From", "Subject"] }, ZONE],
    ["a signature without From", { names: ["To", "Subject"] }, ZONE],
    ["SHA-1", { a: "rsa-sha1" }, ZONE],
    ["another key", { key: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey }, ZONE],
    ["a key that is gone", {}, { [KEY]: {} }],
    ["a name that is gone", {}, {}],
    ["a key that was revoked", {}, { [KEY]: { TXT: ["v=DKIM1; p="] } }],
    ["a key that is being tested", {}, { [KEY]: { TXT: [`${KEY_RECORD}; t=y`] } }],
  ])("%s", async (_, signing, zone) => {
    expect(await provenTo("anna@b.example", signing, zone)).toBe("unsigned");
  });

  const signed = signHeader(fieldsTo("anna@b.example"));
  test.each([
    ["another recipient", signed.replace("To: anna@", "To: victim@")],
    ["another subject", signed.replace("Your order", "Your other order")],
    ["no signature", signed.slice(signed.indexOf("From:"))],
    ["nothing", ""],
    ["a header without end", `${signed}${"X: y\r\n".repeat(40_000)}`],
  ])("%s", async (_, text) => {
    expect((await prove(text)).kind).toBe("unsigned");
  });

  test.each([
    ["a second To above", `To: victim@c.example\r\n${signed}`],
    ["a second To below", `${signed}To: victim@c.example\r\n`],
    ["a Cc", `${signed}Cc: victim@c.example\r\n`],
  ])("%s, about no recipient", async (_, text) => {
    const proof = await prove(text);
    expect(proof.kind === "signed" ? proof.recipient : null).toBeNull();
  });
});

test.each(["servfail", "timeout", "network_error"] as const)(
  "a key that cannot be looked up (%s) proves nothing yet",
  async (failure) => {
    const proof = await prove(signHeader(fieldsTo("anna@b.example")), { [KEY]: failure });
    expect(proof).toEqual({ kind: "unknown", key: KEY });
  },
);
