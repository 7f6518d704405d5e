import type { Clock } from "../../foundation/base/clock.ts";
import { ok } from "../../foundation/base/errors.ts";
import type { Log } from "../../foundation/base/log.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { DnsResolver, DnsServer } from "../../foundation/net/dns.ts";
import { receiverCertificate } from "../../foundation/net/self-signed-file.ts";
import { SmtpReceiver } from "../../foundation/net/smtp-receiver.ts";
import { AuthenticationJob, AuthenticationStore } from "./authentication/authentication-job.ts";
import { createMailAuthentication } from "./authentication/mail-authentication.ts";
import { DiskReserve, ReportIntake } from "./ingest/ingestion-store.ts";
import { IMPORT_PACE, Ingest } from "./ingest/ingest.ts";
import { openIngestStores, type IngestStores } from "./ingest/ingest-stores.ts";
import { IngestionWorker } from "./ingest/ingestion-worker.ts";
import { Ingestions } from "./ingest/ingestions.ts";
import { ReportMailRules, ReportQuota } from "./ingest/report-mail-rules.ts";
import { ReportUploads } from "./ingest/report-uploads.ts";
import { Retention, NameRetention, type NameRetentionParts } from "./ingest/retention.ts";
import { NameRetentionStore, RetentionStore } from "./ingest/retention-store.ts";
import { SourceRebuild, paceOf, SourceRebuildStore } from "./ingest/source-rebuild.ts";
import { type MailboxFetcher, openMailbox, type ImapSettings, type MailboxDeps } from "./mailbox/open.ts";

type ReportRuntime = Pick<Runtime, "db" | "clock" | "log">;

/**
 * Imports reports by a command, without a running service. Files are trusted, because the operator has them; mail that arrived by
 * SMTP is authenticated as in the service.
 */
export class ImportSlice {
  readonly stores: IngestStores;
  readonly ingest: Ingest;
  readonly ingestions: Ingestions;

  constructor(runtime: ReportRuntime, { resolver }: { resolver: DnsResolver }) {
    const { clock, log } = runtime;
    this.stores = openIngestStores(runtime.db);
    const authenticate = createMailAuthentication({ resolver, clock, log });
    this.ingest = new Ingest(runtime, { stores: this.stores, authenticate, pace: IMPORT_PACE });
    this.ingestions = new Ingestions(runtime, {
      store: this.stores.ingestions,
      ingest: this.ingest,
      kick: () => undefined,
    });
  }
}

/** Which keys a source of an address can have: see `possibleKeysOf`. */
type KeysOf = NameRetentionParts["keysOf"];

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
  readonly imap: ImapSettings | null;
  readonly reportMailRetentionDays: number | null;
}

export interface ReportsDeps {
  readonly stores: IngestStores;
  readonly resolver: DnsResolver;
  readonly keysOf: KeysOf;
  readonly accountOf: MailboxDeps["accountOf"];
}

/** Reports from mail, mailbox and upload into the database, and out again after their retention. */
export class ReportsSlice {
  readonly intake: ReportIntake;
  readonly quota: ReportQuota;
  readonly reserve: DiskReserve;
  readonly ingester: IngestionWorker;
  readonly ingestions: Ingestions;
  readonly uploads: ReportUploads;
  readonly #ingest: Ingest;
  readonly #mailbox: MailboxFetcher | null;
  readonly #authentication: AuthenticationJob;
  readonly #retention: Retention;
  readonly #rebuild: SourceRebuild;

  constructor(runtime: Runtime, settings: ReportsSettings, { stores, resolver, keysOf, accountOf }: ReportsDeps) {
    const { db, clock, log } = runtime;
    const { domains, ingestions: store } = stores;
    const authenticate = createMailAuthentication({ resolver, clock, log });
    const ingest = new Ingest(runtime, { stores, authenticate });
    const reserve = new DiskReserve(runtime);
    const ingester = new IngestionWorker(runtime, { ingest, reserve, store });
    const kick = () => ingester.kick();
    this.#ingest = ingest;
    this.reserve = reserve;
    this.ingester = ingester;
    this.intake = new ReportIntake(runtime, { store, domains, kick });
    this.quota = new ReportQuota(clock, stores.authors, authenticate);
    this.ingestions = new Ingestions(runtime, { store, ingest, kick });
    this.uploads = new ReportUploads(clock, { ingestions: this.ingestions, reserve });
    this.#mailbox = openMailbox(runtime, settings.imap, { intake: this.intake, ingester, reserve, accountOf });
    this.#authentication = new AuthenticationJob(runtime, { store: new AuthenticationStore(db), authenticate });
    this.#retention = openRetention(runtime, keysOf, settings.reportMailRetentionDays);
    this.#rebuild = new SourceRebuild(runtime, { store: new SourceRebuildStore(db), stores, pause: paceOf(clock) });
  }

  /** What an operator must look at. */
  findings(): readonly string[] {
    return [this.reserve.finding(), this.#mailbox?.finding()].filter((one) => typeof one === "string");
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
  }
}

export interface ReceiverSettings {
  readonly dataDir: string;
  /** The domain of the report addresses. */
  readonly reportHost: string | null;
  readonly reportListen: DnsServer | null;
  readonly reportTls: { readonly certPath: string; readonly keyPath: string } | null;
}

export interface ReceiverDeps {
  readonly reports: Pick<ReportsSlice, "intake" | "quota" | "reserve">;
  readonly domains: IngestStores["domains"];
  /** The name of this machine in MX records; null where it has none. */
  readonly mailHost: string | null;
  readonly clock: Clock;
  readonly log: Log;
}

/** The SMTP receiver of report mail; null when no listener is configured, an error when there is no certificate. */
export const openReceiver = (
  { dataDir, reportHost, reportListen, reportTls: files }: ReceiverSettings,
  { reports, domains, mailHost, clock, log }: ReceiverDeps,
) => {
  if (reportHost === null || reportListen === null) return null;
  const hostName = mailHost ?? reportHost;
  const readCertificate = () => receiverCertificate({ dataDir, hostName, files, clock });
  const certificate = readCertificate();
  if (!certificate.ok) return certificate;
  const { intake, quota, reserve } = reports;
  const rules = new ReportMailRules({ clock, log }, { domains, quota, intake, reportHost, reserve });
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
