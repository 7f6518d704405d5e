import { SQLiteError } from "bun:sqlite";
import { systemClock } from "../foundation/base/clock.ts";
import { type Log, logUnhandled, type RecentProblems } from "../foundation/base/log.ts";
import { waitFor } from "../foundation/base/wait.ts";
import { examineServer } from "../service/examination.ts";
import { formatPolicyAddress } from "../verify/policy/policy-settings.ts";
import { freshResolverOf, systemPlatform } from "../service/platform.ts";
import { openReceiver } from "../dmarc/reports/open.ts";
import { createCallers } from "../service/callers.ts";
import { createApplications } from "../service/applications.ts";
import { createMailThreads } from "../service/mail-thread.ts";
import { Service, type ServiceOptions } from "../service/compose.ts";
import {
  baseUrlOf,
  type Config,
  ignoreProxyVariables,
  mailHostOf,
  USE_PROXY_ENV_SETTING,
  type Environment,
} from "../service/config.ts";
import { foreignSourceAddresses } from "../doctor/egress-check.ts";
import { checkOpenFiles, readOpenFiles } from "../doctor/open-files-check.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { databaseFailure } from "./data-directory.ts";
import type { HttpListener } from "./http-listener.ts";
import { CommandFailed } from "./io.ts";
import type { CommandNode } from "./command-tree.ts";
import { type Logo, readLogo } from "../dashboard/logo.ts";
import type { OpenedServer, OpenOptions } from "./open-server.ts";
import type { ServiceGate } from "./service-gate.ts";
import type { Hangups, ReloadableSettings } from "./settings-reload.ts";

/** Memory that only the start needed is released once, after the first requests. */
const RELEASE_AFTER_MS = 1_000;
/** Time for callers to read responses and for mail servers to reply to QUIT, once all checks have stopped. */
const DRAIN_MS_MAX = 1_000;

/** What `serve` was started with. */
export interface ServedOptions extends Omit<OpenOptions, "http" | "asJson"> {
  readonly gate: ServiceGate;
  readonly clients: ClientAddresses;
  readonly settings: ReloadableSettings;
  readonly problems: RecentProblems;
  /** The command line, for the manual. */
  readonly allCommands: () => Promise<CommandNode>;
  readonly stopSignal: Promise<string>;
  readonly hangups: Hangups;
}

interface ReportReceiver {
  close(): Promise<void>;
  renewCertificate(): Promise<void>;
}

/** Ignores the proxy variables unless they are allowed, and warns of settings that have no effect. */
const checkEnvironment = async (config: Config, log: Log): Promise<void> => {
  const variables = config.useProxyEnv ? [] : ignoreProxyVariables();
  if (variables.length > 0)
    log.warn("proxy environment variables are ignored", { variables, setting: USE_PROXY_ENV_SETTING });
  for (const address of await foreignSourceAddresses(config))
    log.warn("source address is not an address of this machine; no probe is sent from it", {
      address,
      setting: "POSTWARDEN_SOURCE_ADDRESSES",
    });
  const openFiles = checkOpenFiles(config, readOpenFiles());
  if (openFiles.state !== "ok") log.warn("the limit of open files is low", { detail: openFiles.message });
};

/** Listens for report mail; null when POSTWARDEN_REPORT_LISTEN is not set. */
const receiveReports = async (
  { dmarc }: Service,
  { config, log }: { readonly config: Config; readonly log: Log },
): Promise<ReportReceiver | null> => {
  const receiving = openReceiver(config, {
    ...{ reports: dmarc.reports, domains: dmarc.stores.domains, mailHost: mailHostOf(config) },
    ...{ clock: systemClock, log },
  });
  if (receiving === null) return null;
  if (!receiving.ok) throw new CommandFailed(receiving.error.message, "report_tls");
  const { receiver, address, port, renewCertificate } = receiving.value;
  const opened = await receiver.listen(address, port);
  if (!opened.ok) throw new CommandFailed(opened.error.message, "report_listen");
  log.info("receiving report mail", { ...opened.value, report_host: config.reportHost });
  return { close: () => receiver.close(), renewCertificate };
};

/** Listens for mail servers that ask about recipients, where an address is set. */
const answerMailServers = async ({ policy }: Service, { log }: { readonly log: Log }): Promise<void> => {
  const opened = await policy.listen();
  if (!opened.ok) throw new CommandFailed(opened.error, "policy_listen");
  if (opened.value === null) return;
  log.info("answering mail servers about recipients", { on: formatPolicyAddress(opened.value) });
  for (const finding of policy.findings()) log.warn("the policy service has no account", { finding });
};

/** Stops accepting work, stores or ends what is in progress, and closes all connections. */
const stopService = async (
  service: Service,
  { http, reports }: { readonly http: HttpListener; readonly reports: ReportReceiver | null },
): Promise<void> => {
  service.metrics.stop();
  const closed = http.stop();
  const policyStopped = service.policy.stop();
  await reports?.close();
  const drained = service.engine.drain();
  service.backups?.stop();
  await Promise.all([
    policyStopped,
    service.verification.runner.stop(),
    service.bulk.jobs.stop(),
    service.purge.stop(),
    service.blocklist.monitor.stop(),
    service.notifications.dispatcher.stop(),
    service.dmarc.stop(),
    service.bounceMailbox?.stop(),
  ]);
  await waitFor(systemClock, Promise.all([closed, drained]), { timeoutMs: DRAIN_MS_MAX });
  service.engine.close();
  await service.usage.rateLimited.stop();
  service.activity.write();
  // A client that is still uploading a refused body would delay a graceful close indefinitely.
  http.destroy();
};

