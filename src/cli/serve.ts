import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { createLog } from "../base/log.ts";
import { composeService, realOutside, type Service } from "../compose.ts";
import type { Config } from "../config.ts";
import { takeServerLock } from "../db/lock.ts";
import { createJobs } from "../jobs.ts";
import { CommandFailed, type Io } from "./io.ts";
import { databasePath, loadConfig, openDatabase } from "./workspace.ts";

/** Longer than the longest wait a caller may ask for (90 s). */
const IDLE_TIMEOUT_S = 120;
/** Ceiling of any body at the door; each route has its own below it. */
const BODY_BYTES_MAX = 2 * 1024 * 1024;
const FIRST_ACCOUNT = "default";

const urlHost = (host: string): string => {
  if (host === "0.0.0.0" || host === "::") return "localhost";
  return host.includes(":") ? `[${host}]` : host;
};

const readTls = ({ tls }: Config) => {
  if (tls === null) return {};
  try {
    return { tls: { cert: readFileSync(tls.certPath, "utf8"), key: readFileSync(tls.keyPath, "utf8") } };
  } catch (error) {
    throw new CommandFailed(
      `The TLS certificate or key cannot be read: ${error instanceof Error ? error.message : error}`,
      "tls",
    );
  }
};

/** On an empty database: an account with a live and a test key, shown this once. */
const welcome = ({ store, accounts, keys }: Service, baseUrl: string, io: Io): void => {
  if (store.hasAccounts()) return;
  const account = accounts.create(FIRST_ACCOUNT);
  const live = keys.create({ account: FIRST_ACCOUNT, mode: "live", name: "first live key" });
  const test = keys.create({ account: FIRST_ACCOUNT, mode: "test", name: "first test key" });
  if (!account.ok || !live.ok || !test.ok) throw new CommandFailed("The first account could not be made.");
  const curl = (key: string, email: string) =>
    `  curl -s '${baseUrl}/v1/email-verifications?timeout=60' -H 'Authorization: Bearer ${key}' -d '{"email":"${email}"}'`;
  io.out(`
A new account "${FIRST_ACCOUNT}" with 100 credits was made. Its keys are shown this once:

  live key  ${live.value.key}
  test key  ${test.value.key}

Verify an address (put in a real one):

${curl(live.value.key, "someone@example.com")}

Try the interface without any network and without credits:

${curl(test.value.key, "mailbox_exists@any.example")}
`);
};

const listen = (service: Service, config: Config) => {
  const options = {
    hostname: config.host,
    port: config.port,
    idleTimeout: IDLE_TIMEOUT_S,
    maxRequestBodySize: BODY_BYTES_MAX,
  };
  try {
    return Bun.serve({ ...options, ...readTls(config), fetch: service.app.fetch });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandFailed(`Cannot listen on ${config.host}:${config.port}: ${reason}`, "listen");
  }
};

const untilSignal = (): Promise<string> =>
  new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => resolve(signal));
  });

const serve = async (io: Io): Promise<void> => {
  const config = loadConfig();
  const lock = takeServerLock(join(databasePath(config), "..", "server.lock"));
  if (lock === null) throw new CommandFailed(`Another server is running on ${config.dataDir}.`, "already_running");
  const db = openDatabase(config);
  const log = createLog(config.logLevel, systemClock, io.err);
  const scheme = config.tls === null ? "http" : "https";
  const baseUrl = config.baseUrl ?? `${scheme}://${urlHost(config.host)}:${config.port}`;
  const outside = realOutside(config);
  const service = composeService({ config, db, log, outside, baseUrl });
  const server = listen(service, config);
  const ownUrl = config.baseUrl ?? `${scheme}://${urlHost(config.host)}:${server.port}`;
  welcome(service, ownUrl, io);
  log.info("listening", { url: ownUrl, data_dir: config.dataDir });
  service.runner.start();
  const jobs = createJobs({ log, forgetOldIdempotency: service.checks.forgetOldIdempotency });

  log.info("stopping", { signal: await untilSignal() });
  jobs.stop();
  const drained = service.pool.drain();
  await service.runner.stop();
  await server.stop();
  await Promise.race([drained, Bun.sleep(1_000)]);
  outside.close();
  db.close();
  lock.release();
  log.info("stopped");
};

/** `serve`: the HTTP service, until SIGTERM or SIGINT. */
export const addServeCommand = (program: Command, io: Io): void => {
  program
    .command("serve")
    .description("run the service (settings: environment variables, see `config`)")
    .option("--json", "no effect on the service; the log is JSON anyway")
    .action(() => serve(io));
};
