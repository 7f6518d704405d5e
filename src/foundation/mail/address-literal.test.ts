import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { expect, test } from "bun:test";
import { parseAddressLiteral } from "./address.ts";

test("every IPv6 address that another implementation writes out in full is read as the same address", () => {
  const bytes = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 255 })), { minLength: 16, maxLength: 16 });
  fc.assert(
    fc.property(bytes, (octets) => {
      const ip = ipaddr.fromByteArray(octets);
      const literal = parseAddressLiteral(`[IPv6:${ip.toNormalizedString()}]`);
      expect(literal.ok).toBe(true);
      if (literal.ok) expect(ipaddr.parse(literal.value.ip).toNormalizedString()).toBe(ip.toNormalizedString());
    }),
  );
});

test("the canonical spelling is read back unchanged", () => {
  const groups = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff })), {
    minLength: 8,
    maxLength: 8,
  });
  fc.assert(
    fc.property(groups, (numbers) => {
      const first = parseAddressLiteral(`[IPv6:${numbers.map((number) => number.toString(16)).join(":")}]`);
      expect(first.ok).toBe(true);
      if (first.ok) expect(parseAddressLiteral(first.value.text)).toEqual(first);
    }),
  );
});

test("the longest run of zeros is shortened, the first of equals, never a single zero", () => {
  const ipOf = (text: string): string => {
    const literal = parseAddressLiteral(`[IPv6:${text}]`);
    return literal.ok ? literal.value.ip : literal.error;
  };
  expect(ipOf("2001:db8:0:0:1:0:0:1")).toBe("2001:db8::1:0:0:1");
  expect(ipOf("2001:0:0:1:0:0:0:1")).toBe("2001:0:0:1::1");
  expect(ipOf("2001:db8:0:1:1:1:1:1")).toBe("2001:db8:0:1:1:1:1:1");
  expect(ipOf("0:0:0:0:0:0:0:0")).toBe("::");
});
