import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../base/log.ts";
import { Recurring } from "../base/recurring.ts";
import { err, ok } from "../base/errors.ts";
import { createTestClock } from "../../testing/clock.ts";
import {
  backupNameAt,
  backupsAmong,
  describeDirectoryProblem,
  isBackupName,
  newestTimeOf,
} from "./backup-directory.ts";
import { type CopyOutcome, writeScheduledBackup } from "./backup-worker.ts";
import { openDb } from "./open.ts";
import { ScheduledBackups } from "./scheduled-backups.ts";

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 10, 12);
let folder = "";
const at = (name: string) => join(folder, name);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-scheduled-"));
  mkdirSync(at("backups"));
});
afterEach(() => rmSync(folder, { recursive: true }));

type Copy = (order: { source: string; file: string }, signal: AbortSignal) => Promise<CopyOutcome>;

/** Scheduled backups whose copies are small files, and a minute of the cron table. */
const schedule = ({ keep = 3, copy, list }: { keep?: number; copy?: Copy; list?: () => Promise<string[]> } = {}) => {
  const clock = createTestClock(START_MS);
  const logged: string[] = [];
  const log = createLog("info", clock, (line) => logged.push(line));
  const copies: string[] = [];
  const write: Copy = async ({ file }) => {
    copies.push(file);
    for (const name of [file, `${file}.sha256`]) writeFileSync(name, "copy");
    return ok({ bytes: 4, schema: 1 });
  };
  const directory = at("backups");
  const options = { source: at("a.db"), directory, keep, copy: copy ?? write, ...(list === undefined ? {} : { list }) };
  const backups = new ScheduledBackups({ clock, log }, options);
  const job = new Recurring({ clock, log }, { name: "job", run: () => backups.run().then(() => null) });
  const run = () => job.run();
  const hours = async (count: number) => {
    await clock.advance(count * HOUR_MS);
    await run();
  };
  const names = () => readdirSync(directory).toSorted();
  const backupNames = () => names().filter((name) => name.endsWith(".db"));
  return { backups, run, clock, logged, copies, hours, names, backupNames };
};

