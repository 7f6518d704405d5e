import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import rows from "../../../../fixtures/dmarc/records.json" with { type: "json" };
import { parseRecord, RECORD_OCTETS_MAX } from "./record.ts";

const codesOf = (text: string): string[] => [...new Set(parseRecord(text).warnings.map(({ code }) => code))].sort();

describe("the records of fixtures/dmarc", () => {
  test("are many, some of them no records", () => {
    expect(rows.length).toBeGreaterThanOrEqual(150);
    expect(rows.filter(({ valid }) => !valid).length).toBeGreaterThanOrEqual(30);
    expect(new Set(rows.map(({ text }) => text)).size).toBe(rows.length);
  });

  test.each(rows.map((row) => [JSON.stringify(row.text), row] as const))("%s is read as written there", (_, row) => {
    const { valid, values } = parseRecord(row.text);
    expect({ valid, warnings: codesOf(row.text) }).toEqual({ valid: row.valid, warnings: row.warnings });
    if (values === null) return;
    const read = {
      ...values,
      rua: values.rua.map(({ address }) => address),
      ruf: values.ruf.map(({ address }) => address),
    };
    expect<object>(read).toMatchObject(row.values ?? {});
  });
});

describe("the tags", () => {
  test("are kept in order, unknown and repeated ones too, names in lower case, values as written", () => {
    const { tags } = parseRecord("v=DMARC1; P=Reject; x = y z ; rua=mailto:A@example.com!10m ; nonsense; p=none;");
    expect(tags.map(({ name, value }) => [name, value])).toEqual([
      ["v", "DMARC1"],
      ["p", "Reject"],
      ["x", "y z"],
      ["rua", "mailto:A@example.com!10m"],
      ["p", "none"],
    ]);
  });

  test("are kept of a text that is no record, whose values are not", () => {
    const record = parseRecord("v=dmarc1; p=reject");
    expect(record.values).toBeNull();
    expect(record.tags.map(({ name }) => name)).toEqual(["v", "p"]);
  });

  test("say where their values stand", () => {
    const text = "v=DMARC1; p =  none ;rua=";
    const spans = parseRecord(text).tags.map(({ valueStart, valueEnd }) => text.slice(valueStart, valueEnd));
    expect(spans).toEqual(["DMARC1", "  none ", ""]);
  });
});

describe("the warnings", () => {
  test("are sentences that name what they are about", () => {
    const [warning] = parseRecord("v=DMARC1; p=rejekt; rua=mailto:a@example.com").warnings;
    expect(warning?.message).toContain('"rejekt"');
    expect(warning?.message).toEndWith(".");
  });

  test("stand once each, however often there is a reason", () => {
    const { warnings } = parseRecord(`v=DMARC1; p=none; rua=mailto:a@example.com${";".repeat(1000)}`);
    expect(warnings.map(({ code }) => code).filter((code) => code === "empty_tag")).toHaveLength(1);
  });

  test("shorten what they repeat", () => {
    const [warning] = parseRecord(`v=DMARC1; p=${"x".repeat(1000)}; rua=mailto:a@example.com`).warnings;
    expect(warning?.message.length).toBeLessThan(200);
  });
});

describe("lengths", () => {
  test("255 octets are one string, 256 are not; octets are counted, not characters", () => {
    const ofOctets = (octets: number): string => "v=DMARC1; p=none; rua=mailto:a@example.com; x=".padEnd(octets, "y");
    expect(codesOf(ofOctets(255))).not.toContain("over_255_octets");
    expect(codesOf(ofOctets(256))).toContain("over_255_octets");
    expect(codesOf(ofOctets(254).concat("ü"))).toContain("over_255_octets");
  });

  test("what no DNS record can hold is no record", () => {
    expect(parseRecord("v=DMARC1;".padEnd(RECORD_OCTETS_MAX, " ")).valid).toBe(true);
    const tooLong = parseRecord("v=DMARC1;".padEnd(RECORD_OCTETS_MAX + 1, " "));
    expect({ valid: tooLong.valid, codes: tooLong.warnings.map(({ code }) => code) }).toEqual({
      valid: false,
      codes: ["too_long"],
    });
  });
});

test("any text at all is read, and is valid exactly when its first tag is v=DMARC1", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "v",
      "=",
      "DMARC1",
      ";",
      " ",
      "\t",
      "p",
      "rua",
      "none",
      "mailto:",
      "a@b.example",
      ",",
      "!10m",
      "%",
      "\0",
    ),
    fc.string({ unit: "binary", maxLength: 4 }),
  );
  const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(text, (given) => {
      const { valid, tags } = parseRecord(given);
      expect(valid).toBe(
        /^[ \t\r\n]*v[ \t\r\n]*=[ \t\r\n]*DMARC1[ \t\r\n]*(;|$)/i.test(given) && tags[0]?.value === "DMARC1",
      );
    }),
    { numRuns: 500 },
  );
});

test("a policy that runs on into the next tag misses its semicolon", () => {
  const messages = (text: string) => parseRecord(text).warnings.map(({ message }) => message);
  expect(messages("v=DMARC1; p=reject rua=mailto:a@example.com").join(" ")).toContain(
    "A semicolon is missing before rua=.",
  );
  expect(messages("v=DMARC1; p=none; sp=reject pct=50").join(" ")).toContain("A semicolon is missing before pct=.");
  expect(messages("v=DMARC1; p=strict").join(" ")).not.toContain("semicolon is missing");
});
