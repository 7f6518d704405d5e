import { expect, test } from "bun:test";
import fc from "fast-check";
import { SaxesParser } from "saxes";
import expected from "../../../../fixtures/dmarc/reports/expected.json" with { type: "json" };
import { readReportFile } from "./read-file.ts";
import { readReport } from "./read-report.ts";
import { countMessages } from "./report.ts";

const FIXTURES = new URL("../../../../fixtures/dmarc/reports/", import.meta.url).pathname;

interface Sound {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly messages: number;
}

/** Whether a parser that repairs nothing finds no fault; bare ampersands, which hide no tag, apart. */
const isWellFormed = (bytes: Uint8Array): boolean => {
  const parser = new SaxesParser({ xmlns: false });
  let faults = 0;
  parser.on("error", ({ message }) => {
    if (!/entity|disallowed character\.$/.test(message)) faults += 1;
  });
  parser.write(new TextDecoder().decode(bytes).replace(/^[^<]+/, "")).close();
  return faults === 0;
};

/** The fixtures that are well-formed XML and are counted. */
const sound = (
  await Promise.all(
    Object.keys(expected)
      .filter((path) => path.endsWith(".xml"))
      .map(async (path): Promise<Sound[]> => {
        const bytes = await Bun.file(FIXTURES + path).bytes();
        const [reading] = await readReportFile(bytes);
        const report = reading?.outcome === "stored" ? reading.report : null;
        return report === null || !isWellFormed(bytes) ? [] : [{ path, bytes, messages: countMessages(report) }];
      }),
  )
).flat();

/** A piece cut out of a sound report. */
const hole = (octetsMin: number, octetsMax: number) =>
  fc
    .tuple(fc.constantFrom(...sound), fc.nat(), fc.integer({ min: octetsMin, max: octetsMax }))
    .map(([of, at, octets]) => {
      const from = at % of.bytes.byteLength;
      return { of, from, bytes: Buffer.concat([of.bytes.subarray(0, from), of.bytes.subarray(from + octets)]) };
    });

test("there are sound reports to cut holes into", () => {
  expect(sound.length).toBeGreaterThan(50);
});

test("a report with a hole counts fewer messages only where the hole leaves a well-formed document", async () => {
  for (const [min, max] of [
    [1, 60],
    [60, 2500],
  ] as const) {
    const property = fc.asyncProperty(hole(min, max), async ({ of, bytes }) => {
      const report = await readReport(bytes);
      if (report.ok && countMessages(report.value) < of.messages && !isWellFormed(bytes))
        throw new Error(`${of.path}: ${bytes}`);
    });
    await fc.assert(property, { numRuns: 2000 });
  }
});

test("a report without its end is truncated, wherever it ends, and the line is one that it has", async () => {
  for (const { path, bytes, messages } of sound.filter((each) => each.path.startsWith("reporters/"))) {
    const end = Buffer.from(bytes).lastIndexOf("feedback>");
    const start = Buffer.from(bytes).indexOf(">", Buffer.from(bytes).indexOf("<feedback")) + 1;
    const lines = new TextDecoder().decode(bytes).split("\n").length;
    for (let at = start; at < end + "feedback".length; at += 7) {
      const report = await readReport(bytes.subarray(0, at));
      expect([path, at, messages, report.ok ? null : report.error.problem]).toEqual([path, at, messages, "truncated"]);
      const line = report.ok ? 0 : (report.error.line ?? 0);
      expect(line >= 1 && line <= lines).toBe(true);
    }
  }
});
