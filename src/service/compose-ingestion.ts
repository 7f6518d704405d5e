import type { Log } from "../foundation/base/log.ts";
import type { Platform } from "./compose-platform.ts";
import { composeMailbox } from "./compose-mailbox.ts";
import type { Config } from "./config.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { AuthenticationJob } from "../dmarc/reports/authentication/authentication-job.ts";
import { AuthenticationStore } from "../dmarc/reports/authentication/authentication-store.ts";
import { createMailAuthentication } from "../dmarc/reports/authentication/mail-authentication.ts";
import { Ingest } from "../dmarc/reports/ingest/ingest.ts";
import { type IngestStores, openIngestStores } from "../dmarc/reports/ingest/ingest-stores.ts";
import { IngestionWorker } from "../dmarc/reports/ingest/ingestion-worker.ts";
import { Ingestions } from "../dmarc/reports/ingest/ingestions.ts";
import { ReportIntake } from "../dmarc/reports/ingest/report-intake.ts";
import { ReportUploads } from "../dmarc/reports/ingest/report-uploads.ts";
import { ReportQuota } from "../dmarc/reports/ingest/report-quota.ts";
import { DiskReserve } from "../dmarc/reports/ingest/disk-reserve.ts";
import { Retention } from "../dmarc/reports/ingest/retention.ts";
import { NameRetention } from "../dmarc/reports/ingest/retention-names.ts";
import { NameRetentionStore } from "../dmarc/reports/ingest/retention-names-store.ts";
import { RetentionStore } from "../dmarc/reports/ingest/retention-store.ts";
import { paceOf, SourceRebuild } from "../dmarc/reports/ingest/source-rebuild.ts";
import { SourceRebuildStore } from "../dmarc/reports/ingest/source-rebuild-store.ts";
import { possibleKeysOf } from "../dmarc/insight/sources/possible-keys.ts";

/** Expiry of reports, and the purge of deleted domains. `rawDays`: for mails and files of no domain. */
export const composeRetention = (runtime: Pick<Runtime, "db" | "clock" | "log">, rawDays: number | null = null) => {
  const { db } = runtime;
  const names = new NameRetention(runtime, { store: new NameRetentionStore(db), keysOf: possibleKeysOf });
  return new Retention(runtime, {
    ...{ store: new RetentionStore(db), names, domains: openIngestStores(db).domains },
    unassignedRawDays: rawDays,
  });
};

/** Reports from mail, mailbox and upload into the database, and out again after their retention. */
export const composeIngestion = (
  {
    config,
    db,
    log,
    platform,
  }: { readonly config: Config; readonly db: Db; readonly log: Log; readonly platform: Platform },
  stores: IngestStores,
) => {
  const { clock, resolver, random } = platform;
  const runtime = { db, clock, log, random };
  const { domains, ingestions: store } = stores;
  const authenticate = createMailAuthentication({ resolver, clock, log });
  const ingest = new Ingest(runtime, { stores, authenticate });
  const reserve = new DiskReserve(runtime);
  const ingester = new IngestionWorker(runtime, { ingest, reserve, store });
  const kick = () => ingester.kick();
  const intake = new ReportIntake(runtime, { store, domains, kick });
  const mailbox = composeMailbox(runtime, config.imap, { intake, ingester, reserve });
  const ingestions = new Ingestions(runtime, { store, ingest, kick });
  const uploads = new ReportUploads(clock, { ingestions, reserve });
  const authentication = new AuthenticationJob(runtime, { store: new AuthenticationStore(db), authenticate });
  const retention = composeRetention(runtime, config.reportMailRetentionDays);
  const rebuild = new SourceRebuild(runtime, { store: new SourceRebuildStore(db), stores, pause: paceOf(clock) });
  const quota = new ReportQuota(clock, stores.authors, authenticate);
  return {
    receiving: { store: domains, intake, quota, reserve, ingester },
    pages: { ingestions, uploads },
    findings: () => [reserve.finding(), mailbox?.finding()].filter((one) => typeof one === "string"),
    jobs: {
      authenticateReportMails: () => authentication.run(),
      async expireReports(): Promise<void> {
        await retention.expireRaw();
        await retention.expireReports();
        await retention.expireHistory();
      },
      purgeDeletedDomains: () => retention.purgeDeleted(),
      rebuildSources: () => rebuild.run(),
    },
    async start(): Promise<void> {
      await ingest.removeIncomplete();
      ingester.start();
      mailbox?.start();
    },
    async stop(): Promise<void> {
      authentication.stop();
      await mailbox?.stop();
      await Promise.all([ingester.stop(), retention.stop(), rebuild.stop()]);
    },
  };
};
