import { expect, test } from "bun:test";
import { clientKey, networkKey } from "./cidr.ts";

test.each([
  ["192.0.2.1", "192.0.2.1", "192.0.2.0/24"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"],
  ["2001:db8:1:2::7", "2001:db8:1:2::/64", "2001:db8:1::/48"],
  ["2001:db8::1", "2001:db8::/64", "2001:db8::/48"],
  ["::1", "::/64", "::/48"],
  ["", "", ""],
])("%s is the client %s in the network %s", (address, client, network) => {
  expect(clientKey(address)).toBe(client);
  expect(networkKey(address)).toBe(network);
});
