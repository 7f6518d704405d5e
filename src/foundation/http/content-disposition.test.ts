import { expect, test } from "bun:test";
import fc from "fast-check";
import { attachment } from "./content-disposition.ts";

test.each([
  ["customers-results", 'attachment; filename="customers-results.csv"'],
  ["Kunden München", `attachment; filename="Kunden Munchen.csv"; filename*=UTF-8''Kunden%20M%C3%BCnchen.csv`],
  ["客户", `attachment; filename="__.csv"; filename*=UTF-8''%E5%AE%A2%E6%88%B7.csv`],
  ["../../etc/passwd", 'attachment; filename="etc passwd.csv"'],
  ['a"; filename="x.exe', 'attachment; filename="a ; filename= x.exe.csv"'],
  ["a\r\nSet-Cookie: x=y", 'attachment; filename="a Set-Cookie x=y.csv"'],
  ["50%41", `attachment; filename="50_41.csv"; filename*=UTF-8''50%2541.csv`],
  ["it's (1)*", `attachment; filename="it's (1).csv"`],
  ["\u202egpj", 'attachment; filename="gpj.csv"'],
  [" . ", 'attachment; filename="download.csv"'],
])("%j is %s", (name, value) => {
  expect(attachment(name, ".csv")).toBe(value);
});

test("is one bounded line of printable ASCII, whatever the name", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (name) => {
      const value = attachment(name, ".csv");
      expect(value).toMatch(/^attachment; filename="[\x20-\x7e]*"(?:; filename\*=UTF-8''[\w.%~-]+)?$/);
      expect(value.length).toBeLessThan(2_000);
    }),
  );
});
