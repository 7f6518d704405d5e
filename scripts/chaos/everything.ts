/**
 * All features in one: clients verify addresses and lists, monitor targets, send and upload reports and receive webhooks, while
 * the service is killed at random moments: under load, while it starts, while it stops, while it is backed up and migrated.
 */
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DOMAIN, mailOf, messagesOf } from "../bench/dmarc-mails.ts";
import { freePort } from "../bench/stage.ts";
import { BINARY, command, kill, type Server, spawnServer, startServer } from "./binary.ts";
import { chance, type Claim, count, eventually, type Findings, integrityClaims, one, openDatabase } from "./claims.ts";
import { claimsOf } from "./dmarc-claims.ts";
import { createStream, type Stream } from "./dmarc-stream.ts";
import { everythingClaims } from "./everything-claims.ts";
import { Load } from "./everything-load.ts";
import { killMigrations } from "./migrations.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";
import { CATALOGUE, startWorld } from "./world.ts";

const KEYS = 8;
const CREDITS = 1_000_000;
const SIGN_UP_CREDITS = 100;
const MAILS_PER_KILL = 8;
/** One report of this many comes by HTTP. */
const UPLOADED_OF = 4;
const UP_MS_MAX = 1_500;
const STARTING_MS_MAX = 200;
const STOPPING_MS_MAX = 300;
const BACKUP_MS_MAX = 150;
const END_MS_MAX = 240_000;
const DAY_S = 86_400;
const RECEIVER_IP = "127.20.0.25";

type Moment = "load" | "start" | "stop" | "backup" | "migration";
const MOMENTS: readonly Moment[] = [..."llllllllllllll"]
  .map((): Moment => "load")
  .concat("start", "start", "stop", "stop", "backup", "migration");

