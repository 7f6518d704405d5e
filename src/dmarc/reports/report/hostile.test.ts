import fc from "fast-check";
import expected from "../../../../fixtures/dmarc/reports/expected.json" with { type: "json" };
import { describe, expect, test } from "bun:test";
import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import { COUNT_MAX } from "./report-values.ts";
import { type RejectReason, REPORT_LIMITS } from "./report.ts";
import { readReportFile } from "./read-file.ts";
import { readReport } from "./read-report.ts";
import { readTlsReport } from "./tls-report.ts";
import { createUnpackBudget, UNPACK_LIMITS, unpack, ZIP_DIRECTORY_ENTRIES_MAX } from "./unpack.ts";
import { XML_LIMITS } from "./report-xml.ts";

const FIXTURES = new URL("../../../../fixtures/dmarc/reports/", import.meta.url).pathname;
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

const HEAD =
  "<feedback><report_metadata><org_name>o</org_name><report_id>1</report_id><date_range><begin>1763510400</begin>" +
  "<end>1763596799</end></date_range></report_metadata><policy_published><domain>example.com</domain></policy_published>";
const RECORD = "<record><row><source_ip>192.0.2.1</source_ip><count>1</count></row></record>";
const reportWith = (inside: string): Uint8Array => bytesOf(`${HEAD}${RECORD}${inside}</feedback>`);