/** The logo of pages; null without one. */
const openLogo = async ({ brandLogoPath }: Config): Promise<Logo | null> => {
  if (brandLogoPath === null) return null;
  const read = await readLogo(brandLogoPath);
  if (!read.ok) throw new CommandFailed(`POSTWARDEN_BRAND_LOGO: ${brandLogoPath} ${read.error}.`, "brand_logo");
  return read.value;
};

/** Composes the service on its database, opens the gate for requests, and runs it until a signal stops it. */
const serveUntilSignal = async ({ db, http, removeShownKeys }: OpenedServer, options: ServedOptions): Promise<void> => {
  const { config, settings, log, io, stopSignal, hangups, clients } = options;
  await checkEnvironment(config, log);
  const platform = systemPlatform(config);
  const freshResolver = freshResolverOf(config);
  const baseUrl = baseUrlOf(config, http.port);
  const logo = await openLogo(config);
  const composed = { config, db, log, platform, freshResolver, baseUrl, logo, commands: options.allCommands };
  const examine: ServiceOptions["examine"] = (testedLists) => examineServer(config, db.path, testedLists);
  const startThread = config.workers === 0 ? null : createMailThreads(config);
  const serviceOptions = { ...composed, examine, startThread, problems: () => options.problems.list() };
  const service = new Service(serviceOptions);
  await service.bulk.jobs.recover();
  const reports = await receiveReports(service, { config, log });
  await answerMailServers(service, { log });
  if (!service.accounts.users.hasUsers() && !service.accounts.setupLinks.isFirstOpen())
    log.warn("the dashboard has no user", { create_one: "postwarden users add EMAIL" });
  options.gate.open({
    applicationOf: createApplications(service, serviceOptions, clients),
    callerOf: createCallers(service, clients),
    metrics: service.metrics,
  });
  removeShownKeys();
  const cancelRelease = systemClock.after(RELEASE_AFTER_MS, () => Bun.gc(true));
  log.info("listening", { url: baseUrl, host: config.host, port: http.port });

  await service.correctPlannedTimes();
  if (config.metricsToken !== null) service.metrics.start();
  void service.backups?.checkDirectory();
  service.verification.runner.start();
  service.bulk.jobs.start();
  service.notifications.dispatcher.start();
  await service.dmarc.start();
  service.bounceMailbox?.start();
  const renewCertificates = async () => {
    http.renewCertificate();
    await reports?.renewCertificate();
  };
  await service.blocklist.scheduler.fillSeverities();
  await service.blocklist.scheduler.spreadBacklog();
  // Loaded once requests are answered: the cron plugin needs Elysia, which takes time.
  const { createJobs } = await import("../service/jobs.ts");
  const jobs = createJobs({ service, backups: service.backups, log, clock: systemClock, renewCertificates });
  hangups.use(async () => {
    settings.reload(log);
    clients.trust(settings.trustedProxies);
    await renewCertificates();
  });
  await notifyReady(io.environment, log);

  log.info("stopping", { signal: await stopSignal });
  cancelRelease();
  await Promise.all([jobs.stop(), stopService(service, { http, reports })]);
  platform.close();
  freshResolver.close();
  log.info("stopped");
};

/** Runs the service on the database that was opened, until a signal stops it. */
export const runService = async (opened: OpenedServer, options: ServedOptions): Promise<void> => {
  const { path, config, log } = options;
  logUnhandled(log, systemClock);
  try {
    await serveUntilSignal(opened, options);
  } catch (error) {
    throw error instanceof SQLiteError ? databaseFailure(path, error, config) : error;
  }
};

const NOTIFY_TIMEOUT_MS = 5_000;

/**
 * Tells systemd that the service is ready, if its unit has `Type=notify` (sd_notify(3)). Uses systemd's own program,
 * because the platform has no Unix datagram sockets; the unit needs `NotifyAccess=all`. A failure is logged.
 */
export const notifyReady = async ({ NOTIFY_SOCKET, PATH }: Environment, log: Log): Promise<void> => {
  if (NOTIFY_SOCKET === undefined) return;
  try {
    const child = Bun.spawn(["systemd-notify", "--ready"], {
      env: { NOTIFY_SOCKET, PATH },
      stdio: ["ignore", "ignore", "pipe"],
      timeout: NOTIFY_TIMEOUT_MS,
    });
    const [problem, status] = await Promise.all([new Response(child.stderr).text(), child.exited]);
    if (status !== 0) log.warn("systemd could not be notified that the service is ready", { status, error: problem });
  } catch (error) {
    log.warn("systemd could not be notified that the service is ready", { error });
  }
};
