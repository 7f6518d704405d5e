import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { readRsaKey, isDkimKeyText, parseDkimKey } from "./dkim-key.ts";

/** A public key with a modulus of a size, which has no factors that anybody knows. */
const rsa = (bits: number, type: "spki" | "pkcs1" = "spki"): Buffer => {
  const n = randomBytes(bits / 8);
  n[0] = 0x80 | (n[0] ?? 0);
  n[n.length - 1] = 1 | (n.at(-1) ?? 0);
  const key = createPublicKey({ format: "jwk", key: { kty: "RSA", n: n.toString("base64url"), e: "AQAB" } });
  return key.export({ format: "der", type }) as Buffer;
};
const p = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

const KEY_2048 = rsa(2048);
const ED25519 = generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" }) as Buffer;
const ED25519_RAW = ED25519.subarray(-32);
/** RFC 6376 §C.2. */
const RFC_KEY =
  "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB";
/** RFC 8463 §A.2. */
const RFC_ED25519 = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

describe("the size of an RSA key", () => {
  test.each([512, 768, 1024, 1536, 2048, 4096])("%d bits, wrapped and bare", (bits) => {
    expect(readRsaKey(rsa(bits))).toEqual({ bits, hasSoundExponent: true });
    expect(readRsaKey(rsa(bits, "pkcs1"))).toEqual({ bits, hasSoundExponent: true });
  });

  test("nothing is read in a key that was cut off anywhere, or has something behind it", () => {
    for (let length = 0; length < KEY_2048.length; length += 1)
      expect(readRsaKey(KEY_2048.subarray(0, length))).toBeNull();
    expect(readRsaKey(Buffer.concat([KEY_2048, Buffer.from([0])]))).toBeNull();
  });

  test("an exponent of 1, 0 or an even number is not sound", () => {
    const key = rsa(1024, "pkcs1");
    const withExponent = (octets: readonly number[]): Buffer =>
      Buffer.concat([key.subarray(0, -3), Buffer.from(octets)]);
    for (const bad of [
      [0, 0, 1],
      [0, 0, 0],
      [1, 0, 0],
    ]) {
      expect(readRsaKey(withExponent(bad))).toEqual({ bits: 1024, hasSoundExponent: false });
      expect(parseDkimKey(`p=${p(withExponent(bad))}`).faults).toEqual(["has an unusable RSA exponent"]);
    }
  });

  test("it never throws", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => void readRsaKey(bytes)));
    const spoilt = fc.tuple(fc.nat(KEY_2048.length - 1), fc.nat(255));
    fc.assert(
      fc.property(fc.array(spoilt, { maxLength: 8 }), (changes) => {
        const bytes = Buffer.from(KEY_2048);
        for (const [at, octet] of changes) bytes[at] = octet;
        const key = readRsaKey(bytes);
        expect(key === null || (key.bits > 0 && key.bits <= 2056)).toBe(true);
      }),
    );
  });
});

