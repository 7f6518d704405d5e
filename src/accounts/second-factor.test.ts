import { describe, expect, test } from "bun:test";
import {
  counterOfCode,
  hashOfRecoveryCode,
  newRecoveryCodes,
  newTotpSecret,
  totpUri,
  withoutRecoveryCode,
} from "./second-factor.ts";

/** The key of RFC 6238, appendix B: `12345678901234567890`. */
const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const USER = { totpSecret: SECRET, totpLastCounter: 0, email: "ada@example.com" };

test("what is stored of a recovery code does not contain it", () => {
  for (const code of newRecoveryCodes()) {
    expect(hashOfRecoveryCode(code)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashOfRecoveryCode(code)).not.toContain(code);
  }
});

describe("a code", () => {
  // The last six of the eight digits in RFC 6238, appendix B.
  test.each([
    [59, "287082", 1],
    [1111111109, "081804", 37037036],
    [1111111111, "050471", 37037037],
    [1234567890, "005924", 41152263],
    [2000000000, "279037", 66666666],
    [20000000000, "353130", 666666666],
  ])("at %i s is %s, of the step %i", (atS, code, counter) => {
    expect(counterOfCode(USER, code, atS * 1000)).toBe(counter);
    expect(counterOfCode(USER, ` ${code.slice(0, 3)} ${code.slice(3)} `, atS * 1000)).toBe(counter);
  });

  test.each([
    ["of the step before", 30, 37037036],
    ["of the next step", -30, 37037036],
    ["of two steps before", 60, null],
    ["of the step after the next", -60, null],
  ])("%s", (_, laterS, counter) => {
    expect(counterOfCode(USER, "081804", (1111111109 + laterS) * 1000)).toBe(counter);
  });

  test("is refused when it or a later one was accepted before", () => {
    const nowMs = 1111111109 * 1000;
    expect(counterOfCode({ ...USER, totpLastCounter: 37037035 }, "081804", nowMs)).toBe(37037036);
    expect(counterOfCode({ ...USER, totpLastCounter: 37037036 }, "081804", nowMs)).toBeNull();
    expect(counterOfCode({ ...USER, totpLastCounter: 37037037 }, "081804", nowMs)).toBeNull();
  });

  test.each(["", "81804", "0818044", "O81804", "٠٨١٨٠٤", "081804\u0000"])("is not %j", (text) => {
    expect(counterOfCode(USER, text, 1111111109 * 1000)).toBeNull();
  });

  test("needs a secret", () => {
    expect(counterOfCode({ ...USER, totpSecret: null }, "081804", 1111111109 * 1000)).toBeNull();
  });
});

test("apps read issuer, user and key from the URI", () => {
  const uri = new URL(totpUri(SECRET, "ada+x@example.com", "Postwarden"));
  expect(uri.protocol + uri.host).toBe("otpauth:totp");
  expect(decodeURIComponent(uri.pathname)).toBe("/Postwarden:ada+x@example.com");
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    ...{ issuer: "Postwarden", secret: SECRET, algorithm: "SHA1", digits: "6", period: "30" },
  });
});

test("secrets have 160 bits, and no two are the same", () => {
  const secrets = Array.from({ length: 20 }, newTotpSecret);
  expect(new Set(secrets).size).toBe(20);
  for (const secret of secrets) expect(secret).toMatch(/^[A-Z2-7]{32}$/);
});

describe("recovery codes", () => {
  test("are ten, and each is taken once", () => {
    const codes = newRecoveryCodes();
    expect(new Set(codes).size).toBe(10);
    const hashes = codes.map(hashOfRecoveryCode);
    const [first = ""] = codes;
    expect(first).toMatch(/^\w{4}-\w{4}-\w{4}-\w{4}$/);
    const left = withoutRecoveryCode(hashes, `\t${first} `) ?? [];
    expect(left).toEqual(hashes.slice(1));
    expect(withoutRecoveryCode(left, first)).toBeNull();
  });

  test.each(["", "aaaa-aaaa-aaaa-aaaa", "123456", hashOfRecoveryCode("aaaa-aaaa-aaaa-aaaa")])("are not %j", (text) => {
    expect(withoutRecoveryCode(newRecoveryCodes().map(hashOfRecoveryCode), text)).toBeNull();
  });
});
