import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { waitFor } from "../base/wait.ts";
import { createLog, type Log } from "../base/log.ts";
import { composeReceiver } from "../compose-receiver.ts";
import { composeService, type Service } from "../compose.ts";
import { freshResolverOf, systemPlatform } from "../compose-engine.ts";
import { type Config, ignoreProxyVariables, USE_PROXY_ENV_SETTING } from "../config.ts";
import { type Db, SERVER_BUSY_TIMEOUT_MS } from "../db/open.ts";
import { createJobs } from "../jobs.ts";
import { foreignSourceAddresses } from "./doctor-egress.ts";
import { createFirstAccount, showFirstKeys } from "./first-keys.ts";
import { VERSION } from "../version.ts";
import { HttpListener } from "./http-listener.ts";
import { CommandFailed, type Io } from "./io.ts";
import { loadConfig, lockDatabase, openDatabaseAt, prepareDatabase } from "./data-directory.ts";

/** When the first requests are through and what only the start needed can go. */
const AFTER_START_MS = 1_000;
/** For callers to take their answers and for mail servers to answer our QUIT, once all checks have ended. */
const DRAIN_MS_MAX = 1_000;

const urlHost = (host: string): string => {
  if (host === "0.0.0.0" || host === "::") return "localhost";
  return host.includes(":") ? `[${host}]` : host;
};

interface Serving {
  readonly db: Db;
  readonly config: Config;
  readonly io: Io;
  readonly asJson: boolean;
}

/** Where report mail comes in. */
interface ReportDoor {
  close(): Promise<void>;
  renewCertificate(): Promise<void>;
}

/** Opens the door for report mail, where one is set, and begins with what waits to be read. */
const receive = async (
  { dmarc }: Service,
  { config, log }: { readonly config: Config; readonly log: Log },
): Promise<ReportDoor | null> => {
  const door = composeReceiver({ config, dmarc, clock: systemClock, log });
  if (door === null) return null;
  if (!door.ok) throw new CommandFailed(door.error.message, "report_tls");
  const { receiver, address, port, renewCertificate } = door.value;
  const opened = await receiver.listen(address, port);
  if (!opened.ok) throw new CommandFailed(opened.error.message, "report_listen");
  log.info("receiving report mail", { ...opened.value, report_host: config.reportHost });
  return { close: receiver.close, renewCertificate };
};

const serveFrom = async (serving: Serving): Promise<void> => {
  const { db, config, io, asJson } = serving;
  const stopping = io.untilSignal();
  const log = createLog(config.logLevel, systemClock, io.err);
  const scheme = config.tls === null ? "http" : "https";
  const urlAt = (port: number) => config.baseUrl ?? `${scheme}://${urlHost(config.host)}:${port}`;
  const ignored = config.useProxyEnv ? [] : ignoreProxyVariables();
  if (ignored.length > 0)
    log.warn("proxies of the environment are not used", { variables: ignored, setting: USE_PROXY_ENV_SETTING });
  const platform = systemPlatform(config);
  const freshResolver = freshResolverOf(config);
  const service = composeService({ config, db, log, platform, freshResolver, baseUrl: urlAt(config.port) });
  for (const address of await foreignSourceAddresses(config))
    log.warn("no probe can be sent from a source address: it is not this machine's", {
      address,
      setting: "POSTWARDEN_SOURCE_ADDRESSES",
    });
  await service.bulk.recover();
  const http = new HttpListener({ config, app: service.app, log, clock: systemClock });
  const url = urlAt(http.port);
  const firstKeys = { db, service, dataDir: config.dataDir };
  createFirstAccount(firstKeys);
  showFirstKeys(firstKeys, { io, url, asJson });
  // What only the start needed is given back once.
  systemClock.after(AFTER_START_MS, () => Bun.gc(true));
  log.info("listening", { url, host: config.host, port: http.port, data_dir: config.dataDir, version: VERSION });
  service.runner.start();
  service.bulk.start();
  service.dispatcher.start();
  await service.dmarc.start();
  const reportDoor = await receive(service, { config, log });
  const renewCertificates = async () => {
    http.renewCertificate();
    await reportDoor?.renewCertificate();
  };
  const { scheduler, monitor } = service.blocklist;
  await scheduler.fillSeverities();
  await scheduler.spreadBacklog();
  const jobs = createJobs({ service, log, renewCertificates });
  io.onHangup(() => void renewCertificates());

  log.info("stopping", { signal: await stopping });
  jobs.stop();
  const closed = http.stop();
  await reportDoor?.close();
  service.outages.stop();
  const drained = service.pool.drain();
  await Promise.all([
    service.runner.stop(),
    service.bulk.stop(),
    monitor.stop(),
    service.dispatcher.stop(),
    service.dmarc.stop(),
  ]);
  await waitFor(systemClock, Promise.all([closed, drained]), { timeoutMs: DRAIN_MS_MAX });
  // A caller in the middle of an upload that was refused would keep the polite end waiting for ever.
  http.destroy();
  platform.close();
  freshResolver.close();
  log.info("stopped");
};

const serve = async (io: Io, asJson: boolean): Promise<void> => {
  const config = loadConfig(io);
  const path = prepareDatabase(io, config, "create");
  const lock = lockDatabase(path);
  try {
    const db = openDatabaseAt(path, SERVER_BUSY_TIMEOUT_MS);
    try {
      await serveFrom({ db, config, io, asJson });
    } finally {
      db.close();
    }
  } finally {
    lock.release();
  }
};

/** `serve`: the HTTP service, until SIGTERM or SIGINT. */
export const addServeCommand = (program: Command, io: Io): void => {
  program
    .command("serve")
    .description("run the service (settings: environment variables, see `config`)")
    .option("--json", "print the keys of a new account as JSON; the log is JSON anyway")
    .action(({ json = false }: { json?: boolean }) => serve(io, json));
};
