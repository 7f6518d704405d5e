import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyCopy } from "./backup.ts";
import { copyInWorker, writeScheduledBackup } from "./backup-worker.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openDb } from "./open.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;
let folder = "";
const source = () => join(folder, "a.db");
const file = () => join(folder, "backups/postwarden-2026-01-01T02-30-00Z.db");

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-worker-"));
  mkdirSync(join(folder, "backups"));
  const opened = openDb(source());
  if (opened.ok) opened.value.close();
});
afterEach(() => rmSync(folder, { recursive: true }));

const copy = (signal: AbortSignal, program = MAIN) => copyInWorker({ source: source(), file: file() }, signal, program);

const programOf = (text: string): string => {
  const program = join(folder, "program.ts");
  writeFileSync(program, text);
  return program;
};

describe("the thread that copies the database", () => {
  test("is started from main.ts, and writes a verified copy", async () => {
    const copied = await copy(new AbortController().signal);
    expect(copied).toMatchObject({ ok: true, value: { schema: MIGRATIONS.length } });
    expect(verifyCopy(file(), MIGRATIONS.length).ok).toBe(true);
  });

  test("reports a failure as a sentence", async () => {
    rmSync(join(folder, "backups"), { recursive: true });
    const copied = await copy(new AbortController().signal);
    expect(copied.ok ? "" : copied.error).toContain("no such directory. Mount or create it");
  });

  test.each([
    ["export {};", "the copying thread ended early"],
    ['throw new Error("broken");', "broken"],
  ])("that ends without a result (%s) is a failure: %s", async (text, message) => {
    const copied = await copy(new AbortController().signal, programOf(text));
    expect(copied.ok ? "" : copied.error).toContain(message);
  });

  test("that cannot be started is a failure, and nothing is rejected", async () => {
    const copied = await copy(new AbortController().signal, "\0");
    expect(copied.ok ? "" : copied.error).toStartWith(`${file()}: `);
  });

  test("is given up while it copies, and what it has written is removed", async () => {
    const program = programOf('require("node:worker_threads").parentPort.on("message", () => undefined);');
    writeFileSync(`${file()}.${process.pid}.partial`, "half of it");
    const stop = new AbortController();
    const copying = copy(stop.signal, program);
    stop.abort();
    expect(await copying).toEqual({ ok: false, error: `${file()}: stopped before it was complete.` });
    expect(readdirSync(join(folder, "backups"))).toEqual([]);
  });

  test("is given up when the service stops, and leaves nothing", async () => {
    const copied = await copy(AbortSignal.abort());
    expect(copied.ok ? "" : copied.error).toContain("stopped before it was complete");
    expect(readdirSync(join(folder, "backups"))).toEqual([]);
  });
});

describe("a scheduled backup", () => {
  const write = () => writeScheduledBackup({ source: source(), file: file() });

  test("removes what interrupted ones left, under whatever time they began", () => {
    const name = (hour: string, pid: number) => `backups/postwarden-2026-01-01T${hour}-30-00Z.db.${pid}.partial`;
    const checksums = ["backups/postwarden-2026-01-01T01-30-00Z.db.sha256", "backups/mine.db.sha256"];
    for (const path of [name("01", process.pid), "backups/mine.db.1234567890.partial", ...checksums])
      writeFileSync(join(folder, path), "half of it");
    expect(write()).toMatchObject({ ok: true, value: { schema: MIGRATIONS.length } });
    expect(readdirSync(join(folder, "backups")).toSorted()).toEqual([
      "mine.db.1234567890.partial",
      "mine.db.sha256",
      "postwarden-2026-01-01T02-30-00Z.db",
      "postwarden-2026-01-01T02-30-00Z.db.sha256",
    ]);
  });

  test("says of a directory that is not there how to make one", () => {
    rmSync(join(folder, "backups"), { recursive: true });
    const written = write();
    expect(written.ok ? "" : written.error).toContain("no such directory. Mount or create it");
  });

  test("names the database that cannot be read, and does not blame the directory", () => {
    rmSync(source());
    const written = write();
    expect(written.ok ? "" : written.error).toStartWith(`${file()}: ENOENT`);
    expect(written.ok ? "" : written.error).toContain(source());
  });

  test("says what is in its way", () => {
    writeFileSync(file(), "mine");
    const written = write();
    expect(written.ok ? "" : written.error).toContain("exists already");
  });
});
