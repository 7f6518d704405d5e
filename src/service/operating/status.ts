import { readdirSync, statSync } from "node:fs";
import { AccountUsage, type CreditForecast } from "../../accounts/usage/account-usage.ts";
import { UsageStore } from "../../accounts/usage/usage-store.ts";
import { Ledger } from "../../accounts/billing/store.ts";
import { type Account, AccountStore } from "../../accounts/store.ts";
import { DmarcOverview } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import { DomainOverviewStore } from "../../dmarc/alerts/overview/domain-overview-store.ts";
import { OpenAlertStore } from "../../dmarc/alerts/rules/open-alert-store.ts";
import { DmarcAlertStore } from "../../dmarc/records/domains/alert-store.ts";
import { DomainStore } from "../../dmarc/records/domains/domain-store.ts";
import { checkBackups } from "../../doctor/backup-check.ts";
import { checkDisk, readDisk } from "../../doctor/disk-check.ts";
import type { DoctorCheck } from "../../doctor/doctor-check.ts";
import { backupsAmong, newestTimeOf } from "../../foundation/db/backup-directory.ts";
import { databaseUsageOf } from "../../foundation/db/database-files.ts";
import type { DbClock } from "../../foundation/db/runtime.ts";
import { checkChecksum } from "../../foundation/db/partial-file.ts";
import type { Config } from "../config.ts";
import { BacklogStore } from "../metrics/backlog-store.ts";
import { growthOf, type Growth } from "./growth.ts";
import { StatusStore, type TableSize } from "./status-store.ts";

type StatusConfig = Pick<Config, "dataDir" | "backupDir">;

/** Files up to this size are read as a whole, in bytes: some seconds. */
const READ_BYTES_MAX = 2e9;
/** Accounts whose alerts and credits are read. */
const ACCOUNTS_MAX = 2_000;
/** Credits that last no longer than this are few. */
const CREDIT_DAYS_LOW = 7;

/** Which kind of data a table holds: the first prefix that fits. */
const KINDS: ReadonlyArray<readonly [kind: string, prefixes: readonly string[]]> = [
  ["verifications", ["verification"]],
  ["lists", ["bulk_"]],
  ["report mails and files", ["dmarc_raw", "dmarc_ingestions", "dmarc_mailbox"]],
  ["DMARC and TLS reports", ["dmarc_"]],
  ["blocklists", ["blocklist_"]],
  ["webhooks and events", ["webhook_", "outbox"]],
  ["bounces", ["bounces"]],
  ["sessions and Idempotency-Keys", ["sessions", "setup_links", "idempotency_keys"]],
  ["accounts, usage, audit log", [""]],
];

/** What a table holds, in the words of a user. */
export const kindOf = ({ table }: Pick<TableSize, "table">): string =>
  KINDS.find(([, prefixes]) => prefixes.some((prefix) => table.startsWith(prefix)))?.[0] ?? "";

/** Space by kind of data, the largest first. */
export const kindsOf = (sizes: readonly TableSize[]) =>
  [...Map.groupBy(sizes, kindOf)]
    .map(([kind, tables]) => ({ kind, bytes: tables.reduce((sum, { bytes }) => sum + bytes, 0) }))
    .toSorted((a, b) => b.bytes - a.bytes);

/** Credits of an account, and how long they will last. */
interface AccountCredits extends CreditForecast {
  readonly account: string;
  readonly available: number;
}

/** The state of an instance by its database and files, whether the service runs or not. */
export class InstanceStatus {
  readonly #store: StatusStore;

  constructor(
    private readonly runtime: DbClock,
    private readonly config: StatusConfig,
  ) {
    this.#store = new StatusStore(runtime.db);
  }

  queues() {
    return new BacklogStore(this.runtime.db).read();
  }

  listings() {
    return this.#store.openListings();
  }

  /** The scheduled backups, the newest with its checksum (null where it is not compared: too large, or none), and what the doctor finds. */
  backups() {
    const { db, clock } = this.runtime;
    const { backupDir: directory } = this.config;
    const nowMs = clock.nowMs();
    const check = checkBackups({ config: this.config, database: db.path, nowMs, checkedBytesMax: 0 });
    const stored = directory === null ? [] : backupsAmong(namesIn(directory), directory, nowMs);
    const sizes = stored.flatMap(({ file, atMs }) => {
      const bytes = statSync(file, { throwIfNoEntry: false })?.size;
      return bytes === undefined ? [] : [{ file, atMs, bytes }];
    });
    const [newest] = sizes;
    const checksum = newest === undefined || newest.bytes > READ_BYTES_MAX ? null : checkChecksum(newest.file);
    return { directory, sizes, lastAtMs: newestTimeOf(stored, nowMs), bytes: newest?.bytes ?? null, checksum, check };
  }

  /** `kinds`: null where the file is too large to be read and `isMeasured` does not ask for it. */
  space({ sizes }: Pick<ReturnType<InstanceStatus["backups"]>, "sizes">, isMeasured: boolean) {
    const { db, clock } = this.runtime;
    const usage = databaseUsageOf(db.path);
    const isRead = isMeasured || (usage?.fileBytes ?? 0) <= READ_BYTES_MAX;
    const past = sizes.filter(({ atMs }) => atMs <= clock.nowMs());
    const growth: Growth | null = growthOf(past, usage?.diskFreeBytes ?? 0);
    const checks: readonly DoctorCheck[] = checkDisk(readDisk(this.config.dataDir));
    return {
      ...{ usage, growth, checks, unusedBytes: this.#store.freeBytes() },
      backupBytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0),
      kinds: isRead ? kindsOf(this.#store.tableSizes()) : null,
    };
  }

  /** Open problems of DMARC by account, without accounts that have none. */
  alerts() {
    const { db } = this.runtime;
    const overview = new DmarcOverview(this.runtime, {
      ...{ overviews: new DomainOverviewStore(db), alerts: new OpenAlertStore(db) },
      ...{ raised: new DmarcAlertStore(db), domains: new DomainStore(db) },
    });
    return this.#enabledAccounts().flatMap(({ id, name }) => {
      const open = overview.attention({ accountId: id, mode: "live" });
      const [worst] = open;
      return worst === undefined ? [] : [{ account: name, open: open.length, worst }];
    });
  }

  /** Accounts whose credits are used up, or will be within a week at their present pace; the lowest first. */
  async lowCredits(): Promise<readonly AccountCredits[]> {
    const { clock, db } = this.runtime;
    const usage = new AccountUsage(new UsageStore(db));
    const ledger = new Ledger(db);
    const low: AccountCredits[] = [];
    for (const { id, name } of this.#enabledAccounts()) {
      const { available } = ledger.balance(id);
      const forecast = await usage.forecast({ accountId: id, mode: "live" }, available, clock.nowMs());
      if (forecast.daysLeft !== null && forecast.daysLeft <= CREDIT_DAYS_LOW)
        low.push({ account: name, available, ...forecast });
    }
    return low.toSorted((a, b) => (a.daysLeft ?? 0) - (b.daysLeft ?? 0));
  }

  #enabledAccounts(): readonly Account[] {
    const accounts = new AccountStore(this.runtime.db).listAccounts();
    return accounts.filter(({ disabledAtMs }) => disabledAtMs === null).slice(0, ACCOUNTS_MAX);
  }
}

/** None where the directory cannot be read: the doctor's check says why. */
const namesIn = (directory: string): readonly string[] => {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
};
