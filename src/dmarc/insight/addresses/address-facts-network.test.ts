import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { expect, test } from "bun:test";
import { ipNetworkOf } from "./address-store.ts";

test.each([
  ["192.0.2.77", "192.0.2.0/24"],
  ["10.0.0.0", "10.0.0.0/24"],
  ["2001:db8:1:2::3", "2001:db8:1::/48"],
  ["2001:db8::1", "2001:db8::/48"],
  ["::1", "::/48"],
])("%s is in %s", (ip, network) => {
  expect(ipNetworkOf(ip)).toBe(network);
});

test("an IPv6 address is in the network of its first 48 bits, however it is written", () => {
  const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const ip = new ipaddr.IPv6(groups).toString();
      const [base, bits] = ipaddr.IPv6.parseCIDR(ipNetworkOf(ip));
      expect(bits).toBe(48);
      expect(base.parts).toEqual([...groups.slice(0, 3), 0, 0, 0, 0, 0]);
      expect(ipNetworkOf(ip)).toBe(`${base.toString()}/48`);
    }),
  );
});
