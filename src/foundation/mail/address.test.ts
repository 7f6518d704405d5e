import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import rows from "../../../fixtures/addresses.json" with { type: "json" };
import { normalizeLoosely, parseAddress, parseThoroughly, inspectAddress } from "./address.ts";

const ATEXT = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~"];
const LDH = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"];
const UTF8_LETTERS = [..."éßжωفअ用사ü"];

const atom = (letters: readonly string[]) =>
  fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 12 });
const dotString = (letters: readonly string[]) =>
  fc.array(atom(letters), { minLength: 1, maxLength: 4 }).map((atoms) => atoms.join("."));
const label = fc
  .tuple(
    fc.constantFrom(...LDH),
    fc.string({ unit: fc.constantFrom(...LDH, "-"), maxLength: 20 }),
    fc.constantFrom(...LDH),
  )
  .map((parts) => parts.join(""))
  .filter((text) => !/^xn--/i.test(text));
const domain = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 4 }), fc.constantFrom("com", "DE", "x1-y", "museum"))
  .map(([labels, tld]) => [...labels, tld].join("."));

/** Text made of the pieces that matter to the grammar, so that most samples are nearly addresses. */
const nearAddress = fc
  .array(
    fc.constantFrom(
      ...[
        "a",
        "B",
        "1",
        "-",
        "--",
        ".",
        "@",
        "xn--",
        "XN--bcher-kva",
        "_",
        "+",
        '"',
        "\\",
        "[",
        "]",
        " ",
        "\t",
        "é",
        "ß",
        "ẞ",
      ],
      ...[
        "\u0301",
        "\u200d",
        "。",
        "😀",
        "א",
        "ς",
        "Σ",
        "İ",
        "\ud800",
        "example.com",
        "com",
        "@example.com",
        "IPv6:",
        "::",
        "192.0.2.1",
      ],
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(""));
const anyText = fc.oneof(nearAddress, fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }));

const octets = (text: string): number => Buffer.byteLength(text);

describe("the table of addresses", () => {
  for (const row of rows) {
    const spelling = JSON.stringify(row.input).slice(0, 90);
    if (row.valid) {
      test(`${spelling} is an address`, () => {
        const address = parseAddress(row.input);
        expect(address.ok ? address.value.normalized : address.error).toBe(row.normalized ?? "");
      });
    } else {
      test(`${spelling} is refused: ${row.reason}`, () => {
        const address = parseAddress(row.input);
        expect(address.ok ? address.value.normalized : address.error).toBe(row.reason ?? "");
      });
    }
  }

  test("has enough rows of both kinds to mean something", () => {
    expect(rows.filter((row) => row.valid).length).toBeGreaterThan(150);
    expect(rows.filter((row) => !row.valid).length).toBeGreaterThan(150);
  });
});

describe("the parts of an address", () => {
  test("the mailbox keeps the case of the local part, normalized does not", () => {
    expect(parseAddress(" John.O'Neil+Tag@BÜCHER.Example ")).toEqual({
      ok: true,
      value: {
        localPart: "john.o'neil+tag",
        domain: "xn--bcher-kva.example",
        unicodeDomain: "bücher.example",
        literal: null,
        normalized: "john.o'neil+tag@xn--bcher-kva.example",
        mailbox: "John.O'Neil+Tag@xn--bcher-kva.example",
        needsSmtputf8: false,
      },
    });
  });

  test("an address literal names its bare IP address", () => {
    const address = parseAddress('"A B"@[ipv6:2001:DB8:0:0::1]');
    expect(address).toMatchObject({
      value: {
        domain: "[IPv6:2001:db8::1]",
        unicodeDomain: "[IPv6:2001:db8::1]",
        literal: "2001:db8::1",
        mailbox: '"A B"@[IPv6:2001:db8::1]',
      },
    });
  });

  test("only a local part beyond ASCII needs SMTPUTF8, an A-label does not", () => {
    expect(parseAddress("Jo\u0308rg@example.com")).toMatchObject({
      value: { needsSmtputf8: true, mailbox: "Jörg@example.com" },
    });
    expect(parseAddress("joerg@müller.example")).toMatchObject({ value: { needsSmtputf8: false } });
  });

  test("an A-label is shown to people as its U-label", () => {
    expect(parseAddress("a@xn--fa-hia.example")).toMatchObject({ value: { unicodeDomain: "faß.example" } });
  });

  test.each(["us\ud800er@example.com", "user@exam\udc00ple.com", "\ud83d@example.com"])(
    "an unpaired surrogate is refused (%#)",
    (text) => expect(parseAddress(text)).toEqual({ ok: false, error: "damaged_encoding" }),
  );
});

