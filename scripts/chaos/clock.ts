/**
 * The system's clock is set forward by a day, back, back by a day, and forward by ten years, while clients use all features. Retries
 * must come after their wait, webhooks must be signed with the time that the system shows, and nothing may expire or run in a loop.
 * Needs libfaketime (Debian package `faketime`).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clockOf, type Server, eventually, cpuSecondsOf } from "../harness/binary.ts";
import { type Claim, count, type Findings, openDatabase } from "./claims.ts";
import { type ChaosRun, UNFINISHED, withChaosRun } from "./run.ts";

const MAILS = 240;
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const DECADE_S = 3_653 * DAY_S;
/** A greylisted check takes at most 4 s, the first retry of a webhook 5.5 s. */
const SETTLED_MS_MAX = 30_000;
const ROUNDS = 3;
const FAILING = 4;
const IDLE_MS = 5_000;
const IDLE_CPU_SHARE_MAX = 0.5;
/** Just before old reports are removed, in every hour. */
const BEFORE_PURGE_S = 46 * 60 + 55;
const PURGED = [
  "verifications",
  "bulk_rows",
  "bulk_evidence",
  "dmarc_reports",
  "dmarc_raw",
  "blocklist_checks",
  "outbox",
];

interface Jump {
  readonly name: string;
  /** From the real time, in seconds. */
  readonly offsetS: number;
}

const isSettled = (run: ChaosRun): boolean => {
  const db = openDatabase(run.folder);
  const isOpen = UNFINISHED.some((from) => count(db, from) > 0);
  db.close();
  return !isOpen;
};

const rowsOf = (run: ChaosRun): readonly number[] => {
  const db = openDatabase(run.folder);
  const rows = PURGED.map((table) => count(db, table));
  db.close();
  return rows;
};

class ClockJumps {
  constructor(
    private readonly run: ChaosRun,
    private readonly server: Server,
    private readonly file: string,
  ) {}

  /** Clients work, the clock is set, they work on, and everything must be done soon. */
  async jump({ name, offsetS }: Jump): Promise<readonly Claim[]> {
    const { run, server } = this;
    const before = rowsOf(run);
    // Some of them fail before the jump, and wait for their retry.
    run.receiver.failNext(FAILING);
    await this.#work();
    run.load.expireIdempotencyKeys();
    run.receiver.failNext(FAILING);
    run.receiver.allowedOffsetsMs = [...run.receiver.allowedOffsetsMs.slice(-1), offsetS * 1_000];
    writeFileSync(this.file, offsetS < 0 ? `${offsetS}` : `+${offsetS}`);
    await this.#work();
    const isDone = await eventually(() => isSettled(run), SETTLED_MS_MAX);
    const startedS = cpuSecondsOf(server.process.pid);
    await Bun.sleep(IDLE_MS);
    const share = ((cpuSecondsOf(server.process.pid) - startedS) * 1_000) / IDLE_MS;
    const lost = rowsOf(run).filter((rows, at) => rows < (before[at] ?? 0)).length;
    console.error(`${name}: processor use when idle ${Math.round(share * 100)} %`);
    return [
      [`${name}: not everything was done within ${SETTLED_MS_MAX / 1000} s`, isDone ? 0 : 1],
      [`${name}: processor use when idle above ${IDLE_CPU_SHARE_MAX * 100} %`, share > IDLE_CPU_SHARE_MAX ? 1 : 0],
      [`${name}: tables with fewer rows than before`, lost],
      [`${name}: the process ended`, server.process.exitCode === null ? 0 : 1],
    ];
  }

  async #work(): Promise<void> {
    const sending = this.run.stream.send(MAILS / 12);
    for (let n = 0; n < ROUNDS; n++) await this.run.load.round(this.server.url);
    await sending.done;
  }
}

/** Seconds until the purge of reports: after a jump by that and whole hours it runs soon. */
const untilPurge = (): number => {
  const secondsOfHour = Math.floor(Date.now() / 1000) % HOUR_S;
  return (BEFORE_PURGE_S - secondsOfHour + HOUR_S) % HOUR_S;
};

/** The clock jumps in all directions. */
export const runClock = async (): Promise<Findings> => {
  const directory = mkdtempSync(join(tmpdir(), "postwarden-clock-"));
  const file = join(directory, "offset");
  writeFileSync(file, "+0");
  const settings = clockOf(file);
  try {
    return await withChaosRun({ mails: MAILS, settings }, async (run) => {
      const server = await run.start();
      const clock = new ClockJumps(run, server, file);
      const jumps: readonly Jump[] = [
        { name: "+1 day", offsetS: DAY_S },
        { name: "back to now", offsetS: 0 },
        { name: "-1 day", offsetS: -DAY_S },
        { name: "+10 years", offsetS: DECADE_S + untilPurge() },
        { name: "back from +10 years", offsetS: 0 },
      ];
      const claims: Claim[] = [];
      for (const jump of jumps) claims.push(...(await clock.jump(jump)));
      return run.findings(`${jumps.length} jumps`, [...claims, ...(await run.finish(server))]);
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};
