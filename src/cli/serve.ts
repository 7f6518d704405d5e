import { existsSync } from "node:fs";
import { nextTurn, systemClock } from "../foundation/base/clock.ts";
import { createLog, RecentProblems } from "../foundation/base/log.ts";
import { type Environment, HOST_SETTING, PORT_SETTING, WORKERS_SETTING } from "../service/config.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createServer } from "../service/server.ts";
import { COMMIT, VERSION } from "../service/version.ts";
import { command, option } from "./command.ts";
import { commandTree } from "./command-tree.ts";
import { HttpListener } from "./http-listener.ts";
import { type Io, UsageError } from "./io.ts";
import { refuseLostDatabase } from "./newest-backup.ts";
import { loadConfig, lockDatabase, prepareDatabase, refuseForeignRoot } from "./prepare-directory.ts";
import type { OpenedServer } from "./open-server.ts";
import type { ServedOptions } from "./run-service.ts";
import { ServiceGate } from "./service-gate.ts";
import { Hangups, ReloadableSettings } from "./settings-reload.ts";

const PORT_MAX = 65_535;

type Parts = ReadonlyArray<() => Promise<unknown>>;

/** What opening the database needs. */
const FIRST_PARTS: Parts = [() => import("../foundation/db/open.ts"), () => import("../accounts/open.ts")];

/** The largest parts of the service; those that follow contain what is left of the ones they need. */
const PARTS: Parts = [
  () => import("../verify/evidence.ts"),
  () => import("../service/metrics/metrics.ts"),
  () => import("../verify/open.ts"),
  () => import("../blocklist/open.ts"),
  () => import("../dmarc/open.ts"),
];

/** Modules are evaluated without a pause; before each part the server responds. */
const loadParts = async (parts: Parts): Promise<void> => {
  for (const load of parts) {
    await nextTurn();
    await load();
  }
  await nextTurn();
};

type ServeOptions = Omit<ServedOptions, "gate" | "clients"> & { readonly asJson: boolean };

/**
 * Listens, opens the database, and only then loads and starts the service: a process that is alive says so at once, and after a
 * restart callers wait instead of being refused. At the very first start it listens just before it opens the database, without a
 * pause in between: who gets the first response finds the database and the printed keys. The lock of the database is held.
 */
const serveLocked = async ({ asJson, ...options }: ServeOptions): Promise<void> => {
  const { config, log, path } = options;
  const [gate, clients] = [new ServiceGate(systemClock), new ClientAddresses(config.trustedProxies, log)];
  const app = createServer({ ...gate.handlers, log, clock: systemClock, clients, isTls: config.tls !== null });
  const listen = () => new HttpListener({ config, app, log, clock: systemClock });
  let http = existsSync(path) ? listen() : null;
  let opened: OpenedServer | null = null;
  try {
    await loadParts(FIRST_PARTS);
    const { openServer } = await import("./open-server.ts");
    http ??= listen();
    opened = openServer({ ...options, asJson, http });
    await loadParts(PARTS);
    const { runService } = await import("./run-service.ts");
    await runService(opened, { ...options, gate, clients });
  } finally {
    // Also after a start that failed: requests that wait for the service are not answered.
    http?.destroy();
    opened?.db.close();
  }
};

/** `readEnvironment` reads the settings again, for a reload. */
const serve = async (
  io: Io,
  {
    asJson,
    readEnvironment,
    allCommands,
  }: Pick<ServeOptions, "asJson" | "allCommands"> & { readEnvironment: () => Environment },
): Promise<void> => {
  const stopSignal = io.untilSignal();
  const hangups = new Hangups(io);
  const config = loadConfig(io);
  const settings = new ReloadableSettings(config, readEnvironment);
  const problems = new RecentProblems();
  const log = createLog(
    () => settings.logLevel,
    systemClock,
    (line) => {
      io.err(line);
      problems.note(line);
    },
  );
  const path = prepareDatabase(io, config, "create");
  refuseForeignRoot(config);
  refuseLostDatabase(config, path, systemClock.nowMs());
  const lock = lockDatabase(path);
  log.info("starting", { version: VERSION, commit: COMMIT, bun: Bun.version, data_dir: config.dataDir });
  try {
    await serveLocked({ path, config, settings, problems, log, io, asJson, allCommands, stopSignal, hangups });
  } finally {
    lock.release();
  }
};

/** The service, until SIGTERM or SIGINT. */
const SERVE = command({
  description: "Run the service; settings are environment variables (see `postwarden config`).",
  example: "serve --env-file /etc/postwarden.env",
  json: "print the keys of a new account as JSON (the log is always JSON)",
  options: {
    host: option("<address>", `address to listen on, overrides ${HOST_SETTING}`),
    port: option("<port>", `port to listen on, overrides ${PORT_SETTING}`),
    workers: option(
      "<number>",
      `1 or 0: with or without threads beside that of requests, overrides ${WORKERS_SETTING}`,
    ),
  },
  run({ io, isJson, readEnvironment, wholeProgram }, { host, port, workers }) {
    if (port !== undefined && !(/^\d{1,5}$/.test(port) && Number(port) <= PORT_MAX))
      throw new UsageError(`--port: "${port}" is not a port from 0 to ${PORT_MAX}.`, "port");
    const withOptions = (environment: Environment): Environment => ({
      ...environment,
      ...(host === undefined ? {} : { [HOST_SETTING]: host }),
      ...(port === undefined ? {} : { [PORT_SETTING]: port }),
      ...(workers === undefined ? {} : { [WORKERS_SETTING]: workers }),
    });
    const environment = withOptions(io.environment);
    return serve(
      { ...io, environment },
      {
        asJson: isJson,
        readEnvironment: () => withOptions(readEnvironment()),
        allCommands: async () => commandTree(await wholeProgram()),
      },
    );
  },
});

export const SERVE_COMMANDS = { serve: SERVE };