describe("properties of the parser", () => {
  test("any text gets an answer, never an exception", () => {
    fc.assert(
      fc.property(anyText, (text) => typeof parseAddress(text).ok === "boolean"),
      { numRuns: 1000 },
    );
  });

  test("the short cut for everyday addresses answers what the thorough path answers", () => {
    const everyday = fc
      .tuple(fc.oneof(dotString(ATEXT), fc.string()), fc.oneof(domain, nearAddress))
      .map((p) => p.join("@"));
    fc.assert(
      fc.property(fc.oneof(everyday, anyText), (text) => {
        expect(parseAddress(text)).toEqual(parseThoroughly(text.trim()));
      }),
      { numRuns: 2000 },
    );
    for (const row of rows) expect(parseAddress(row.input)).toEqual(parseThoroughly(row.input.trim()));
  });

  test("every dot-string within its limits at every domain is an address", () => {
    fc.assert(
      fc.property(dotString([...ATEXT, ...UTF8_LETTERS]), domain, (localPart, host) => {
        fc.pre(octets(localPart.normalize("NFC")) <= 64);
        expect(parseAddress(`${localPart}@${host}`)).toMatchObject({
          ok: true,
          value: { mailbox: `${localPart.normalize("NFC")}@${host.toLowerCase()}` },
        });
      }),
    );
  });

  test("any printable ASCII text can be quoted into an address, and its quotes vanish where needless", () => {
    const printable = fc.string({
      unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)),
      maxLength: 30,
    });
    fc.assert(
      fc.property(printable, (content) => {
        const address = parseAddress(`"${content.replaceAll(/["\\]/g, "\\$&")}"@example.com`);
        const bare = parseAddress(`${content}@example.com`);
        expect(address.ok).toBe(true);
        if (address.ok && bare.ok && content === content.trim() && !content.startsWith('"')) {
          expect(address.value).toEqual(bare.value);
        }
      }),
    );
  });

  test("what was normalised once is normalised for good", () => {
    const text = fc.oneof(
      nearAddress,
      fc.tuple(dotString([...ATEXT, ...UTF8_LETTERS, "Σ", "İ", "\u0301", "K"]), domain).map((parts) => parts.join("@")),
      fc.string({ unit: "grapheme", maxLength: 12 }).map((localPart) => `${localPart}@example.com`),
    );
    fc.assert(
      fc.property(text, (sample) => {
        const first = parseAddress(sample);
        // Lower case can be longer in UTF-8 ("İ"); such a local part is fine on the wire, but not as an input of its own.
        if (!first.ok || octets(first.value.localPart) > 64) return;
        const again = parseAddress(first.value.normalized);
        expect(again).toMatchObject({
          ok: true,
          value: { normalized: first.value.normalized, mailbox: first.value.normalized },
        });
      }),
      { numRuns: 1000 },
    );
  });

  test("the mailbox of an accepted address holds nothing that could end an SMTP line or path early", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const address = parseAddress(text);
        if (!address.ok) return;
        expect(address.value.mailbox).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
        expect(octets(address.value.mailbox)).toBeLessThanOrEqual(254);
        if (!address.value.mailbox.startsWith('"')) expect(address.value.mailbox).not.toMatch(/[<> ]/);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("lengths at their limits, in octets", () => {
  const labels = (length: number): string =>
    `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.`.padEnd(length, "d");

  test.each([
    ["a local part of 64", `${"a".repeat(64)}@example.com`, null],
    ["a local part of 65", `${"a".repeat(65)}@example.com`, "local_part_too_long"],
    ["a label of 63", `a@${"b".repeat(63)}.com`, null],
    ["a label of 64", `a@${"b".repeat(64)}.com`, "domain_label_too_long"],
    ["an address of 254", `a@${labels(252)}`, null],
    ["an address of 255", `a@${labels(253)}`, "address_too_long"],
    ["a domain of 254", `a@${labels(254)}`, "domain_too_long"],
    ["a U-label whose A-label has 63", `a@ü${"a".repeat(55)}.com`, null],
    ["a U-label whose A-label has 64", `a@ü${"a".repeat(56)}.com`, "domain_label_too_long"],
  ] as const)("%s", (_claim, text, problem) => {
    const address = parseAddress(text);
    expect(address.ok ? null : address.error).toBe(problem);
  });
});

describe("normalizeLoosely", () => {
  test("trims, composes and lowers what is no address", () => {
    expect(normalizeLoosely("  JO\u0308RG at Example ")).toBe("jörg at example");
  });

  test("takes any text, gives well-formed text, and leaves its own answers alone", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const once = normalizeLoosely(text);
        expect(once.isWellFormed()).toBe(true);
        expect(normalizeLoosely(once)).toBe(once);
      }),
      { numRuns: 1000 },
    );
  });
});

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
