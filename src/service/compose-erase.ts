import { systemClock } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { FREE_OF_CHARGE, Ledger } from "../accounts/billing/store.ts";
import { JobStore } from "../bulk/results/job-store.ts";
import { JobWriter } from "../bulk/run/job-writer.ts";
import { ListStore } from "../bulk/results/list-store.ts";
import { composeSuppressions } from "./compose.ts";
import type { Db } from "../foundation/db/open.ts";
import { composeRetention } from "./compose-ingestion.ts";
import { AccountDeletion } from "./erase/account-deletion.ts";
import { AccountDeletionStore } from "./erase/account-deletion-store.ts";
import type { AddressPattern } from "./erase/address-pattern.ts";
import { EraseStore } from "./erase/erase-store.ts";
import { Erasure } from "./erase/erasure.ts";

/** What both commands use beside a server. */
const composeParts = (db: Db) => {
  const log = createLog("silent", systemClock, () => undefined);
  const runtime = { db, clock: systemClock, log, random: { integer: () => 0 } };
  const [jobs, lists] = [new JobStore(db), new ListStore(db)];
  const credits = { live: new Ledger(db), test: FREE_OF_CHARGE };
  return { runtime, jobs, lists, credits, writer: new JobWriter(runtime, { jobs, credits, lists }) };
};

/** The deletion of an account. */
export const composeAccountDeletion = (db: Db) => {
  const { runtime, ...parts } = composeParts(db);
  const store = new AccountDeletionStore(db);
  const retention = composeRetention(runtime);
  const purgeDomains = async () => {
    while ((await retention.purgeDeleted()) > 0);
  };
  return { store, deletion: new AccountDeletion(runtime, { ...parts, store, purgeDomains }) };
};

/** The erasure of one address, for a command that may run beside a server. */
export const composeErasure = (db: Db, pattern: AddressPattern) => {
  const { runtime, jobs, credits, writer } = composeParts(db);
  const store = new EraseStore(db);
  const suppressions = composeSuppressions(db, systemClock);
  return { erasure: new Erasure(runtime, { store, credits, jobs, writer, suppressions }, pattern) };
};
