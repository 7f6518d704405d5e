import { systemClock } from "./base/clock.ts";
import { createLog } from "./base/log.ts";
import { FREE_OF_CHARGE, Ledger } from "./billing/store.ts";
import { JobStore } from "./bulk/job-store.ts";
import { JobWriter } from "./bulk/job-writer.ts";
import { ListStore } from "./bulk/list-store.ts";
import { composeSuppressions } from "./compose.ts";
import type { Db } from "./db/open.ts";
import type { AddressPattern } from "./erase/address-pattern.ts";
import { EraseStore } from "./erase/erase-store.ts";
import { Erasure } from "./erase/erasure.ts";

/** The erasure of one address, for a command that may run beside a server. */
export const composeErasure = (db: Db, pattern: AddressPattern) => {
  const log = createLog("silent", systemClock, () => undefined);
  const runtime = { db, clock: systemClock, log, random: { integer: () => 0 } };
  const [jobs, store] = [new JobStore(db), new EraseStore(db)];
  const credits = { live: new Ledger(db), test: FREE_OF_CHARGE };
  const writer = new JobWriter(runtime, { jobs, credits, lists: new ListStore(db) });
  const suppressions = composeSuppressions(db, systemClock);
  return { store, erasure: new Erasure(runtime, { store, credits, jobs, writer, suppressions }, pattern) };
};