const call = async (url: string, key: string, request: { method: string; path: string; body: object }) => {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(url + request.path, { ...request, headers, body: JSON.stringify(request.body) });
  if (!response.ok) throw new Error(`${request.path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { domain?: { reporting_address?: string } };
};

class EverythingRun {
  readonly #directory = mkdtempSync(join(tmpdir(), "postwarden-chaos-"));
  readonly #folder = join(this.#directory, "data");
  readonly #backup = join(this.#directory, "backup.db");
  readonly #receiver = new WebhookReceiver();
  readonly #killed: Record<Moment, number> = { load: 0, start: 0, stop: 0, backup: 0, migration: 0 };
  #badBackups = 0;

  constructor(
    private readonly world: Awaited<ReturnType<typeof startWorld>>,
    private readonly kills: number,
  ) {}

  async run(): Promise<Findings> {
    const place = { ip: RECEIVER_IP, port: freePort() };
    const env = {
      ...this.world.settings(this.#folder),
      POSTWARDEN_MAX_CONNECTIONS_PER_HOST: "50",
      POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
      POSTWARDEN_BLOCKLIST_CATALOGUE: join(this.#directory, "catalogue.json"),
      POSTWARDEN_DNSBL_SIGNAL: "off",
      POSTWARDEN_REPORT_HOST: "reports.chaos.test",
      POSTWARDEN_REPORT_LISTEN: `${place.ip}:${place.port}`,
    };
    mkdirSync(this.#folder, { mode: 0o700 });
    await Bun.write(env.POSTWARDEN_BLOCKLIST_CATALOGUE, JSON.stringify(CATALOGUE));
    const { keys, reportAddress } = await this.#prepare(env);
    const todayS = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;
    const mails = this.kills * MAILS_PER_KILL;
    const uploads = Math.ceil(mails / UPLOADED_OF);
    const [hook, listed] = [this.#receiver.url, this.world.listed];
    const uploadNumbers = Array.from({ length: uploads }, (_, n) => mails + n);
    const load = new Load({ env, keys, hook, listed, reportAddress, todayS }, uploadNumbers);
    const parcelOf = (n: number) => ({
      from: "dmarc@reporter.example",
      to: reportAddress,
      bytes: mailOf(n, reportAddress, todayS),
    });
    const stream = createStream(place, mails, { connections: 4, parcelOf });
    await this.#killAtRandom(env, load, stream);
    const migrations = await killMigrations(this.#directory, this.#killed.migration);
    const leftovers = await this.#finish(env, load, stream);
    return this.#findings(load, stream, [...migrations, ...leftovers]);
  }

  stop(): void {
    this.#receiver.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #prepare(env: Readonly<Record<string, string>>) {
    command(["accounts", "create", "chaos", "--plan", "scale"], env);
    command(["credits", "grant", "chaos", String(CREDITS)], env);
    const create = ["keys", "create", "--account", "chaos", "--mode", "live"];
    const keys = Array.from({ length: KEYS }, () => command<{ key: string }>(create, env).key);
    const { secrets } = command<{ secrets: Array<{ secret: string }> }>(
      ["webhooks", "secret", "--account", "chaos"],
      env,
    );
    this.#receiver.secret = secrets[0]?.secret ?? "";
    const server = await startServer(env);
    const key = keys[0] ?? "";
    const body = { webhook_url: `${this.#receiver.url}/default` };
    await call(server.url, key, { method: "PATCH", path: "/v1/notifications", body });
    const enrolled = await call(server.url, key, {
      method: "POST",
      path: "/v1/dmarc/domains",
      body: { domain: DOMAIN },
    });
    await kill(server, "SIGTERM");
    return { keys, reportAddress: enrolled.domain?.reporting_address ?? "" };
  }

  async #killAtRandom(env: Readonly<Record<string, string>>, load: Load, stream: Stream): Promise<void> {
    for (let n = 1; n <= this.kills; n++) {
      const moment = MOMENTS[chance(MOMENTS.length)] ?? "load";
      this.#killed[moment]++;
      if (n % 20 === 0)
        console.error(
          `${n} kills, ${load.checks.length} checks, ${load.lists.length} lists, ${stream.acknowledged.size} report mails acknowledged`,
        );
      // Killed together at the end, because they have their own databases.
      if (moment === "migration") continue;
      if (moment === "start") {
        const starting = spawnServer(env);
        await Bun.sleep(chance(STARTING_MS_MAX));
        await kill(starting, "SIGKILL");
        continue;
      }
      const server = await startServer(env);
      const sending = stream.send(MAILS_PER_KILL);
      const round = load.round(server.url);
      await Bun.sleep(chance(UP_MS_MAX));
      if (moment === "backup") await this.#killBackup(env, server);
      if (moment === "stop") {
        server.process.kill("SIGTERM");
        await Bun.sleep(chance(STOPPING_MS_MAX));
      }
      await kill(server, "SIGKILL");
      sending.stop();
      await Promise.all([round, sending.done]);
    }
  }

  /** Kills a backup, or the server meanwhile. Under the name of a backup must be a whole one or nothing. */
  async #killBackup(env: Readonly<Record<string, string>>, server: Server): Promise<void> {
    rmSync(this.#backup, { force: true });
    const backup = Bun.spawn([BINARY, "backup", this.#backup], {
      ...{ env: { ...env }, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
    });
    await Bun.sleep(chance(BACKUP_MS_MAX));
    if (chance(2) === 0) backup.kill("SIGKILL");
    else await kill(server, "SIGKILL");
    await backup.exited;
    if (!existsSync(this.#backup)) return;
    const copy = new Database(this.#backup, { readonly: true });
    this.#badBackups += integrityClaims(copy).filter(([, wrong]) => wrong > 0).length;
    copy.close();
  }

  /** Lets the service finish everything, and looks at what it leaves in its directory. */
  async #finish(env: Readonly<Record<string, string>>, load: Load, stream: Stream): Promise<readonly Claim[]> {
    const server = await startServer(env);
    const rest = stream.send(Number.POSITIVE_INFINITY);
    await load.uploadRest(server.url);
    await Promise.race([rest.done, Bun.sleep(END_MS_MAX)]);
    rest.stop();
    const db = openDatabase(this.#folder);
    const open = [
      "verifications WHERE status = 'pending'",
      "bulk_jobs WHERE status IN ('receiving', 'queued', 'running', 'deleting')",
      "dmarc_ingestions WHERE status = 'pending'",
      "outbox WHERE delivered_at_ms IS NULL",
      "webhook_deliveries WHERE status = 'pending'",
    ];
    await eventually(() => open.every((from) => count(db, from) === 0), END_MS_MAX);
    const unfinished = open.map((from): Claim => [`unfinished ${from.split(" ")[0]}`, count(db, from)]);
    db.close();
    server.process.kill("SIGTERM");
    const status = await server.process.exited;
    const expected = new Set(["postwarden.db", "server.lock", "report-tls.pem"]);
    const left = readdirSync(this.#folder).filter((name) => !expected.has(name));
    for (const name of left) console.error(`left in the data directory: ${name}`);
    return [...unfinished, ["exit status of the last stop", status], ["files left in the data directory", left.length]];
  }

  #findings(load: Load, stream: Stream, more: readonly Claim[]): Findings {
    for (const surprise of load.surprises.slice(0, 5)) console.error(`unexpected: ${surprise}`);
    for (const problem of this.#receiver.invalid.slice(0, 5)) console.error(`invalid webhook: ${problem}`);
    const db = openDatabase(this.#folder);
    const creditsBefore = CREDITS + SIGN_UP_CREDITS;
    const acknowledged = new Set([...stream.acknowledged, ...load.uploaded]);
    const mails = this.kills * MAILS_PER_KILL + Math.ceil((this.kills * MAILS_PER_KILL) / UPLOADED_OF);
    const claims: readonly Claim[] = [
      ...everythingClaims(db, { load, receiver: this.#receiver, creditsBefore }),
      ...claimsOf(join(this.#folder, "postwarden.db"), mails, acknowledged),
      [
        "difference between messages of uploads and trusted totals",
        Math.abs(
          [...load.uploaded].reduce((sum, n) => sum + messagesOf(n), 0) -
            one<{ n: number }>(db, "SELECT coalesce(sum(messages), 0) AS n FROM dmarc_daily WHERE is_trusted").n,
        ),
      ],
      ...more,
      ...integrityClaims(db),
      ["backups that are not a whole database", this.#badBackups],
    ];
    const events = count(db, "outbox");
    db.close();
    const moments = Object.entries(this.#killed).map(([moment, times]) => `${times} at ${moment}`);
    const counts = [
      ...[
        `${load.checks.length} checks`,
        `${load.lists.length} lists of ${load.lists.reduce((sum, { rows }) => sum + rows, 0)} rows`,
      ],
      ...[
        `${acknowledged.size} reports`,
        `${load.targets.size} targets`,
        `${load.targetChecks.size} checks of targets`,
      ],
      ...[`${load.repeats} repeats with an Idempotency-Key`, `${events} events in ${this.#receiver.requests} requests`],
    ];
    return { summary: `${this.kills} kills (${moments.join(", ")}); acknowledged: ${counts.join(", ")}`, claims };
  }
}

/** Kills the service `kills` times under the load of all features. */
export const runEverything = async (kills: number): Promise<Findings> => {
  const world = await startWorld();
  const run = new EverythingRun(world, kills);
  try {
    return await run.run();
  } finally {
    run.stop();
    world.stop();
  }
};