/** A zip archive of equal deflated files whose directory says what it likes about their sizes. */
const zipOf = (
  files: number,
  data: Uint8Array,
  claimedBytes: number,
  nameOf = (index: number) => `${index}.xml`,
): Uint8Array => {
  const packed = deflateRawSync(data);
  const local: Uint8Array[] = [];
  const central: Uint8Array[] = [];
  let at = 0;
  for (let index = 0; index < files; index += 1) {
    const name = Buffer.from(nameOf(index));
    const sizes = Buffer.alloc(16);
    sizes.writeUInt16LE(8, 0);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(packed.byteLength, 14);
    common.writeUInt32LE(claimedBytes, 18);
    common.writeUInt16LE(name.byteLength, 22);
    local.push(Buffer.from("PK\u0003\u0004"), common, name, packed);
    const offset = Buffer.alloc(14);
    offset.writeUInt32LE(at, 10);
    central.push(Buffer.from("PK\u0001\u0002\u0014\u0000"), common, offset, name);
    at += 30 + name.byteLength + packed.byteLength;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt16LE(files & 0xffff, 8);
  end.writeUInt16LE(files & 0xffff, 10);
  end.writeUInt32LE(directory.byteLength, 12);
  end.writeUInt32LE(at, 16);
  return new Uint8Array(Buffer.concat([...local, directory, end]));
};

const outcomesOf = async (bytes: Uint8Array) => (await readReportFile(bytes)).map(({ reason }) => reason);

describe("archives made to hurt", () => {
  const bomb = new Uint8Array(UNPACK_LIMITS.entryBytesMax + 1);

  test("a gzip of more than an entry may have is refused", async () => {
    expect(await outcomesOf(gzipSync(bomb))).toEqual(["entry_too_large"]);
  });

  test("a zip of more than an entry may have is refused, whatever size its directory claims", async () => {
    for (const claimed of [10, 0xffff_fff0])
      expect(await outcomesOf(zipOf(1, bomb, claimed))).toEqual(["entry_too_large"]);
  });

  test("entries that each are allowed are refused together when they exceed what a mail may have", async () => {
    const found = await unpack(zipOf(3, new Uint8Array(UNPACK_LIMITS.entryBytesMax - 1), 10));
    const refused = found.map((each) => (each.kind === "refused" ? each.reason : each.kind));
    expect(refused.toSorted()).toEqual(["mail_too_large", "other", "other"]);
  });

  test("the allowance is one for all parts of a mail", async () => {
    const budget = createUnpackBudget();
    for (let index = 0; index < UNPACK_LIMITS.entriesMax; index += 1) await unpack(gzipSync("x"), null, budget);
    expect(await unpack(gzipSync("x"), "a", budget)).toEqual([
      { kind: "refused", name: "a", reason: "too_many_entries" },
    ]);
  });

  test("an archive of a hundred thousand entries is refused by its number", async () => {
    expect(await outcomesOf(zipOf(100_000, bytesOf("x"), 1))).toEqual(["too_many_entries"]);
  });

  test.each<[number, RejectReason | null]>([
    [0, null],
    [1, "too_many_entries"],
  ])("folders count as entries of the directory: %i more than are looked at", async (more, reason) => {
    const entries = ZIP_DIRECTORY_ENTRIES_MAX + more;
    const zip = zipOf(entries, reportWith(""), 10, (index) => `${index}${index === entries - 1 ? ".xml" : "/"}`);
    expect(await outcomesOf(zip)).toEqual([reason]);
  });

  test("what is thrown away is paid for: a second bomb leaves nothing for a third", async () => {
    const budget = createUnpackBudget();
    const found = await unpack(zipOf(3, bomb, 10), null, budget);
    expect(found.map((one) => (one.kind === "refused" ? one.reason : one.kind))).toEqual([
      "entry_too_large",
      "entry_too_large",
      "mail_too_large",
    ]);
    expect(budget.bytesLeft).toBe(0);
  });

  test("a directory that says less than it has is read as far as it says", async () => {
    const zip = zipOf(2, reportWith(""), 10);
    new DataView(zip.buffer).setUint16(zip.byteLength - 12, 1, true);
    expect(await outcomesOf(zip)).toEqual([null]);
  });
});

describe("XML made to hurt", () => {
  test.each([
    ["200,000 levels, all closed", reportWith("<x>".repeat(200_000) + "</x>".repeat(200_000)), "too_deep"],
    ["200,000 levels around a report", bytesOf(`${"<a>".repeat(200_000)}${HEAD}</feedback>`), "too_deep"],
    ["200,000 levels that nothing closes", reportWith("<x>".repeat(200_000)), "too_deep"],
    [
      "an element with too many attributes",
      reportWith(`<x ${'a="" '.repeat(XML_LIMITS.attributesMax + 1)}/>`),
      "malformed",
    ],
    ["faults without end", reportWith("]]> ".repeat(XML_LIMITS.faultsMax + 1)), "malformed"],
    ["more records than a report may have", reportWith(RECORD.repeat(REPORT_LIMITS.recordsMax)), "too_many_records"],
    ["a million bare ampersands", reportWith("& ".repeat(1_000_000)), "malformed"],
    ["a record inside of a record", reportWith(`<record>${RECORD}</record>`), "malformed"],
    ["a record in an element closed too late", bytesOf(`${HEAD}<x>${RECORD}</feedback></x>`), "truncated"],
    ["a record inside of one that nothing closes", reportWith(`<record>${RECORD}`), "truncated"],
    ["closing tags of nothing", reportWith("</x>".repeat(90_000)), "truncated"],
    ["records in an element of their own", bytesOf(`${HEAD}<records>${RECORD}</records></feedback>`), "malformed"],
    ["a large page that is about something else", bytesOf(`<x>${"<a>b</a>".repeat(40_000)}</x>`), "not_a_report"],
    [
      "white space without end in front of a report",
      bytesOf(`<x>${" ".repeat(400_000)}${HEAD}</feedback></x>`),
      "not_a_report",
    ],
    [
      "a document type behind the report",
      bytesOf(`${HEAD}${RECORD}</feedback>${" ".repeat(65_000)}<!DOCTYPE x>`),
      "doctype",
    ],
  ] as const)("%s: refused", async (_name, bytes, problem) => {
    expect(await readReport(bytes)).toMatchObject({ ok: false, error: { problem } });
  });

  test.each([
    ["as many records as a report may have", RECORD.repeat(REPORT_LIMITS.recordsMax - 1), REPORT_LIMITS.recordsMax],
    ["bare ampersands", "& ".repeat(40_000), 1],
    ["white space without end", " ".repeat(1_000_000), 1],
    ["a section without end", `<x><![CDATA[${"]".repeat(1_000_000)}]]></x>`, 1],
    ["a comment without end", `<!--${"x".repeat(1_000_000)}-->`, 1],
    ["an instruction without end", `<?x ${"?".repeat(1_000_000)}?>`, 1],
    ["an entity's name without end", `<x>&${"a".repeat(100_000)};</x>`, 1],
    ["a well-formed extra that also has records", `<x>${RECORD}</x>`, 1],
    ["a text of a megabyte", `<x>${"a".repeat(1_000_000)}</x>`, 1],
  ])("%s: read without harm", async (_name, inside, rows) => {
    const report = await readReport(reportWith(inside));
    expect(report.ok && report.value.rows.length).toBe(rows);
  });

  test.each([
    ["words in angle brackets", "<x>, ".repeat(20) + "<y@z>, ".repeat(90_000)],
    ["bare ampersands and signs", "& < ".repeat(40_000)],
    ["comments that nothing closes", "<!-- <![CDATA[ <? ".repeat(30_000)],
    ["an element's name without end", `<${"a".repeat(100_000)}/>`],
    ["attributes that are long together", `<x ${`y="${"a".repeat(5000)}" `.repeat(20)}/>`],
  ])("%s: text in the name of a reporter, half a tag between records", async (_name, inside) => {
    const named = bytesOf(`${HEAD}${RECORD}</feedback>`.replace(">o<", `>${inside}<`));
    const report = await readReport(named);
    expect(report.ok && report.value.rows.length).toBe(1);
    expect(await readReport(reportWith(inside))).toEqual({ ok: false, error: { problem: "truncated", line: 1 } });
  });

  test("a large document leaves turns to the rest of the process", async () => {
    const order: string[] = [];
    setImmediate(() => order.push("the rest"));
    await readReport(reportWith(RECORD.repeat(20_000)));
    order.push("the document");
    expect(order).toEqual(["the rest", "the document"]);
  });

  test("the records of one mail are limited together, and so are the texts that are repaired", async () => {
    const two = reportWith(RECORD);
    const budget = { recordsLeft: 3, repairCharactersLeft: 2000 };
    expect((await readReport(two, budget)).ok).toBe(true);
    expect(await readReport(two, budget)).toMatchObject({ ok: false, error: { problem: "too_many_records" } });
    const damaged = bytesOf(`${HEAD}<x>R & D</x></feedback>`);
    for (let at = 0; at + damaged.byteLength <= 2000; at += damaged.byteLength) {
      expect((await readReport(damaged, budget)).ok).toBe(true);
    }
    expect(await readReport(damaged, budget)).toMatchObject({ ok: false, error: { problem: "malformed" } });
  });

  test("an element's text is kept up to its ceiling", async () => {
    const report = await readReport(bytesOf(`${HEAD}${RECORD}</feedback>`.replace(">o<", `>${"é".repeat(100_000)}<`)));
    expect(report.ok && report.value.orgName?.length).toBe(XML_LIMITS.textCharactersMax);
  });

  test("entities that every object inherits are no entities", async () => {
    for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
      const report = await readReport(bytesOf(`${HEAD}${RECORD}</feedback>`.replace(">o<", `>&${name};<`)));
      expect(report.ok && report.value.orgName).toBe(`&${name};`);
    }
  });
});

