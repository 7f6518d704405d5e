import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { minuteText } from "../base/clock.ts";
import { DAY_MS } from "../base/days.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { waitFor, withDeadline } from "../base/wait.ts";
import {
  backupNameAt,
  backupsAmong,
  describeDirectoryProblem,
  newestTimeOf,
  type StoredBackup,
} from "./backup-directory.ts";
import { CHECKSUM_SUFFIX } from "./partial-file.ts";
import type { CopyOutcome } from "./backup-worker.ts";
import type { Runtime } from "./runtime.ts";

interface ScheduledBackupOptions {
  /** Path of the database. */
  readonly source: string;
  /** Where the backups go. It has to exist: an unmounted disk must not turn into backups on the system disk. */
  readonly directory: string;
  /** How many backups stay. At least 1. */
  readonly keep: number;
  /** The names in a directory; by default those of the file system. */
  readonly list?: (directory: string) => Promise<string[]>;
  readonly copy: (
    order: { readonly source: string; readonly file: string },
    signal: AbortSignal,
  ) => Promise<CopyOutcome>;
}

const HOUR_MS = 3_600_000;
/** When backups are due, after midnight UTC. */
const DUE_MS = 2.5 * HOUR_MS;
const RETRY_MS = 15 * 60_000;
/** A copy that takes longer hangs on its disk. */
const COPY_MS_MAX = 2 * HOUR_MS;
/** A network file system that does not respond. */
const LIST_MS_MAX = 30_000;
/** A daily backup that is this old was missed. */
export const BACKUP_AGE_MS_MAX = 36 * HOUR_MS;

/** The latest moment until now at which a backup was due. */
const lastDueMs = (nowMs: number) => nowMs - ((((nowMs - DUE_MS) % DAY_MS) + DAY_MS) % DAY_MS);

/**
 * Writes the daily backups into `POSTWARDEN_BACKUP_DIR` and removes all but the newest `keep`. The files themselves tell
 * when the last one was made. A backup that failed is tried again after 15 minutes.
 */
export class ScheduledBackups {
  readonly #stopped = new AbortController();
  #lastAtMs: number | null = null;
  #problem: string | null = null;
  #stored: readonly StoredBackup[] = [];
  #isRequested = false;
  #isRunning: boolean = false;
  #verifiedFile: string | null = null;
  #listing: Promise<string[]> | null = null;
  /** By the monotonic clock. */
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly runtime: Pick<Runtime, "clock" | "log">,
    private readonly options: ScheduledBackupOptions,
  ) {}

  /** When the newest backup was made, by the wall clock; null if there is none, or none was seen yet. */
  get lastAtMs(): number | null {
    return this.#lastAtMs;
  }

  /** The backups in the directory when it was last looked at, the newest first. */
  get stored(): readonly StoredBackup[] {
    return this.#stored;
  }

  get isRequested(): boolean {
    return this.#isRequested;
  }

  /** Whether a copy is being written. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** The path of the last backup that this process has written and verified; null before the first. */
  get verifiedFile(): string | null {
    return this.#verifiedFile;
  }

  get problem(): string | null {
    return this.#problem;
  }

  /** Requests a backup at the next run (within a minute). */
  request(): void {
    this.#isRequested = true;
    this.#notBeforeMs = Number.NEGATIVE_INFINITY;
  }

  /** What the operator has to know: a failure, and a last backup that is too old. */
  findings(): readonly string[] {
    const { directory } = this.options;
    const isOld = this.#lastAtMs !== null && this.runtime.clock.nowMs() - this.#lastAtMs > BACKUP_AGE_MS_MAX;
    return [
      ...(this.#problem === null ? [] : [`Backup failed (tried again every 15 minutes): ${this.#problem}`]),
      ...(isOld
        ? [`The last backup in ${directory} is from ${minuteText(this.#lastAtMs ?? 0)}, over 36 hours ago.`]
        : []),
    ];
  }

  /** At the start: whether the directory can be listed. A problem is logged and found, long before the first backup is due. */
  async checkDirectory(): Promise<void> {
    const stored = await this.#list();
    if (stored.ok || this.#problem !== null) return;
    this.#problem = stored.error;
    this.runtime.log.warn("backups cannot be written", { directory: this.options.directory, error: stored.error });
  }

  /** Writes a backup if one is due. Called every minute, by one caller. Rejects with what prevents backups, also until the next attempt. */
  async run(): Promise<void> {
    const { clock } = this.runtime;
    if (this.#stopped.signal.aborted) return;
    if (clock.monotonicMs() >= this.#notBeforeMs) {
      const stored = await this.#list();
      this.#problem = stored.ok ? await this.#writeIfDue(stored.value) : stored.error;
      this.#isRequested = false;
      this.#notBeforeMs = this.#problem === null ? Number.NEGATIVE_INFINITY : clock.monotonicMs() + RETRY_MS;
    }
    if (this.#problem !== null && !this.#stopped.signal.aborted) throw new Error(this.#problem);
  }

  /** Ends a copy in progress and starts no other. */
  stop(): void {
    this.#stopped.abort();
  }

  /** One listing at a time: each that hangs takes a thread of the pool, which uploads need. */
  #names(): Promise<string[]> {
    const { directory, list = readdir } = this.options;
    this.#listing ??= list(directory).finally(() => {
      this.#listing = null;
    });
    return this.#listing;
  }

  async #list(): Promise<Result<readonly StoredBackup[], string>> {
    const { directory } = this.options;
    try {
      const names = await waitFor(this.runtime.clock, this.#names(), { timeoutMs: LIST_MS_MAX });
      if (!names.ok) return err(`${directory} did not respond within ${LIST_MS_MAX / 1_000} s.`);
      const nowMs = this.runtime.clock.nowMs();
      const stored = backupsAmong(names.value, directory, nowMs);
      this.#lastAtMs = newestTimeOf(stored, nowMs);
      this.#stored = stored;
      return ok(stored);
    } catch (error) {
      return err(describeDirectoryProblem(directory, error));
    }
  }

  /** Null when none was due or it was written, else why not. */
  async #writeIfDue(stored: readonly StoredBackup[]): Promise<string | null> {
    const { clock, log } = this.runtime;
    const { source, directory, keep, copy } = this.options;
    const atMs = clock.nowMs();
    const isDue = this.#lastAtMs === null || this.#lastAtMs < lastDueMs(atMs);
    if (!isDue && !this.#isRequested) return null;
    const file = join(directory, backupNameAt(atMs));
    const startedMs = clock.monotonicMs();
    const limits = { timeoutMs: COPY_MS_MAX, signal: this.#stopped.signal };
    this.#isRunning = true;
    const copied = await withDeadline(clock, limits, (signal) => copy({ source, file }, signal)).finally(() => {
      this.#isRunning = false;
    });
    if (!copied.ok) return copied.error;
    this.#lastAtMs = atMs;
    this.#verifiedFile = file;
    log.info("backup written", { file, ...copied.value, took_ms: Math.round(clock.monotonicMs() - startedMs) });
    await this.#prune(stored.slice(keep - 1));
    this.#stored = [{ file, atMs }, ...stored.slice(0, keep - 1)];
    return null;
  }

  /** Runs only after a new backup was verified, so that the last good one always stays. */
  async #prune(old: readonly StoredBackup[]) {
    for (const { file } of old) {
      try {
        for (const name of [file, file + CHECKSUM_SUFFIX]) await rm(name, { force: true });
        this.runtime.log.info("old backup removed", { file });
      } catch (error) {
        this.runtime.log.warn("old backup not removed", { file, error });
      }
    }
  }
}
