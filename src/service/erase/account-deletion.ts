import { inSteps, pagesOf } from "../../foundation/base/in-steps.ts";
import type { ByMode } from "../../foundation/base/secrets.ts";
import type { CreditHolds } from "../../accounts/billing/store.ts";
import { isUnfinished } from "../../bulk/results/job-object.ts";
import type { JobStore } from "../../bulk/results/job-store.ts";
import type { JobWriter } from "../../bulk/run/job-writer.ts";
import type { ListStore } from "../../bulk/results/list-store.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { AccountDeletionStore, DoomedAccount } from "./account-deletion-store.ts";

export interface AccountDeletionParts {
  readonly store: AccountDeletionStore;
  readonly credits: ByMode<CreditHolds>;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly writer: JobWriter;
  /** Purges deleted DMARC domains with their reports. */
  readonly purgeDomains: () => Promise<unknown>;
}

/** What was deleted. */
export interface DeletedAccount {
  verifications: number;
  lists: number;
  reportMails: number;
  /** Everything else: targets with their history, webhooks, events, notifications. */
  otherRows: number;
  /** Why something is left; the command may be repeated. */
  readonly left: string[];
}

/** Rows removed in one transaction: it blocks the writes of a server for a few milliseconds. */
const ROWS_AT_ONCE = 200;
const ENTRIES_AT_ONCE = 2_000;

/**
 * Deletes an account with everything that belongs to it, in short transactions, so that a server can work meanwhile. Its
 * keys stop first. The ledger stays, without notes, under a name that says nothing. May be repeated after a crash.
 */
export class AccountDeletion {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: AccountDeletionParts,
  ) {}

  async run({ id }: DoomedAccount): Promise<DeletedAccount> {
    const { db, clock } = this.runtime;
    const { store, purgeDomains } = this.deps;
    await db.commit((tx) => store.close(tx, id, clock.nowMs()));
    const deleted: DeletedAccount = { verifications: 0, lists: 0, reportMails: 0, otherRows: 0, left: [] };
    await this.#untilGone((tx) => store.removeIdempotencyKeys(tx, id, ROWS_AT_ONCE));
    await db.commit((tx) => store.removeKeys(tx, id));
    deleted.verifications = await this.#removeVerifications(id);
    await this.#removeLists(id, deleted);
    deleted.otherRows += await this.#untilGone((tx) => store.removeTargets(tx, id, ROWS_AT_ONCE));
    await purgeDomains();
    deleted.reportMails = await this.#untilGone((tx) => store.removeIngestions(tx, id, ROWS_AT_ONCE));
    await store.raw.removeStray();
    for (const table of store.otherTables())
      deleted.otherRows += await this.#untilGone((tx) => store.removeFrom(tx, table, id, ROWS_AT_ONCE));
    await this.#clearNotes(id);
    if (store.hasPendingIngestions(id)) deleted.left.push("Report mails of the account wait to be read.");
    else if (store.hasDomains(id)) deleted.left.push("Reports of its domains are still being removed.");
    return deleted;
  }

  /** Repeats a step until nothing is left, and returns how many rows it removed. */
  async #untilGone(remove: (tx: Tx) => number): Promise<number> {
    const { count } = await inSteps(() => this.runtime.db.commit(remove));
    return count;
  }

  async #removeVerifications(account: string): Promise<number> {
    const { store, credits } = this.deps;
    let removed = 0;
    const read = (after: number) => store.verifications(account, after, ROWS_AT_ONCE);
    for await (const page of pagesOf({ start: 0, read, positionOf: ({ rowid }) => rowid })) {
      await this.runtime.db.commit((tx) => {
        for (const { id, mode } of page) {
          const move = { accountId: account, reference: id, atMs: this.runtime.clock.nowMs() };
          if (store.hasNotEnded(tx, id)) credits[mode].release(tx, move, "account deleted");
          store.removeVerification(tx, id);
        }
      });
      removed += page.length;
    }
    return removed;
  }

  async #clearNotes(account: string): Promise<void> {
    const { store } = this.deps;
    const read = (after: number) => store.entriesAfter(account, after, ENTRIES_AT_ONCE);
    for await (const page of pagesOf({ start: 0, read, positionOf: ({ id }) => id }))
      await this.runtime.db.commit((tx) => store.clearNotes(tx, page));
  }

  async #removeLists(account: string, deleted: DeletedAccount): Promise<void> {
    const { db } = this.runtime;
    const { store, jobs, lists, writer } = this.deps;
    for (const number of store.jobs(account)) {
      const isRemovable = await db.commit((tx) => {
        const job = jobs.get(number);
        // The rows of this job are still being written.
        if (job === undefined || job.status === "receiving") return false;
        if (isUnfinished(job)) writer.abort(tx, job, "cancelled");
        jobs.hide(tx, number);
        return true;
      });
      if (!isRemovable) {
        deleted.left.push("A list of the account is being received.");
        continue;
      }
      await this.#untilGone((tx) => Number(lists.removeSome(tx, number, ROWS_AT_ONCE)));
      await db.commit((tx) => jobs.remove(tx, number));
      deleted.lists += 1;
    }
  }
}
