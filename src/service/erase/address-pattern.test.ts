import { describe, expect, test } from "bun:test";
import { createAddressPattern, ERASED } from "./address-pattern.ts";

const patternOf = (text: string) => {
  const pattern = createAddressPattern(text);
  if (!pattern.ok) throw new Error(pattern.error);
  return pattern.value;
};

describe("an address is found", () => {
  test.each([
    ["ada@example.com", "ada@example.com", ERASED],
    ["Ada@Example.COM", "ADA@EXAMPLE.com", ERASED],
    ["ada@example.com", "mail to <ada@example.com>.", `mail to <${ERASED}>.`],
    ["ada@example.com", '["x","ada@example.com","y"]', `["x","${ERASED}","y"]`],
    ["ada@example.com", "mailto:ada@example.com,bob@example.com", `mailto:${ERASED},bob@example.com`],
    ["ada@example.com", '{"note":"call\\nada@example.com"}', `{"note":"call\\n${ERASED}"}`],
    ["ada@example.com", "'ada@example.com'", `'${ERASED}'`],
    ["ada@example.com", "from=ada@example.com;", `from=${ERASED};`],
    ["ada@example.com", "https://h.example/?to=ada%40example.com", `https://h.example/?to=${ERASED}`],
    ["ada@example.com", "ada@example.com ada@example.com", `${ERASED} ${ERASED}`],
    ["ada@bücher.example", "ada@xn--bcher-kva.example ada@BÜCHER.example", `${ERASED} ${ERASED}`],
    ["ada@xn--bcher-kva.example", "ada@bücher.example", ERASED],
    ["jörg@example.com", "JÖRG@example.com jo\u0308rg@example.com", `${ERASED} ${ERASED}`],
    ['"a b"@example.com', 'x "a b"@example.com', `x ${ERASED}`],
    ['"a b"@example.com', JSON.stringify('"a b"@example.com'), `"${ERASED}"`],
    ["ada@example.com", '"ada"@example.com', ERASED],
    ["ada+x@example.com", "ada+x@example.com", ERASED],
    ["ada@@example.com", "x ADA@@example.com", `x ${ERASED}`],
  ])("%p in %p", (address, text, redacted) => {
    const pattern = patternOf(address);
    expect(pattern.matches(text)).toBe(true);
    expect(pattern.redact(text)).toBe(redacted);
    expect(text.toLowerCase()).toContain(pattern.needle);
  });
});

test.each([
  ["ada@example.com", "ada+news@example.com"],
  ["ada+news@example.com", "ada@example.com"],
  ["ada@example.com", "bada@example.com"],
  ["ada@example.com", "x.ada@example.com"],
  ["ada@example.com", "x-ada@example.com"],
  ["brien@example.com", "o'brien@example.com"],
  ["ada@example.com", "ada@example.com.au"],
  ["ada@example.com", "ada@example.community"],
  ["ada@example.com", "ada@example-com"],
  ["ada@example.com", "adaXexample.com"],
  ["ada@example.com", "ada@sub.example.com"],
])("%p is not %p", (address, text) => {
  expect(patternOf(address).matches(text)).toBe(false);
  expect(patternOf(address).redact(text)).toBe(text);
});

test.each(["", "example.com", "@example.com", "ada@"])("%p is not an address", (text) => {
  expect(createAddressPattern(text)).toEqual({ ok: false, error: `"${text}" is not an address.` });
});