describe("scheduled backups", () => {
  test("write one that somebody requests in the next run, once, also after a failure, and keep no more for it", async () => {
    const { backups, run, copies, clock, backupNames } = schedule({ keep: 2 });
    await run();
    for (const count of [2, 3]) {
      await clock.advance(60_000);
      backups.request();
      expect(backups.isRequested).toBe(true);
      await run();
      await run();
      expect([copies.length, backups.isRequested]).toEqual([count, false]);
    }
    expect(backupNames()).toEqual(["postwarden-2026-01-10T12-01-00Z.db", "postwarden-2026-01-10T12-02-00Z.db"]);
    expect(backups.stored.map(({ file }) => file)).toEqual(
      backupNames()
        .toReversed()
        .map((name) => at(`backups/${name}`)),
    );
  });

  test("that fail are tried at once when somebody requests one", async () => {
    const outcomes: CopyOutcome[] = [err("full"), ok({ bytes: 4, schema: 1 })];
    const { backups, run } = schedule({ copy: async () => outcomes.shift() ?? err("none") });
    await run();
    await run();
    expect([backups.problem, outcomes.length]).toEqual(["full", 1]);
    backups.request();
    await run();
    expect([backups.problem, outcomes.length]).toEqual([null, 0]);
  });

  test("write the first one at once, and then one a day at 02:30 UTC", async () => {
    const { backups, run, copies, clock, hours, logged } = schedule();
    await run();
    expect(logged.map((line) => JSON.parse(line))).toMatchObject([
      { message: "backup written", file: copies[0], bytes: 4, took_ms: 0 },
    ]);
    expect(copies).toEqual([at("backups/postwarden-2026-01-10T12-00-00Z.db")]);
    expect(backups.lastAtMs).toBe(START_MS);
    await hours(14);
    expect(copies).toHaveLength(1);
    await clock.advance(HOUR_MS / 2);
    await run();
    await run();
    expect(copies.slice(1)).toEqual([at("backups/postwarden-2026-01-11T02-30-00Z.db")]);
    expect(backups.findings()).toEqual([]);
  });

  test("write none after a start if the last one is from after 02:30", async () => {
    writeFileSync(at("backups/postwarden-2026-01-10T02-30-05Z.db"), "");
    const { backups, run, copies } = schedule();
    await run();
    expect(copies).toEqual([]);
    expect(backups.lastAtMs).toBe(Date.UTC(2026, 0, 10, 2, 30, 5));
  });

  test("keep the newest ones, and touch no other file", async () => {
    const others = ["a.db", "postwarden-2026-01-01.db", "postwarden-2026-13-01T00-00-00Z.db", "readme"];
    for (const name of others) writeFileSync(at(`backups/${name}`), "");
    const { run, hours, names } = schedule({ keep: 2 });
    await run();
    for (let day = 0; day < 4; day++) await hours(24);
    expect(names().filter((name) => !others.includes(name))).toEqual([
      "postwarden-2026-01-13T12-00-00Z.db",
      "postwarden-2026-01-13T12-00-00Z.db.sha256",
      "postwarden-2026-01-14T12-00-00Z.db",
      "postwarden-2026-01-14T12-00-00Z.db.sha256",
    ]);
    expect(names()).toEqual(expect.arrayContaining(others));
  });

  test("remove nothing when the copy fails, and try again after 15 minutes", async () => {
    for (const day of ["05", "06", "07"]) writeFileSync(at(`backups/postwarden-2026-01-${day}T02-30-00Z.db`), "");
    let tries = 0;
    const { backups, run, clock, logged, names } = schedule({
      keep: 1,
      copy: async () => (++tries < 3 ? err("/b: disk full.") : ok({ bytes: 1, schema: 1 })),
    });
    await run();
    expect(names()).toHaveLength(3);
    const age = `The last backup in ${at("backups")} is from 2026-01-07 02:30 UTC, over 36 hours ago.`;
    expect(backups.findings()).toEqual(["Backup failed (tried again every 15 minutes): /b: disk full.", age]);
    await clock.advance(14 * 60_000);
    await run();
    expect([tries, logged.length]).toEqual([1, 1]);
    expect(JSON.parse(logged[0] ?? "")).toMatchObject({ level: "error", error: { message: "/b: disk full." } });
    await clock.advance(60_000);
    await run();
    expect([tries, logged.length]).toEqual([2, 1]);
    await clock.advance(15 * 60_000);
    await run();
    expect(tries).toBe(3);
    expect(logged.map((line): unknown => JSON.parse(line).message)).toEqual([
      ...["job failed", "backup written", "old backup removed", "old backup removed", "old backup removed"],
      "job works again",
    ]);
    expect(backups.findings()).toEqual([]);
  });

  test("say when the directory is missing, and go on when it appears", async () => {
    rmSync(at("backups"), { recursive: true });
    const { backups, run, hours, copies } = schedule();
    await run();
    expect(backups.findings()).toEqual([
      `Backup failed (tried again every 15 minutes): ${at("backups")}: no such directory. Mount or create it: install -d -m 700 ${at("backups")}`,
    ]);
    mkdirSync(at("backups"));
    await hours(1);
    expect(copies).toHaveLength(1);
    expect(backups.findings()).toEqual([]);
  });

  test("say at the start when the directory is missing", async () => {
    const { backups, run, logged } = schedule();
    await backups.checkDirectory();
    expect(logged).toEqual([]);
    rmSync(at("backups"), { recursive: true });
    await backups.checkDirectory();
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain("install -d -m 700");
    expect(backups.findings()).toHaveLength(1);
    mkdirSync(at("backups"));
    await run();
    expect(backups.findings()).toEqual([]);
  });

  test("say when the directory does not respond, and list it only once meanwhile", async () => {
    let lists = 0;
    const { promise, resolve } = Promise.withResolvers<string[]>();
    const { backups, run, clock, copies } = schedule({
      list: () => {
        lists++;
        return promise;
      },
    });
    for (let attempt = 0; attempt < 3; attempt++) {
      const running = run();
      await clock.advance(30_000);
      await running;
      expect(backups.findings()[0]).toContain("did not respond within 30 s.");
      await clock.advance(15 * 60_000);
    }
    expect(lists).toBe(1);
    resolve([]);
    await run();
    expect([copies.length, backups.findings()]).toEqual([1, []]);
  });

  test("report a backup that is older than 36 hours", async () => {
    const { backups, run, clock } = schedule();
    await run();
    await clock.advance(36 * HOUR_MS);
    expect(backups.findings()).toEqual([]);
    await clock.advance(1);
    expect(backups.findings()).toHaveLength(1);
  });

  test("a clock that was ahead neither delays the next one nor has it removed", async () => {
    for (const year of [2036, 2037]) writeFileSync(at(`backups/postwarden-${year}-01-01T02-30-00Z.db`), "");
    const { run, copies, hours, backupNames } = schedule({ keep: 2 });
    await run();
    expect(copies).toHaveLength(1);
    await hours(24);
    expect(backupNames()).toEqual(["postwarden-2026-01-10T12-00-00Z.db", "postwarden-2026-01-11T12-00-00Z.db"]);
  });

  /** A copy that takes until it is stopped; `begun` resolves at its start. */
  const hangingCopy = () => {
    const begun = Promise.withResolvers<void>();
    let calls = 0;
    const copy: Copy = (_, signal) => {
      calls++;
      begun.resolve();
      return new Promise((resolve) =>
        signal.addEventListener("abort", () => resolve(err("it hangs.")), { once: true }),
      );
    };
    return { copy, begun: begun.promise, calls: () => calls };
  };

  test("a copy that hangs is given up after two hours", async () => {
    const { copy, begun } = hangingCopy();
    const { backups, run, clock } = schedule({ copy });
    const running = run();
    await begun;
    await clock.advance(2 * HOUR_MS);
    await running;
    expect(backups.findings()[0]).toStartWith("Backup failed (tried again every 15 minutes): it hangs.");
  });

  test("a stop ends the copy in progress, logs no failure, and nothing is started after it", async () => {
    const { copy, begun, calls } = hangingCopy();
    const { backups, run, logged } = schedule({ copy });
    const running = run();
    await begun;
    backups.stop();
    await running;
    await run();
    expect([calls(), logged]).toEqual([1, []]);
  });
});

