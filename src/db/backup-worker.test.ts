import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyCopy } from "./backup.ts";
import { copyInWorker } from "./backup-worker.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openDb } from "./open.ts";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
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

  test.each(["export {};", 'throw new Error("broken");'])(
    "that ends without a result (%s) is a failure",
    async (text) => {
      const program = join(folder, "program.ts");
      writeFileSync(program, text);
      const copied = await copy(new AbortController().signal, program);
      expect(copied.ok).toBe(false);
    },
  );

  test("is given up when the service stops, and leaves nothing", async () => {
    const copied = await copy(AbortSignal.abort());
    expect(copied.ok ? "" : copied.error).toContain("stopped before it was complete");
    expect(readdirSync(join(folder, "backups"))).toEqual([]);
  });
});
