/** A service under the load of all features, for the parts of `npm run chaos` that harm it in different ways. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DOMAIN, mailOf, messagesOf } from "../bench/dmarc-mails.ts";
import {
  type Environment,
  type Server,
  command,
  createAccount,
  createKey,
  eventually,
  kill,
  startServer,
} from "../harness/binary.ts";
import { freePort } from "../harness/world.ts";
import { type Claim, type Findings, count, integrityClaims, one, openDatabase } from "./claims.ts";
import { claimsOf } from "./dmarc-claims.ts";
import { type Stream, createStream } from "./dmarc-stream.ts";
import { everythingClaims } from "./everything-claims.ts";
import { Load } from "./everything-load.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";
import { CATALOGUE, startWorld } from "./world.ts";

const KEYS = 8;
const CREDITS = 1_000_000;
const SIGN_UP_CREDITS = 100;
const CREDITS_BEFORE = CREDITS + SIGN_UP_CREDITS;
/** One report of this many comes by HTTP. */
const UPLOADED_OF = 4;
const END_MS_MAX = 240_000;
const DAY_S = 86_400;
const RECEIVER_IP = "127.20.0.25";
const KEPT_FILES = new Set(["postwarden.db", "server.lock", "report-tls.pem"]);
const SHOWN_MAX = 5;

interface RunOptions {
  /** Report mails and uploads to send. */
  readonly mails: number;
  readonly settings?: Environment;
  /** The data directory, if not a new one on the disk for temporary files. */
  readonly folder?: string;
}

