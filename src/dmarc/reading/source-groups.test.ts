import { describe, expect, test } from "bun:test";
import { addressKeyOf, isGenericName, networkOf, readShownKey, shownKeyOf } from "./source-groups.ts";

test.each([
  ["192.0.2.77", "192.0.2.0/24"],
  ["10.0.0.0", "10.0.0.0/24"],
  ["2001:db8:1:2::3", "2001:db8:1::/48"],
  ["2001:db8::1", "2001:db8::/48"],
  ["::1", "::/48"],
])("%s is in %s", (ip, network) => {
  expect(networkOf(ip)).toBe(network);
});

describe("the key that people see", () => {
  const ip = "192.0.2.77";
  test.each([
    ["mail.shop.example.co.uk", true, "ptr:example.co.uk"],
    ["a.github.io", true, "ptr:a.github.io"],
    ["com", true, "ptr:com"],
    ["mail.google.com", false, "net:192.0.2.0/24"],
    [null, false, "net:192.0.2.0/24"],
  ] as const)("of an address named %p, leading back: %p, is %s", (name, isConfirmed, key) => {
    expect(addressKeyOf({ ip, name, isConfirmed })).toBe(key);
    expect(shownKeyOf(`ip:${ip}`, { ip, name, isConfirmed })).toBe(key);
    expect(shownKeyOf("spf:a.example", { ip, name, isConfirmed })).toBe("spf:a.example");
  });

  test.each([
    ["dkim:example.com", { kind: "dkim", name: "example.com" }],
    ["spf:example.com", { kind: "spf", name: "example.com" }],
    ["ptr:example.com", { kind: "reverse", name: "example.com" }],
    ["net:2001:db8::/48", { kind: "network", name: "2001:db8::/48" }],
    ["other", { kind: "network", name: "other sources" }],
    ["ip:192.0.2.1", null],
    ["example.com", null],
    ["spf:", null],
    [":x", null],
    ["", null],
  ])("%p is read as %p", (key, read) => {
    expect(readShownKey(key)).toEqual(read as never);
  });
});

describe("a name of a customer at home", () => {
  test.each([
    ["203-0-113-7.dyn.isp.example", "203.0.113.7"],
    ["p5b2a1c3d.dip0.isp.example", "91.42.28.61"],
    ["c-73-1-2-3.hsd1.isp.example", "73.1.2.3"],
    ["7.113.0.203.broadband.isp.example", "203.0.113.7"],
    ["host203-000-113-007.isp.example", "203.0.113.7"],
    ["dhcp77.isp.example", "203.0.113.7"],
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
    ["static.7.113.0.203.clients.host.example", "203.0.113.7"],
    ["vps-203-0-113-7.host.example", "203.0.113.7"],
    ["poolside.example.com", "203.0.113.7"],
    ["dynamite.example.com", "203.0.113.7"],
    ["n7.example.com", "7.7.7.8"],
    ["a.example.com", "2001:db8::1"],
  ])("is not %s", (name, ip) => {
    expect(isGenericName(name, ip)).toBe(false);
  });
});
