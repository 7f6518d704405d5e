/**
 * All features in one: clients verify addresses and lists, monitor targets, send and upload reports and receive webhooks, while
 * the service is killed at random moments: under load, while it starts, while it stops, while it is backed up and migrated.
 */
import { Database } from "bun:sqlite";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BINARY, kill, type Server, spawnServer } from "../harness/binary.ts";
import { chance, type Findings, integrityClaims } from "./claims.ts";
import { killMigrations } from "./migrations.ts";
import { type ChaosRun, withChaosRun } from "./run.ts";

const MAILS_PER_KILL = 8;
/** The server is killed after up to this many responses, but not later than after this time. */
const RESPONSES_MAX = 50;
const UP_MS_MAX = 5_000;
const PAUSE_MS_MAX = 100;
const STARTING_MS_MAX = 200;
const STOPPING_MS_MAX = 300;
const BACKUP_MS_MAX = 150;
const REPORTED_EVERY = 20;

type Moment = "load" | "start" | "stop" | "backup" | "migration";
/** One kill of ten for each of the others. */
const MOMENTS: readonly Moment[] = [...Array<Moment>(6).fill("load"), "start", "stop", "backup", "migration"];

class RandomKills {
  readonly killed: Record<Moment, number> = { load: 0, start: 0, stop: 0, backup: 0, migration: 0 };
  badBackups = 0;
  readonly #backup: string;

  constructor(private readonly run: ChaosRun) {
    this.#backup = join(run.directory, "backup.db");
  }

  async kill(times: number): Promise<void> {
    const { load, stream } = this.run;
    for (let n = 1; n <= times; n++) {
      const moment = MOMENTS[chance(MOMENTS.length)] ?? "load";
      this.killed[moment]++;
      if (moment === "start") await this.#killStart();
      // Migrations are killed at the end, because they have their own databases.
      else if (moment !== "migration") await this.#killUnderLoad(moment);
      if (n % REPORTED_EVERY !== 0) continue;
      const acknowledged = [`${load.checks.length} checks`, `${load.lists.length} lists`];
      console.error(`${n} kills; ${acknowledged.join(", ")}, ${stream.acknowledged.size} report mails acknowledged`);
    }
  }

  async #killStart(): Promise<void> {
    const starting = spawnServer(this.run.env);
    await Bun.sleep(chance(STARTING_MS_MAX));
    await kill(starting, "SIGKILL");
  }

  async #killUnderLoad(moment: Moment): Promise<void> {
    const { load, stream } = this.run;
    const server = await this.run.start();
    const sending = stream.send(MAILS_PER_KILL);
    const round = load.round(server.url);
    await this.#untilResponses(chance(RESPONSES_MAX));
    if (moment === "backup") await this.#killBackup(server);
    if (moment === "stop") {
      server.process.kill("SIGTERM");
      await Bun.sleep(chance(STOPPING_MS_MAX));
    }
    await kill(server, "SIGKILL");
    sending.stop();
    await Promise.all([round, sending.done]);
  }

  /** Waits for `count` responses, and a moment longer: the rate of a server depends on the machine. */
  async #untilResponses(count: number): Promise<void> {
    const { load } = this.run;
    const enough = load.responses + count;
    const endsAtMs = performance.now() + UP_MS_MAX;
    while (load.responses < enough && performance.now() < endsAtMs) await Bun.sleep(5);
    await Bun.sleep(chance(PAUSE_MS_MAX));
  }

  /** Kills a backup, or the server meanwhile. Under the name of a backup must be a whole one or nothing. */
  async #killBackup(server: Server): Promise<void> {
    rmSync(this.#backup, { force: true });
    const backup = Bun.spawn([BINARY, "backup", this.#backup], {
      ...{ env: { ...this.run.env }, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    });
    await Bun.sleep(chance(BACKUP_MS_MAX));
    if (chance(2) === 0) backup.kill("SIGKILL");
    else await kill(server, "SIGKILL");
    await backup.exited;
    if (!existsSync(this.#backup)) return;
    const copy = new Database(this.#backup, { readonly: true });
    this.badBackups += integrityClaims(copy).filter(([, wrong]) => wrong > 0).length;
    copy.close();
  }
}

/** Kills the service `times` times under the load of all features. */
export const runEverything = (times: number): Promise<Findings> =>
  withChaosRun({ mails: times * MAILS_PER_KILL }, async (run) => {
    const kills = new RandomKills(run);
    await kills.kill(times);
    const migrations = await killMigrations(run.directory, kills.killed.migration);
    const left = await run.finish(await run.start());
    const moments = Object.entries(kills.killed).map(([moment, count]) => `${count} at ${moment}`);
    return run.findings(`${times} kills (${moments.join(", ")})`, [
      ...migrations,
      ...left,
      ["backups that are not a whole database", kills.badBackups],
    ]);
  });
