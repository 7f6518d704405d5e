import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../../src/foundation/base/log.ts";
import { err } from "../../../src/foundation/base/errors.ts";
import type { ServiceOptions } from "../../../src/service/compose.ts";
import { createApplications } from "../../../src/service/applications.ts";
import { Service } from "../../../src/service/compose.ts";
import { ClientAddresses } from "../../../src/foundation/http/client-addresses.ts";
import { createServer } from "../../../src/service/server.ts";
import { readConfig } from "../../../src/service/config.ts";
import { openDb } from "../../../src/foundation/db/open.ts";
import { ReportMailRules } from "../../../src/dmarc/reports/ingest/report-mail-rules.ts";
import { createFleetClock, type FleetClock, settle } from "./clock.ts";
import { createFleetDns, type FleetDns } from "./dns.ts";
import { type MailSink, startMailSink } from "./mail-sink.ts";
import type { ReportMail } from "./report-mail.ts";

export const REPORT_HOST = "reports.fleet-watch.net";
const ACCOUNT = "fleet";
const MINUTE_MS = 60_000;
/** What the timetable does rarely enough to be done once a day here. */
const RARE = /forget|purge/i;

/** The whole service, composed as in production, with a clock and a DNS of its own. */
export interface FleetWorld {
  readonly clock: FleetClock;
  readonly dns: FleetDns;
  readonly sink: MailSink;
  readonly logged: readonly string[];
  /** Asks the interface; throws when it does not answer with 2xx. */
  ask<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** As the SMTP receiver hands a mail over. */
  receive(mail: ReportMail, to: string): Promise<void>;
  /** Goes to a point in time, and does what the timetable does then. */
  work(atMs: number, isRareToo: boolean): Promise<void>;
  /** Ends the service, and starts it again over the same database. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const settingsOf = (dataDir: string, sinkPort: number): Record<string, string> => ({
  POSTWARDEN_DATA_DIR: dataDir,
  POSTWARDEN_HELO_NAME: "mx.fleet-watch.net",
  POSTWARDEN_DNSBL_SIGNAL: "off",
  POSTWARDEN_REPORT_HOST: REPORT_HOST,
  POSTWARDEN_NOTIFY_SMTP_URL: `smtp://127.0.0.1:${sinkPort}`,
  POSTWARDEN_NOTIFY_FROM: "postwarden@fleet-watch.net",
});

const bodyOf = (body: unknown): string | Uint8Array<ArrayBuffer> =>
  body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);

const BASE_URL = "https://fleet-watch.net";

type Parts = Omit<ServiceOptions, "baseUrl">;

/** The service, as `serve` starts it. */
const startService = async (parts: Parts) => {
  const service = new Service({ ...parts, baseUrl: BASE_URL });
  const { dmarc } = service;
  const { clock } = parts.platform;
  await dmarc.start();
  const reception = new ReportMailRules(
    { clock, log: parts.log },
    { ...dmarc.reports, domains: dmarc.stores.domains, reportHost: REPORT_HOST },
  );
  return { service, reception };
};

/** Starts the service at a point in time. */
export const startWorld = async (startMs: number, given?: FleetDns): Promise<FleetWorld> => {
  const clock = createFleetClock(startMs);
  const dns = given ?? createFleetDns(clock.nowMs);
  const sink = startMailSink();
  const dataDir = mkdtempSync(join(tmpdir(), "postwarden-fleet-"));
  const config = readConfig(settingsOf(dataDir, sink.port));
  if (!config.ok) throw new Error(config.error.join("\n"));
  // Nobody tests durability here, and the disk would take a third of the time.
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  const db = opened.value;
  const logged: string[] = [];
  const log = createLog("warn", clock, (line) => logged.push(line));
  const connector = async () => err("refused_or_unreachable" as const);
  const platform = { clock, random: { integer: () => 0 }, resolver: dns, connector };
  const parts: Parts = { config: config.value, db, log, platform };
  let { service, reception } = await startService(parts);
  const { accounts, keys } = service.accounts;
  accounts.create(ACCOUNT, "scale");
  const issued = keys.create({ account: ACCOUNT, mode: "live" });
  if (!issued.ok) throw new Error(issued.error);
  const { key } = issued.value;
  const isMail = (name: string): boolean => name.startsWith("mail");

  const doJobs = async (wanted: (name: string) => boolean): Promise<void> => {
    const jobs = Object.entries(service.dmarc.jobs) as ReadonlyArray<readonly [string, () => Promise<unknown>]>;
    for (const [, run] of jobs.filter(([name]) => wanted(name))) await run();
  };

  const clients = new ClientAddresses([]);
  const applicationOf = createApplications(service, { ...parts, baseUrl: BASE_URL }, clients);
  const server = createServer({ log: parts.log, clock, clients, applicationOf });
  return {
    clock,
    dns,
    sink,
    logged,
    async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
      const response: Response = await server.handle(
        new Request(`http://localhost${path}`, {
          method,
          headers: { authorization: `Bearer ${key}` },
          ...(body === undefined ? {} : { body: bodyOf(body) }),
        }),
      );
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 400)}`);
      return JSON.parse(text) as T;
    },
    async receive(mail, to) {
      const outcome = await reception.acceptMail({ ...mail, recipients: [to], tls: true });
      if (outcome !== "accepted") throw new Error(`a report mail was not taken: ${outcome}`);
    },
    async work(atMs, isRareToo) {
      await clock.jumpTo(atMs);
      await service.dmarc.reports.ingester.idle();
      // Reverse names are found before the rules look, as in a service that has its five minutes.
      await doJobs((name) => !isMail(name) && (isRareToo || !RARE.test(name)));
      await doJobs((name) => !isMail(name) && !RARE.test(name));
      await clock.jumpTo(atMs + 2 * MINUTE_MS);
      await doJobs(isMail);
      await settle();
    },
    async restart() {
      await service.dmarc.stop();
      ({ service, reception } = await startService(parts));
    },
    async close() {
      await service.dmarc.stop();
      sink.stop();
      db.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};
