import { expect, test } from "bun:test";
import { systemRandom } from "../foundation/base/secrets.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import { isRoleAccount } from "./address-evidence.ts";
import { randomLocalPart } from "./domain-evidence.ts";

test("looks like a person's, is an address of its own at each call, and no role", () => {
  const made = Array.from({ length: 200 }, () => randomLocalPart(systemRandom));
  for (const localPart of made) {
    expect(localPart).toMatch(/^[a-z]+\.[a-z]+\d{5}$/);
    expect(parseAddress(`${localPart}@x.example`)).toMatchObject({ ok: true, value: { localPart } });
    expect(isRoleAccount(localPart)).toBeNull();
  }
  expect(new Set(made).size).toBeGreaterThan(190);
});
