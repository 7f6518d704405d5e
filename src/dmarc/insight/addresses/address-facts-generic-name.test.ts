import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { isGenericName } from "./address-store.ts";

describe("a name of a customer at home", () => {
  test.each([
    ["203-0-113-7.dyn.isp.example", "203.0.113.7"],
    ["p5b2a1c3d.dip0.isp.example", "91.42.28.61"],
    ["c-73-1-2-3.hsd1.isp.example", "73.1.2.3"],
    ["7.113.0.203.broadband.isp.example", "203.0.113.7"],
    ["host203-000-113-007.isp.example", "203.0.113.7"],
    ["dhcp77.isp.example", "203.0.113.7"],
    ["static.7.113.0.203.clients.host.example", "203.0.113.7"],
    ["vps-203-0-113-7.host.example", "203.0.113.7"],
    ["static.vnpt.vn", "203.0.113.7"],
    ["localhost", "203.0.113.7"],
    ["unassigned.isp.example", "203.0.113.7"],
    ["p2003-ec-7f11.dip.isp.example", "2003:ec:7f11::1"],
    ["2a02-1234-5678.v6.isp.example", "2a02:1234:5678::1"],
    ["pool-12.isp.example", "203.0.113.7"],
    ["cust.isp.example", "203.0.113.7"],
    ["adsl-9.isp.example", "203.0.113.7"],
    ["cb007107.isp.example", "203.0.113.7"],
    ["lfbn-par-1-7.w203-0.abo.isp.example", "203.0.113.9"],
  ])("is %s", (name, ip) => {
    expect(isGenericName(name, ip)).toBe(true);
  });

  test.each([
    ["mail.example.com", "203.0.113.7"],
    ["mx1.dyn.example.com", "203.0.113.7"],
    ["static.clients.host.example", "203.0.113.7"],
    ["vps-3241.host.example", "203.0.113.7"],
    ["mail-203-0-113-7.host.example", "203.0.113.7"],
    ["198-51-100-1.smtp.host.example", "198.51.100.1"],
    ["outbound.mobile-marketing.com", "203.0.113.7"],
    ["mx.pool-supplies.com", "203.0.113.7"],
    ["poolside.example.com", "203.0.113.7"],
    ["dynamite.example.com", "203.0.113.7"],
    ["n7.example.com", "7.7.7.8"],
    ["a.example.com", "2001:db8::1"],
  ])("is not %s", (name, ip) => {
    expect(isGenericName(name, ip)).toBe(false);
  });
});

test("a name of any length is judged by its labels, as often as they are repeated", () => {
  const word = fc.constantFrom(
    "dyn",
    "dynamic",
    "pool",
    "ppp",
    "mail",
    "mailer",
    "smtp",
    "smtp1",
    "x",
    "1",
    "0000",
    "",
  );
  const parts = fc.array(fc.tuple(word, fc.constantFrom(".", "-", "_")), { maxLength: 2_000 });
  fc.assert(
    fc.property(parts, (pairs) => {
      const below = `${pairs.flat().join("")}.`;
      const isMail = below.split(/[.-]/).some((label) => ["mail", "smtp", "smtp1", "mail1"].includes(label));
      const isDynamic = below.split(/[.\d_-]/).some((label) => ["dyn", "dynamic", "pool", "ppp"].includes(label));
      expect(isGenericName(`${below}isp.example`, "2001:db8::1")).toBe(isDynamic && !isMail);
    }),
    { numRuns: 30 },
  );
});

test("nothing in a long name is tried again from every place in it", () => {
  // Nobody can publish more than 253 characters; here quadratic time would be minutes.
  expect(isGenericName(`mail${"1".repeat(1_000_000)}x.isp.example`, "203.0.113.7")).toBe(false);
  expect(isGenericName(`dip${"1".repeat(1_000_000)}x.isp.example`, "203.0.113.7")).toBe(true);
  expect(isGenericName(`${"dyn".repeat(300_000)}.isp.example`, "203.0.113.7")).toBe(false);
  expect(isGenericName(`static.${"a-".repeat(300_000)}`, "203.0.113.7")).toBe(false);
});