const call = async (url: string, key: string, request: { method: string; path: string; body: object }) => {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(url + request.path, { ...request, headers, body: JSON.stringify(request.body) });
  if (!response.ok) throw new Error(`${request.path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { domain?: { reporting_address?: string } };
};

/** Rows of these are work that is under way. */
export const UNFINISHED = [
  "verifications WHERE status = 'pending'",
  "bulk_jobs WHERE status IN ('receiving', 'queued', 'running', 'deleting')",
  "dmarc_ingestions WHERE status = 'pending'",
  "outbox WHERE delivered_at_ms IS NULL",
  "webhook_deliveries WHERE status = 'pending'",
];

/** The directories, the receivers and the clients of one run. */
export class ChaosRun {
  readonly directory: string = mkdtempSync(join(tmpdir(), "postwarden-chaos-"));
  readonly receiver = new WebhookReceiver();
  readonly folder: string;
  readonly env: Environment;
  readonly #catalogue: string = join(this.directory, "catalogue.json");
  readonly reports = { ip: RECEIVER_IP, port: freePort() };
  #prepared: { readonly load: Load; readonly stream: Stream } | null = null;

  constructor(
    readonly world: Awaited<ReturnType<typeof startWorld>>,
    private readonly options: RunOptions,
  ) {
    this.folder = options.folder ?? join(this.directory, "data");
    this.env = {
      ...world.settings(this.folder),
      POSTWARDEN_MAX_CONNECTIONS_PER_HOST: "50",
      POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
      POSTWARDEN_BLOCKLIST_CATALOGUE: this.#catalogue,
      POSTWARDEN_DNSBL_SIGNAL: "off",
      POSTWARDEN_REPORT_HOST: "reports.chaos.test",
      POSTWARDEN_REPORT_LISTEN: `${this.reports.ip}:${this.reports.port}`,
      ...options.settings,
    };
  }

  get load(): Load {
    if (this.#prepared === null) throw new Error("prepare() first");
    return this.#prepared.load;
  }

  get stream(): Stream {
    if (this.#prepared === null) throw new Error("prepare() first");
    return this.#prepared.stream;
  }

  start(): Promise<Server> {
    return startServer(this.env);
  }

  /** Creates the account, its keys, its default webhook and its domain. */
  async prepare(): Promise<void> {
    const { env, receiver } = this;
    mkdirSync(this.folder, { mode: 0o700, recursive: true });
    await Bun.write(this.#catalogue, JSON.stringify(CATALOGUE));
    const key = createAccount("chaos", { env, credits: CREDITS });
    const keys = [key, ...Array.from({ length: KEYS - 1 }, () => createKey("chaos", env))];
    const secret = command<{ secrets: Array<{ secret: string }> }>(["webhooks", "secret", "--account", "chaos"], env);
    receiver.secret = secret.secrets[0]?.secret ?? "";
    const server = await this.start();
    const webhook = { webhook_url: `${receiver.url}/default` };
    await call(server.url, key, { method: "PATCH", path: "/v1/notifications", body: webhook });
    const enrolled = await call(server.url, key, {
      method: "POST",
      path: "/v1/dmarc/domains",
      body: { domain: DOMAIN },
    });
    await kill(server, "SIGTERM");
    this.#prepared = this.#clients(keys, enrolled.domain?.reporting_address ?? "");
  }

  #clients(keys: readonly string[], reportAddress: string) {
    const { options, env, world, receiver } = this;
    const todayS = Math.floor(Date.now() / 1000 / DAY_S) * DAY_S;
    const mails = options.mails - Math.ceil(options.mails / UPLOADED_OF);
    const uploads = Array.from({ length: options.mails - mails }, (_, n) => mails + n);
    const load = new Load({ env, keys, hook: receiver.url, listed: world.listed, reportAddress, todayS }, uploads);
    const parcelOf = (n: number) => ({
      from: "dmarc@reporter.example",
      to: reportAddress,
      bytes: mailOf(n, reportAddress, todayS),
    });
    return { load, stream: createStream(this.reports, mails, { connections: 4, parcelOf }) };
  }

  /** Lets a running service finish everything and stops it; what was left. */
  async finish(server: Server): Promise<readonly Claim[]> {
    const rest = this.stream.send(Number.POSITIVE_INFINITY);
    await this.load.uploadRest(server.url);
    await Promise.race([rest.done, Bun.sleep(END_MS_MAX)]);
    rest.stop();
    const db = openDatabase(this.folder);
    await eventually(() => UNFINISHED.every((from) => count(db, from) === 0), END_MS_MAX);
    const unfinished = UNFINISHED.map((from): Claim => [`unfinished ${from.split(" ")[0]}`, count(db, from)]);
    db.close();
    server.process.kill("SIGTERM");
    const status = await server.process.exited;
    const files = readdirSync(this.folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const left = files.map(({ name }) => name).filter((name) => !KEPT_FILES.has(name));
    for (const name of left) console.error(`left in the data directory: ${name}`);
    return [...unfinished, ["exit status of the last stop", status], ["files left in the data directory", left.length]];
  }

  /** All claims about what the clients did, after `finish`. */
  findings(summary: string, more: readonly Claim[]): Findings {
    const { load, receiver, folder, options, stream } = this;
    for (const surprise of load.surprises.slice(0, SHOWN_MAX)) console.error(`unexpected: ${surprise}`);
    for (const problem of receiver.invalid.slice(0, SHOWN_MAX)) console.error(`invalid webhook: ${problem}`);
    const db = openDatabase(folder);
    const acknowledged = new Set([...stream.acknowledged, ...load.uploaded]);
    const trusted = one<{ n: number }>(
      db,
      "SELECT coalesce(sum(messages), 0) AS n FROM dmarc_daily WHERE is_trusted",
    ).n;
    const uploaded = [...load.uploaded].reduce((sum, n) => sum + messagesOf(n), 0);
    const claims: readonly Claim[] = [
      ...everythingClaims(db, { load, receiver, creditsBefore: CREDITS_BEFORE }),
      ...claimsOf(folder, options.mails, acknowledged),
      ["difference between messages of uploads and trusted totals", Math.abs(uploaded - trusted)],
      ...more,
      ...integrityClaims(db),
    ];
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
      ...[
        `${load.repeats} repeats with an Idempotency-Key`,
        `${count(db, "outbox")} events in ${receiver.requests} requests`,
      ],
    ];
    db.close();
    return { summary: `${summary}; acknowledged: ${counts.join(", ")}`, claims };
  }

  stop(): void {
    this.receiver.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Runs `work` with a world and a run of its own, and cleans up. */
export const withChaosRun = async (
  options: RunOptions,
  work: (run: ChaosRun) => Promise<Findings>,
): Promise<Findings> => {
  const world = await startWorld();
  const run = new ChaosRun(world, options);
  try {
    await run.prepare();
    return await work(run);
  } finally {
    run.stop();
    world.stop();
  }
};