describe("the copy of a scheduled backup", () => {
  test("is a backup of the database; what interrupted ones left is removed, and no other file", () => {
    const opened = openDb(at("a.db"));
    if (opened.ok) opened.value.close();
    const abandoned = "postwarden-2026-01-09T02-30-00Z.db.4194305.partial";
    const kept = ["mine.db.4194305.partial", "postwarden-2026-01-09T02-30-00Z.db.1.partial"];
    for (const name of [abandoned, `${abandoned}-journal`, ...kept]) writeFileSync(at(`backups/${name}`), "");
    const file = at("backups/postwarden-2026-01-10T02-30-00Z.db");
    expect(writeScheduledBackup({ source: at("a.db"), file })).toMatchObject({ ok: true });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(at("backups")).toSorted()).toEqual(
      [...kept, "postwarden-2026-01-10T02-30-00Z.db", "postwarden-2026-01-10T02-30-00Z.db.sha256"].toSorted(),
    );
  });

  test("fails with a sentence", () => {
    const file = at("backups/postwarden-2026-01-10T02-30-00Z.db");
    const written = writeScheduledBackup({ source: at("none.db"), file });
    expect(written.ok ? "" : written.error).toContain("none.db");
    expect(readdirSync(at("backups"))).toEqual([]);
    rmSync(at("backups"), { recursive: true });
    const unwritten = writeScheduledBackup({ source: at("a.db"), file });
    expect(unwritten.ok ? "" : unwritten.error).toContain(`install -d -m 700 ${at("backups")}`);
  });
});

test.each([
  ["EACCES", "chown USER /b"],
  ["EROFS", "ReadWritePaths=/b"],
  ["EIO", "/b: failed."],
])("a directory that fails with %s is described with what to do", (code, text) => {
  expect(describeDirectoryProblem("/b", Object.assign(new Error("failed"), { code }))).toContain(text);
});

test("the name of a backup has its time, to the second", () => {
  expect(isBackupName(backupNameAt(START_MS + 999))).toBe(true);
  const [found] = backupsAmong([backupNameAt(START_MS + 999)], "/b", START_MS + 999);
  expect(found).toEqual({ file: "/b/postwarden-2026-01-10T12-00-00Z.db", atMs: START_MS });
  expect(newestTimeOf([], START_MS)).toBeNull();
  expect(newestTimeOf([{ file: "", atMs: START_MS + 1 }], START_MS)).toBeNull();
});
