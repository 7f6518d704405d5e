import type { Clock } from "../../foundation/base/clock.ts";
import { ok } from "../../foundation/base/errors.ts";
import type { Log } from "../../foundation/base/log.ts";
import type { DbClockLog, Runtime } from "../../foundation/db/runtime.ts";
import type { DnsResolver, DnsServer } from "../../foundation/net/dns.ts";
import { receiverCertificate } from "../../foundation/net/self-signed-file.ts";
import { SmtpReceiver } from "../../foundation/net/smtp-receiver.ts";
import { AuthenticationJob, AuthenticationStore } from "./authentication/authentication-job.ts";
import { createMailAuthentication } from "./authentication/mail-authentication.ts";
import { DiskReserve, ReportQueue } from "./ingest/ingestion-store.ts";
import { Ingest } from "./ingest/ingest.ts";
import { openIngestStores, type IngestStores } from "./ingest/ingest-stores.ts";
import { IngestionWorker } from "./ingest/ingestion-worker.ts";
import { Ingestions } from "./ingest/ingestions.ts";
import { ReportMailRules, ReportQuota } from "./ingest/report-mail-rules.ts";
import { ReportUploads } from "./ingest/report-uploads.ts";
import { Retention, NameRetention, type NameRetentionDeps } from "./ingest/retention.ts";
import { NameRetentionStore, RetentionStore } from "./ingest/retention-store.ts";
import { SourceRebuild, paceOf, SourceRebuildStore } from "./ingest/source-rebuild.ts";
import { type FileReader, readingHere } from "./report/file-reader.ts";
import { ReadingThread } from "./report/reading-thread.ts";
import type { MailboxFetcher } from "../../foundation/mailbox/mailbox-fetcher.ts";
import { openReportMailbox, type ReportMailboxDeps, type ReportMailboxSettings } from "./mailbox/report-mailbox.ts";

type ReportRuntime = DbClockLog;

/**
 * Imports reports by a command, without a running service. Files are trusted, because the operator has them; mail that arrived by
 * SMTP is authenticated as in the service.
 */
export class ImportSlice {
  readonly stores: IngestStores;
  readonly ingest: Ingest;
  readonly ingestions: Ingestions;

  /** `reader`: by default files are read in this thread. */
  constructor(runtime: ReportRuntime, { resolver, reader }: { resolver: DnsResolver; reader?: FileReader }) {
    const { clock, log } = runtime;
    this.stores = openIngestStores(runtime.db);
    const authenticate = createMailAuthentication({ resolver, clock, log });
    this.ingest = new Ingest(runtime, {
      stores: this.stores,
      authenticate,
      ...(reader && { reader }),
    });
    this.ingestions = new Ingestions(runtime, {
      store: this.stores.ingestions,
      ingest: this.ingest,
      wake: () => undefined,
    });
  }
}

/** Reads reports in a thread of `program`; with 0 workers in this one. */
export const openFileReader = (
  runtime: Pick<Runtime, "clock" | "log">,
  { workers }: { readonly workers: number },
  program: string,
): FileReader => (workers === 0 ? readingHere() : new ReadingThread(runtime, { program }));

/** Which keys a source of an address can have: see `possibleKeysOf`. */
type KeysOf = NameRetentionDeps["keysOf"];

/** Expiry of reports, and the purge of deleted domains. `rawDays`: for mails and files of no domain. */
export const openRetention = (runtime: ReportRuntime, keysOf: KeysOf, rawDays: number | null = null): Retention => {
  const { db } = runtime;
  const names = new NameRetention(runtime, { store: new NameRetentionStore(db), keysOf });
  return new Retention(runtime, {
    store: new RetentionStore(db),
    names,
    domains: openIngestStores(db).domains,
    unassignedRawDays: rawDays,
  });
};

export interface ReportsSettings {
  readonly imap: ReportMailboxSettings | null;
  readonly reportMailRetentionDays: number | null;
}

/** Reports from mail, mailbox and upload into the database, and out again after their retention. */
export class ReportsSlice {
  readonly queue: ReportQueue;
  readonly quota: ReportQuota;
  readonly reserve: DiskReserve;
  readonly ingester: IngestionWorker;
  readonly ingestions: Ingestions;
  readonly uploads: ReportUploads;
  readonly #ingest: Ingest;
  readonly #reader: FileReader;
  readonly #mailbox: MailboxFetcher | null;
  readonly #authentication: AuthenticationJob;
  readonly #retention: Retention;
  readonly #rebuild: SourceRebuild;

