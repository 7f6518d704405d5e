import { systemClock } from "../../foundation/base/clock.ts";
import { createLog } from "../../foundation/base/log.ts";
import { FREE_OF_CHARGE, Ledger } from "../../accounts/billing/store.ts";
import { JobStore } from "../../bulk/results/job-store.ts";
import { JobWriter } from "../../bulk/run/job-writer.ts";
import { ListStore } from "../../bulk/results/list-store.ts";
import { openSuppressions } from "../../accounts/open.ts";
import type { Db } from "../../foundation/db/open.ts";
import { unhurried } from "../../foundation/db/unhurried.ts";
import { possibleKeysOf } from "../../dmarc/insight/sources/source-keys.ts";
import { openRetention } from "../../dmarc/reports/open.ts";
import { AccountDeletion } from "./account-deletion.ts";
import { AccountDeletionStore } from "./account-deletion-store.ts";
import type { AddressPattern } from "./address-pattern.ts";
import { AddressSearch } from "./address-search.ts";
import { StoredRows } from "./stored-rows.ts";
import { EraseStore } from "./erase-store.ts";
import { Erasure } from "./erasure.ts";

/** What both commands use beside a server, which has its turn after each of their transactions. */
const openParts = (db: Db) => {
  const log = createLog("silent", systemClock, () => undefined);
  const runtime = { db: unhurried(db, systemClock), clock: systemClock, log, random: { integer: () => 0 } };
  const [jobs, lists] = [new JobStore(db), new ListStore(db)];
  const credits = { live: new Ledger(db), test: FREE_OF_CHARGE };
  return { runtime, jobs, lists, credits, writer: new JobWriter(runtime, { jobs, credits, lists }) };
};

/** The deletion of an account. */
export const openAccountDeletion = (db: Db) => {
  const { runtime, ...parts } = openParts(db);
  const store = new AccountDeletionStore(runtime.db);
  const retention = openRetention(runtime, possibleKeysOf);
  const purgeDomains = async () => {
    while ((await retention.purgeDeleted()) > 0);
  };
  return { store, deletion: new AccountDeletion(runtime, { ...parts, store, purgeDomains }) };
};

/** The erasure of one address, for a command that may run beside a server. */
export const openErasure = (db: Db, pattern: AddressPattern) => {
  const { runtime, jobs, credits, writer } = openParts(db);
  const store = new EraseStore(runtime.db);
  const suppressions = openSuppressions(db, systemClock);
  return { erasure: new Erasure(runtime, { store, credits, jobs, writer, suppressions }, pattern) };
};

/** The search for an address, which changes nothing. */
export const openAddressSearch = (
  db: Db,
  of: { readonly pattern: AddressPattern; readonly accountId: string | null },
): AddressSearch => new AddressSearch(new EraseStore(db), new StoredRows(db), of);
