import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Glob } from "bun";
import { type Clock, systemClock } from "../../../foundation/base/clock.ts";
import { createLog } from "../../../foundation/base/log.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { type FileReader, type FileToRead, readingHere, type ReadOutcome } from "./file-reader.ts";
import { READ_MS_MAX, ReadingThread } from "./reading-thread.ts";

const MAIN = new URL("../../../main.ts", import.meta.url).pathname;
const FIXTURES = new URL("../../../../fixtures/dmarc/reports/", import.meta.url).pathname;
const MB = 1024 * 1024;
const folder = mkdtempSync(join(tmpdir(), "postwarden-reading-"));
afterAll(() => rmSync(folder, { recursive: true }));

const started: ReadingThread[] = [];
afterEach(() => {
  for (const thread of started.splice(0)) thread.stop();
});

const logged: string[] = [];
const startThread = (program = MAIN, clock: Clock = systemClock): ReadingThread => {
  const thread = new ReadingThread({ clock, log: createLog("warn", clock, (line) => logged.push(line)) }, { program });
  started.push(thread);
  return thread;
};

/** A thread that does something else with the files whose name is that of a rule; it reads the others as main.ts does. */
const programOf = (rules: Readonly<Record<string, string>>): string => {
  const program = join(folder, `${Bun.hash(JSON.stringify(rules))}.ts`);
  const cases = Object.entries(rules).map(([name, code]) => `if (names.includes("${name}")) { ${code} }`);
  const text = `import { parentPort } from "node:worker_threads";
    import { runReadingThread } from "${new URL("reading-thread.ts", import.meta.url).pathname}";
    parentPort.on("message", ({ files }) => { const names = files.map(({ name }) => name); ${cases.join("\n")} });
    runReadingThread();`;
  writeFileSync(program, text);
  return program;
};

const readAll = async (reader: FileReader, files: readonly FileToRead[], bytesLeft = Number.POSITIVE_INFINITY) => {
  const outcomes: ReadOutcome[] = [];
  const allowance = { bytesLeft };
  while (outcomes.length < files.length) outcomes.push(...(await reader.read(files.slice(outcomes.length), allowance)));
  return { outcomes, bytesLeft: allowance.bytesLeft };
};

/** With the hashes in the order of the readings. */
const comparable = ({ outcomes, bytesLeft }: Awaited<ReturnType<typeof readAll>>) => ({
  outcomes: outcomes.map((one) =>
    one.ok
      ? {
          readings: one.value.readings,
          hashes: one.value.readings.map(({ report }) => report && one.value.rowsHashes.get(report)),
        }
      : one.error.reason,
  ),
  bytesLeft,
});

const textFile = (name: string, text: string | Uint8Array): FileToRead => ({
  name,
  bytes: typeof text === "string" ? new TextEncoder().encode(text) : text,
});
const reportFile = (name: string): FileToRead => textFile(name, sampleReportMail({ reportId: name }));
const largeFile = (rows: number): FileToRead =>
  textFile(
    "large",
    sampleReportXml({ rows: Array.from({ length: rows }, (_, n) => ({ ip: `10.0.${n >> 8}.${n & 255}` })) }),
  );
const namesOf = ({ outcomes }: Awaited<ReturnType<typeof readAll>>) =>
  outcomes.map((one) => (one.ok ? (one.value.readings[0]?.report?.reportId ?? null) : one.error.reason));

describe("a thread that reads files", () => {
  test("reads the same from every fixture as the main thread does", async () => {
    const paths = [...new Glob("*/**/*").scanSync(FIXTURES)].toSorted();
    const files = paths.map((name) => ({ name, bytes: new Uint8Array(readFileSync(FIXTURES + name)) }));
    const all = [...files, largeFile(12_000), reportFile("last"), textFile("empty", "")];
    const [here, beside] = [await readAll(readingHere(), all), await readAll(startThread(), all)];
    expect(all.length).toBeGreaterThan(100);
    expect(comparable(beside)).toEqual(comparable(here));
  });

  test.each([5, 65])("keeps to what files may unpack to together: %p MB", async (allowedMb) => {
    const packed = (size: number) =>
      Bun.gzipSync(new TextEncoder().encode(sampleReportXml({}) + " ".repeat(size * MB)));
    const files = [2, 2, 33, 2, 2, 33].map((size, at) => textFile(String(at), packed(size)));
    const [here, beside] = [readingHere(), startThread()];
    const expected = comparable(await readAll(here, files, allowedMb * MB));
    expect(comparable(await readAll(beside, files, allowedMb * MB))).toEqual(expected);
    expect(expected.outcomes).toContain("upload_too_large");
  });

  test("reads what several give it at the same time", async () => {
    const thread = startThread();
    const groups = ["a", "b", "c"].map((group) => Array.from({ length: 40 }, (_, n) => reportFile(`${group}${n}`)));
    const read = await Promise.all(groups.map((files) => readAll(thread, files)));
    expect(read.map(namesOf)).toEqual(groups.map((files) => files.map(({ name }) => name)));
  });

  test("that is stopped is started again for the next file", async () => {
    const thread = startThread();
    expect(namesOf(await readAll(thread, [reportFile("a")]))).toEqual(["a"]);
    thread.stop();
    expect(namesOf(await readAll(thread, [reportFile("b")]))).toEqual(["b"]);
  });

  test.each([
    ["ends", "process.exit(1);"],
    ["throws", "throw new Error('broken');"],
  ])("that %s takes one file with it; the others are read again", async (_, code) => {
    const files = ["a", "deadly", "b", "c"].map(reportFile);
    const read = await readAll(startThread(programOf({ deadly: code })), files);
    expect(namesOf(read)).toEqual(["a", "internal_error", "b", "c"]);
    expect(logged.join()).toContain("the thread that reads reports was ended");
  });

  test("that ended once reads everything in the second attempt", async () => {
    const flag = join(folder, "ended");
    const once = `const { existsSync, writeFileSync } = require("node:fs"); if (!existsSync("${flag}")) { writeFileSync("${flag}", ""); process.exit(1); }`;
    expect(namesOf(await readAll(startThread(programOf({ a: once })), [reportFile("a")]))).toEqual(["a"]);
  });

  test("that cannot be started is logged, and the files are read without it", async () => {
    logged.length = 0;
    expect(namesOf(await readAll(startThread("\0"), ["a", "b"].map(reportFile)))).toEqual(["a", "b"]);
    expect(logged.join()).toContain("the thread that reads reports cannot be started");
  });

  test("that does not end is ended after a minute, with an error for that file only", async () => {
    const [clock, stuck] = [createTestClock(), join(folder, "stuck")];
    const code = `require("node:fs").appendFileSync("${stuck}", "x"); for (;;);`;
    const thread = startThread(programOf({ stuck: code }), clock);
    let isRead: boolean = false;
    const reading = readAll(thread, ["a", "stuck", "b"].map(reportFile)).finally(() => (isRead = true));
    for (let times = 0; !isRead;) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (!existsSync(stuck) || readFileSync(stuck).length === times) continue;
      times += 1;
      await clock.advance(READ_MS_MAX);
    }
    expect(namesOf(await reading)).toEqual(["a", "took_too_long", "b"]);
    expect(namesOf(await readAll(thread, [reportFile("next")]))).toEqual(["next"]);
  });
});
