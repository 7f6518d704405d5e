import { expect, test } from "bun:test";
import { networkOf } from "./network.ts";

test.each([
  ["192.0.2.77", "192.0.2.0/24"],
  ["10.0.0.0", "10.0.0.0/24"],
  ["2001:db8:1:2::3", "2001:db8:1::/48"],
  ["2001:db8::1", "2001:db8::/48"],
  ["::1", "::/48"],
])("%s is in %s", (ip, network) => {
  expect(networkOf(ip)).toBe(network);
});
