import { expect, test } from "bun:test";
import { inspectAddress } from "./inspect-address.ts";

test("an address is shown with its normalised form and no reason", () => {
  expect(inspectAddress(" User@EXAMPLE.com\n")).toEqual({
    input: " User@EXAMPLE.com\n",
    valid: true,
    normalized_email: "user@example.com",
    reason: null,
  });
});

test("what is no address is shown with its reason and no normalised form", () => {
  expect(inspectAddress("user@@example.com")).toEqual({
    input: "user@@example.com",
    valid: false,
    normalized_email: null,
    reason: "several_at_signs",
  });
});
