import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseCidr } from "../base/cidr.ts";
import { createAddressPolicy, isLocalAddress } from "./public-address.ts";

const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "168.63.129.15",
  "168.63.129.17",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.1",
  "192.88.98.255",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2a00:1450:4001:81b::200e",
  "::ffff:8.8.8.8",
  "::ffff:808:808",
  "::ffff:0:8.8.8.8",
  "64:ff9b::8.8.8.8",
  "64:ff9b:1::8.8.8.8",
  "2002:808:808::1",
  "2001:0:808:808::f7f7:f7f7",
  "2606:4700::5efe:8.8.8.8",
  "2606:4700::200:5efe:8.8.8.8",
];

const NOT_PUBLIC = [
  "0.0.0.0",
  "0.1.2.3",
  "10.0.0.1",
  "100.64.0.1",
  "100.127.255.255",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.1",
  "192.0.0.170",
  "192.0.2.1",
  "192.88.99.1",
  "192.168.0.1",
  "198.18.0.1",
  "198.19.255.255",
  "198.51.100.1",
  "203.0.113.1",
  "224.0.0.1",
  "239.255.255.255",
  "240.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::8.8.8.8",
  "::808:808",
  "::127.0.0.1",
  "100::1",
  "200::1",
  "2001:2::1",
  "2001:3::1",
  "2001:10::1",
  "2001:20::1",
  "2001:db8::1",
  "3fff::1",
  "4000::1",
  "5f00::1",
  "fc00::1",
  "fd12:3456::1",
  "fe80::1",
  "fe80::1%eth0",
  "2606:4700::1%eth0",
  "fec0::1",
  "ff02::1",
  "::ffff:10.0.0.1",
  "::ffff:7f00:1",
  "::ffff:168.63.129.16",
  "::ffff:0:127.0.0.1",
  "64:ff9b::10.0.0.1",
  "64:ff9b::a9fe:a9fe",
  "64:ff9b:1::127.0.0.1",
  "64:ff9b:1:a00:0:100:808:808",
  "2002:a00:1::1",
  "2002:7f00:1::",
  "2001:0:808:808::f5ff:fffe",
  "2001:0:a00:1::f7f7:f7f7",
  "2606:4700::5efe:10.0.0.1",
  "2606:4700::200:5efe:192.168.1.1",
  "fe80::5efe:8.8.8.8",
  "",
  "localhost",
  "1",
  "010.8.8.8",
  "0x8.8.8.8",
  "8.8.8",
  "8.8.8.8 ",
  "8.8.8.8/32",
  "[2606:4700::1]",
];

describe("without allowed networks", () => {
  const policy = createAddressPolicy([]);
  test.each(PUBLIC)("%s is public", (ip) => expect(policy.isAllowed(ip)).toBe(true));
  test.each(NOT_PUBLIC)("%s is not public", (ip) => expect(policy.isAllowed(ip)).toBe(false));
});

describe("with allowed networks", () => {
  const policy = createAddressPolicy(["127.0.0.0/8", "fd00::/8", "192.168.7.9", "::ffff:10.1.0.0/112"]);
  test.each([
    ["127.0.0.1", true],
    ["::ffff:127.0.0.1", true],
    ["64:ff9b::127.0.0.1", true],
    ["fd00::1", true],
    ["192.168.7.9", true],
    ["10.1.2.3", true],
    ["8.8.8.8", true],
    ["192.168.7.10", false],
    ["10.2.0.1", false],
    ["fc00::1", false],
    ["::1", false],
  ])("%s allowed: %p", (ip, allowed) => expect(policy.isAllowed(ip)).toBe(allowed));

  test("a network that is none is refused with its text", () => {
    expect(() => createAddressPolicy(["10.0.0.0/33"])).toThrow('"10.0.0.0/33"');
  });
});

test.each([
  "",
  "x",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/-1",
  "10.0.0.0/8/8",
  "10.0/8",
  "fd00::/129",
  "fe80::1%lo/64",
  "/8",
])("%p is not a network", (text) => {
  const parsed = parseCidr(text);
  expect(parsed.ok ? "" : parsed.error.problem).toContain(`"${text}"`);
});

test("mapping an IPv4 address into IPv6 never changes the answer", () => {
  const policy = createAddressPolicy(["127.0.0.0/8"]);
  fc.assert(
    fc.property(fc.ipV4(), (ip) => {
      expect(policy.isAllowed(`::ffff:${ip}`)).toBe(policy.isAllowed(ip));
    }),
  );
});

test("arbitrary text never throws", () => {
  const policy = createAddressPolicy([]);
  fc.assert(fc.property(fc.string(), (text) => expect(typeof policy.isAllowed(text)).toBe("boolean")));
});

test.each([
  ["127.0.0.1", true],
  ["127.0.0.77", true],
  ["203.0.113.77", false],
  ["2001:db8::77", false],
])("%s is one of this machine's addresses: %p", async (address, isLocal) => {
  expect(await isLocalAddress(address)).toBe(isLocal);
});