  constructor(
    runtime: Runtime,
    settings: ReportsSettings,
    {
      stores,
      resolver,
      keysOf,
      accountOf,
      reader,
    }: {
      stores: IngestStores;
      resolver: DnsResolver;
      reader: FileReader;
      keysOf: KeysOf;
      accountOf: ReportMailboxDeps["accountOf"];
    },
  ) {
    const { db, clock, log } = runtime;
    const { domains, ingestions: store } = stores;
    const authenticate = createMailAuthentication({ resolver, clock, log });
    const ingest = new Ingest(runtime, { stores, authenticate, reader });
    const reserve = new DiskReserve(runtime);
    const ingester = new IngestionWorker(runtime, { ingest, reserve, store });
    const wake = () => ingester.wake();
    this.#ingest = ingest;
    this.#reader = reader;
    this.reserve = reserve;
    this.ingester = ingester;
    this.queue = new ReportQueue(runtime, { store, domains, wake });
    this.quota = new ReportQuota(clock, stores.authors, authenticate);
    this.ingestions = new Ingestions(runtime, { store, ingest, wake });
    this.uploads = new ReportUploads(clock, { ingestions: this.ingestions, reserve });
    this.#mailbox = openReportMailbox(runtime, settings.imap, { queue: this.queue, ingester, reserve, accountOf });
    const findMail = (ingestion: string) => store.raw.find(ingestion);
    this.#authentication = new AuthenticationJob(runtime, {
      store: new AuthenticationStore(db),
      findMail,
      authenticate,
    });
    this.#retention = openRetention(runtime, keysOf, settings.reportMailRetentionDays);
    this.#rebuild = new SourceRebuild(runtime, { store: new SourceRebuildStore(db), stores, pause: paceOf(clock) });
  }

  /** What an operator must look at. */
  findings(): readonly string[] {
    const reserve = this.reserve.finding();
    return [...(reserve === null ? [] : [reserve]), ...(this.#mailbox?.findings() ?? [])];
  }

  authenticateMails(): Promise<void> {
    return this.#authentication.run();
  }

  async expire(): Promise<void> {
    await this.#retention.expireRaw();
    await this.#retention.expireReports();
    await this.#retention.expireHistory();
  }

  purgeDeletedDomains(): Promise<number> {
    return this.#retention.purgeDeleted();
  }

  rebuildSources(): Promise<void> {
    return this.#rebuild.run();
  }

  /** Removes what a crash left incomplete, then processes what is pending. */
  async start(): Promise<void> {
    await this.#ingest.removeIncomplete();
    this.ingester.start();
    this.#mailbox?.start();
  }

  async stop(): Promise<void> {
    this.#authentication.stop();
    await this.#mailbox?.stop();
    await Promise.all([this.ingester.stop(), this.#retention.stop(), this.#rebuild.stop()]);
    this.#reader.stop();
  }
}

/** The SMTP receiver of report mail; null when no listener is configured, an error when there is no certificate. */
export const openReceiver = (
  {
    dataDir,
    reportHost,
    reportListen,
    reportTls: files,
  }: {
    dataDir: string;
    /** The domain of the report addresses. */
    reportHost: string | null;
    reportListen: DnsServer | null;
    reportTls: { readonly certPath: string; readonly keyPath: string } | null;
  },
  {
    reports,
    domains,
    mailHost,
    clock,
    log,
  }: {
    reports: Pick<ReportsSlice, "queue" | "quota" | "reserve">;
    domains: IngestStores["domains"];
    /** The name of this machine in MX records; null where it has none. */
    mailHost: string | null;
    clock: Clock;
    log: Log;
  },
) => {
  if (reportHost === null || reportListen === null) return null;
  const hostName = mailHost ?? reportHost;
  const readCertificate = () => receiverCertificate({ dataDir, hostName, files, clock });
  const certificate = readCertificate();
  if (!certificate.ok) return certificate;
  const { queue, quota, reserve } = reports;
  const rules = new ReportMailRules({ clock, log }, { domains, quota, queue, reportHost, reserve });
  const receiver = new SmtpReceiver({ rules, hostName, tls: certificate.value, clock, log });
  return ok({
    receiver,
    ...reportListen,
    /** Loads a renewed certificate. If it cannot be used, the old one stays. */
    async renewCertificate(): Promise<void> {
      const fresh = readCertificate();
      if (fresh.ok) receiver.useCertificate(fresh.value);
      else
        log.warn("the renewed certificate for report mail cannot be used; the old one stays", {
          error: fresh.error.message,
        });
    },
  });
};