test("a TLS report of 200,000 levels is refused", () => {
  expect(readTlsReport(bytesOf(`{"policies":${"[".repeat(200_000)}`)).ok).toBe(false);
  expect(readTlsReport(bytesOf(`{"policies":${"[".repeat(200_000)}${"]".repeat(200_000)}}`)).ok).toBe(false);
});

const seeds = await Promise.all(
  Object.keys(expected).map(async (path) => Buffer.from(await Bun.file(FIXTURES + path).bytes())),
);
const xmlSeeds = seeds.filter((seed) => seed.includes("<feedback"));

/** One change of some bytes: a piece cut out, doubled, or written over. */
const mutationOf = (pool: readonly Buffer[]) =>
  fc
    .tuple(
      fc.constantFrom(...pool),
      fc.nat(),
      fc.nat({ max: 200 }),
      fc.constantFrom("cut", "double", "overwrite", "end"),
      fc.uint8Array({ maxLength: 20 }),
    )
    .map(([seed, at, length, how, bytes]) => {
      const from = at % (seed.byteLength + 1);
      const [head, piece, tail] = [
        seed.subarray(0, from),
        seed.subarray(from, from + length),
        seed.subarray(from + length),
      ];
      if (how === "end") return head;
      return Buffer.concat([head, ...(how === "cut" ? [] : how === "double" ? [piece, piece] : [bytes]), tail]);
    });

describe("any change of any fixture", () => {
  test("gives at least one reading, each sound in itself, and never an exception", async () => {
    const property = fc.asyncProperty(mutationOf(seeds), async (bytes) => {
      const readings = await readReportFile(bytes);
      expect(readings.length).toBeGreaterThan(0);
      for (const { outcome, reason, report } of readings) {
        expect(reason === null).toBe(outcome === "stored");
        if (outcome === "stored") expect(report?.rows.length).toBeGreaterThan(0);
        if (outcome === "rejected" || outcome === "quarantined") expect(report).toBeNull();
      }
    });
    await fc.assert(property, { numRuns: 1500 });
  });

  test("leaves only rows that can be counted in a report", async () => {
    const property = fc.asyncProperty(mutationOf(xmlSeeds), async (bytes) => {
      const report = await readReport(bytes);
      if (!report.ok) return;
      expect(report.value.beginMs).toBeLessThanOrEqual(report.value.endMs);
      for (const { count, sourceIp } of report.value.rows) {
        expect(Number.isInteger(count) && count > 0 && count <= COUNT_MAX).toBe(true);
        expect(sourceIp).toMatch(/^[\d.]+$|^[\da-f:]+$/);
      }
    });
    await fc.assert(property, { numRuns: 1500 });
  });

  test("that is found anywhere in a chunk is read alike", async () => {
    // The parser is given 16,384 characters at a time: a long name moves all that follows across that border.
    const read = (padding: number) =>
      readReport(bytesOf(`<feedback><!--${"x".repeat(padding)}-->${HEAD.slice(10)}${RECORD}</feedback>`));
    const first = await read(0);
    expect(first.ok).toBe(true);
    for (let padding = 15_900; padding < 16_400; padding += 1) expect(await read(padding)).toEqual(first);
  });
});
