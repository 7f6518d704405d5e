import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBackup } from "./backup.ts";
import { checkChecksum, sha256OfFile, writeChecksum } from "./partial-file.ts";
import { openDb } from "./open.ts";
import { describeRestoreProblem, restoreBackup } from "./restore.ts";

let folder = "";
const at = (name: string) => join(folder, name);
const restore = () =>
  restoreBackup(at("monday.db"), {
    path: at("restored.db"),
    ...{ keptSuffix: ".kept", schemaMax: 1_000, keepSessions: false, by: { atMs: 1, user: "root", host: "h", pid: 1 } },
  });

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-checksum-"));
  const opened = openDb(at("live.db"));
  if (!opened.ok) throw new Error(opened.error.kind);
  opened.value.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES ('a', 'ada', 'free', 1)");
  opened.value.close();
  expect(writeBackup(at("live.db"), at("monday.db"))).toMatchObject({ ok: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("the checksum of a backup", () => {
  test("stands beside it in the format of sha256sum, for its owner only", () => {
    expect(readFileSync(at("monday.db.sha256"), "utf8")).toBe(`${sha256OfFile(at("monday.db"))}  monday.db\n`);
    expect(sha256OfFile(at("monday.db"))).toBe(
      new Bun.CryptoHasher("sha256").update(readFileSync(at("monday.db"))).digest("hex"),
    );
    expect(statSync(at("monday.db.sha256")).mode & 0o777).toBe(0o600);
    expect(checkChecksum(at("monday.db"))).toBe("matches");
  });

  test("finds each flipped bit, and nothing is restored", () => {
    const bytes = readFileSync(at("monday.db"));
    for (let flip = 0; flip < 24; flip++) {
      const changed = Buffer.from(bytes);
      const place = Math.floor((bytes.length * (flip + 0.5)) / 24);
      changed[place] = (changed[place] ?? 0) ^ (1 << (flip % 8));
      writeFileSync(at("monday.db"), changed);
      const restored = restore();
      expect(restored.ok).toBe(false);
      expect(existsSync(at("restored.db"))).toBe(false);
    }
  });

  test("of a value that SQLite cannot know to be wrong is named in the refusal", () => {
    const sqlite = new Sqlite(at("monday.db"));
    sqlite.run("UPDATE accounts SET plan = 'scale'");
    sqlite.close();
    const restored = restore();
    expect(restored).toMatchObject({ ok: false, error: { problem: { kind: "checksum", isReadable: true } } });
    if (!restored.ok)
      expect(describeRestoreProblem("monday.db", "x", restored.error)).toContain("does not match monday.db.sha256");
  });

  test("is not needed: a backup of an older version has none", () => {
    rmSync(at("monday.db.sha256"));
    expect(restore()).toMatchObject({ ok: true, value: { hasChecksum: false } });
  });

  test.each([
    ["no checksum", "this is something else"],
    ["a shorter one", "abc123  monday.db"],
    ["nothing", ""],
    ["too much", "x".repeat(10_000)],
  ])("a file with %s beside a backup is named", (_, text) => {
    writeFileSync(at("monday.db.sha256"), text);
    expect(restore()).toMatchObject({ ok: false, error: { problem: { kind: "checksum", isReadable: false } } });
  });

  test("replaces one that is left over, and never writes through a link", () => {
    writeFileSync(at("mine.txt"), "mine");
    symlinkSync(at("mine.txt"), at("tuesday.db.sha256"));
    writeChecksum(at("tuesday.db"), "0".repeat(64));
    expect(readFileSync(at("mine.txt"), "utf8")).toBe("mine");
    expect(readFileSync(at("tuesday.db.sha256"), "utf8")).toStartWith("0000");
  });
});
