import { expect, test } from "bun:test";
import { changeText } from "./record-changes.ts";

test.each([
  [null, "v=DMARC1; p=none", "Record published"],
  ["v=DMARC1; p=none", null, "Record removed"],
  ["v=DMARC1; p=none", "v=DMARC1; P = quarantine; pct=50", "Record changed: p=quarantine, pct=50"],
  ["v=DMARC1; p=none; sp=reject", "v=DMARC1; p=none", "Record changed: sp removed"],
  [
    "v=DMARC1; p=none; rua=mailto:a@b.example",
    "v=DMARC1; p=none; rua=mailto:c@d.example",
    "Record changed: rua changed",
  ],
  ["v=DMARC1; p=none", "v=DMARC1;p=none;", "Record changed"],
])("from %p to %p: %s", (before, now, text) => {
  expect(changeText(before, now)).toBe(text);
});
