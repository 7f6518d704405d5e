import { expect, test } from "bun:test";
import { isLocalAddress } from "./local-address.ts";

test.each([
  ["127.0.0.1", true],
  ["127.0.0.77", true],
  ["203.0.113.77", false],
  ["2001:db8::77", false],
])("%s is one of this machine's addresses: %p", async (address, isLocal) => {
  expect(await isLocalAddress(address)).toBe(isLocal);
});