describe("a key record", () => {
  const good = p(KEY_2048);
  const half = good.slice(0, 200);

  test.each([
    ["of RFC 6376", `v=DKIM1; p=${RFC_KEY}`, { state: "valid", type: "rsa", bits: 1024 }],
    ["of RFC 8463", `v=DKIM1; k=ed25519; p=${RFC_ED25519}`, { state: "valid", type: "ed25519", bits: 256 }],
    ["without v and k", `p=${good}`, { state: "valid", type: "rsa", bits: 2048 }],
    ["with k behind p", `v=DKIM1; p=${good}; k=rsa`, { state: "valid", bits: 2048 }],
    ["with spaces in p", `v=DKIM1; p=${half} ${good.slice(200)}`, { state: "valid", bits: 2048 }],
    ["with white space everywhere", ` v = DKIM1 ;\t k = rsa ; p = ${good} ; `, { state: "valid", bits: 2048 }],
    ["in test mode", `v=DKIM1; t=y; p=${good}`, { state: "valid", isTesting: true, isStrict: false }],
    ["in test mode, strict", `v=DKIM1; t=y:s; p=${good}`, { isTesting: true, isStrict: true }],
    ["strict", `v=DKIM1; t=s; p=${good}`, { isTesting: false, isStrict: true }],
    ["with an unknown flag", `v=DKIM1; t=x; p=${good}`, { state: "valid", isTesting: false, isStrict: false }],
    ["for sha256", `v=DKIM1; h=sha256; p=${good}`, { hashes: ["sha256"] }],
    ["for sha1", `v=DKIM1; h=sha1; p=${good}`, { hashes: ["sha1"] }],
    ["for both hashes", `v=DKIM1; h=sha1:sha256; p=${good}`, { hashes: ["sha1", "sha256"] }],
    ["for email", `v=DKIM1; s=email; p=${good}`, { services: ["email"] }],
    ["for something else", `v=DKIM1; s=tlsrpt; p=${good}`, { services: ["tlsrpt"] }],
    ["with notes", `v=DKIM1; n=a note; p=${good}`, { state: "valid", notes: "a note" }],
    ["with an unknown tag", `v=DKIM1; foo=bar; p=${good}`, { state: "valid" }],
    ["revoked", "v=DKIM1; k=rsa; p=", { state: "revoked", bits: null, faults: [] }],
    ["revoked with a space", "v=DKIM1; p= ;", { state: "revoked" }],
    ["revoked by p alone", "p=", { state: "revoked" }],
    ["with an Ed25519 key from raw octets", `k=ed25519; p=${p(ED25519_RAW)}`, { state: "valid", type: "ed25519" }],
  ])("%s", (_, text, expected) => {
    expect(parseDkimKey(text)).toMatchObject(expected);
  });

  test.each([
    ["without p", "v=DKIM1; k=rsa", "has no p tag"],
    ["cut off by a length of 255", `v=DKIM1; k=rsa; p=${good.slice(0, 239)}`, "or only a part of one"],
    ["with letters that base64 has not", `v=DKIM1; p=${half}!!`, "not valid base64"],
    ["with a key of another kind under rsa", `v=DKIM1; p=${p(ED25519)}`, "holds no RSA public key"],
    [
      "with a wrapped Ed25519 key",
      `v=DKIM1; k=ed25519; p=${p(ED25519)}`,
      "has 44 octets in p, but an Ed25519 key has 32",
    ],
    ["of an unknown type", `v=DKIM1; k=dsa; p=${good}`, 'the unknown key type "dsa"'],
    ["of another version", `v=DKIM2; p=${good}`, 'has v="DKIM2"'],
    ["with the version in lower case", `v=dkim1; p=${good}`, 'has v="dkim1"'],
    ["with the version behind", `k=rsa; v=DKIM1; p=${good}`, "must be the first"],
    ["with escaped semicolons", `v=DKIM1\\; k=rsa\\; p=${good}`, "backslashes"],
    ["with p twice", `v=DKIM1; p=${good}; p=${good}`, "more than one p tag"],
    ["with something that is no tag", `v=DKIM1; k=rsa; ${good}; p=${good}`, "is not a tag"],
    ["with a PEM key", `v=DKIM1; p=-----BEGIN PUBLIC KEY-----${good}`, "not valid base64"],
    ["longer than the DNS allows", `p=${"A".repeat(70_000)}`, "has no p tag"],
  ])("%s is invalid", (_, text, fault) => {
    const key = parseDkimKey(text);
    expect(key.state).toBe("invalid");
    expect(key.faults.join(" ")).toContain(fault);
  });

  test.each([
    [`v=DKIM1; p=${good}`, true],
    ["p=", true],
    ["k=rsa;p=abc", true],
    ["v=DKIM1; k=rsa", true],
    ["v=spf1 -all", false],
    ["google-site-verification=xyz", false],
    ["", false],
  ])("%# is distinguished from other texts", (text, isKey) => {
    expect(isDkimKeyText(text)).toBe(isKey);
  });

  test("no text throws, and whatever is valid has bits", () => {
    const pieces = fc.constantFrom(
      "v=DKIM1",
      "k=rsa",
      "k=ed25519",
      "p=",
      `p=${good}`,
      `p=${half}`,
      ";",
      " ",
      "=",
      "t=y:s",
      "h=sha1",
      "\\;",
    );
    const text = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.array(fc.oneof(pieces, fc.string({ maxLength: 5 })), { maxLength: 20 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (input) => {
        const key = parseDkimKey(input);
        expect(key.state === "valid").toBe(key.faults.length === 0 && key.bits !== null);
      }),
    );
  });
});
