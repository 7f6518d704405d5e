import { pagesOf } from "../../foundation/base/in-steps.ts";
import type { ByMode } from "../../foundation/base/secrets.ts";
import type { CreditHolds } from "../../accounts/billing/store.ts";
import { internalErrorOutcome } from "../../bulk/run/attempt.ts";
import { isUnfinished } from "../../bulk/results/job-object.ts";
import type { JobStore } from "../../bulk/results/job-store.ts";
import type { JobWriter } from "../../bulk/run/job-writer.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Suppressions } from "../../accounts/suppress/store.ts";
import { evidenceJson } from "../../verify/store.ts";
import { type AddressPattern, ERASED } from "./address-pattern.ts";
import type { EraseStore, FoundEvidence, FoundListAddress, FoundVerification } from "./erase-store.ts";
import { type ErasedTexts, TextErasure } from "./text-erasure.ts";
import { readMessage } from "../../foundation/mail/message.ts";
import { createUnpackBudget, unpack } from "../../dmarc/reports/report/unpack.ts";

export interface ErasureParts {
  readonly store: EraseStore;
  readonly credits: ByMode<CreditHolds>;
  readonly jobs: JobStore;
  readonly writer: JobWriter;
  readonly suppressions: Suppressions;
}

/** What was erased, by kind. */
export interface Erased {
  /** Of these, `cancelled` were pending; their credits were released. */
  verifications: number;
  cancelled: number;
  /** Rows of lists, in `lists` lists. */
  listRows: number;
  lists: number;
  /** Evidence of other addresses that mentioned the address. */
  evidence: number;
  /** The entry of the suppression list: kept as a hash, removed, or null if there was none. */
  suppression: "hashed" | "removed" | null;
  reportMails: number;
  texts: ErasedTexts;
  /** What is still in use and was left: run the command again. */
  waiting: { lists: number; reportMails: number };
}

export interface ErasureOptions {
  /** Whether an entry of the suppression list stays, as a hash. */
  readonly keepSuppression: boolean;
}

const ROWS_AT_ONCE = 500;

/** Erases every trace of an address, in short transactions, so that a server can work meanwhile. May be repeated. */
export class Erasure {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #parts: ErasureParts;
  readonly #pattern: AddressPattern;
  readonly #texts: TextErasure;

  constructor(runtime: Pick<Runtime, "db" | "clock">, parts: ErasureParts, pattern: AddressPattern) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#pattern = pattern;
    this.#texts = new TextErasure(runtime.db, parts.store, pattern);
  }

  async run({ keepSuppression }: ErasureOptions): Promise<Erased> {
    const { db } = this.#runtime;
    const { suppressions } = this.#parts;
    const isOnList = await db.commit((tx) =>
      suppressions.erase(tx, this.#pattern.normalized, { isKept: keepSuppression }),
    );
    const verifications = await this.#eraseVerifications();
    const lists = await this.#eraseListAddresses();
    const evidence =
      (await this.#eraseEvidence("verification_evidence")) + (await this.#eraseEvidence("bulk_evidence"));
    const reports = await this.#eraseReportMails();
    return {
      ...verifications,
      ...{ listRows: lists.rows, lists: lists.jobs.size, evidence, reportMails: reports.erased },
      suppression: isOnList ? (keepSuppression ? "hashed" : "removed") : null,
      texts: await this.#texts.run(),
      waiting: { lists: lists.waiting.size, reportMails: reports.waiting },
    };
  }

  /** Whether a text that contains the address as a part of a longer one was found. */
  get isPartOfOthers(): boolean {
    return this.#texts.isPartOfOthers;
  }

  #isSame({ email, normalizedEmail }: { readonly email: string; readonly normalizedEmail: string }): boolean {
    return normalizedEmail === this.#pattern.normalized || this.#pattern.matches(email);
  }

  /** Calls `visit` with page after page. */
  async #eachPage<R extends { readonly rowid: number }>(
    page: (after: number, limit: number) => R[],
    visit: (rows: readonly R[]) => Promise<void>,
  ): Promise<void> {
    const read = (after: number): R[] => page(after, ROWS_AT_ONCE);
    for await (const rows of pagesOf({ start: 0, read, positionOf: ({ rowid }) => rowid })) await visit(rows);
  }

  async #eraseVerifications(): Promise<Pick<Erased, "verifications" | "cancelled">> {
    const { store } = this.#parts;
    const erased = { verifications: 0, cancelled: 0 };
    await this.#eachPage(
      (after, limit) => store.verifications(this.#pattern.needle, after, limit),
      async (rows) => {
        for (const row of rows.filter((one) => this.#isSame(one))) {
          erased.verifications += 1;
          if (await this.#eraseVerification(row)) erased.cancelled += 1;
        }
      },
    );
    return erased;
  }

  /** Removes a verification; a pending one ends, and its credit is released. An attempt under way is then dropped. */
  #eraseVerification({ id, accountId, mode }: FoundVerification): Promise<boolean> {
    const { store, credits } = this.#parts;
    return this.#runtime.db.commit((tx) => {
      const isPending = store.isPending(tx, id);
      const move = { accountId, reference: id, atMs: this.#runtime.clock.nowMs() };
      if (isPending) credits[mode].release(tx, move, "erased");
      store.removeVerification(tx, id);
      return isPending;
    });
  }

  async #eraseListAddresses() {
    const { store } = this.#parts;
    const erased = { rows: 0, jobs: new Set<number>(), waiting: new Set<number>() };
    const erase = async (found: FoundListAddress): Promise<void> => {
      const changed = await this.#runtime.db.commit((tx) => this.#eraseListAddress(tx, found));
      erased.rows += changed ?? 0;
      (changed === null ? erased.waiting : erased.jobs).add(found.job);
    };
    const read = (after: FoundListAddress | undefined) =>
      store.listAddresses(this.#pattern.needle, after, ROWS_AT_ONCE);
    for await (const page of pagesOf({ start: undefined, read, positionOf: (one) => one }))
      for (const one of page.filter((found) => this.#isSame(found))) await erase(one);
    return erased;
  }

  /** Returns how many rows were changed; null while the list is being received or removed. */
  #eraseListAddress(tx: Tx, found: FoundListAddress): number | null {
    const { store, jobs, writer } = this.#parts;
    const job = jobs.get(found.job);
    if (job === undefined || job.status === "receiving" || job.status === "deleting" || job.isResetting) return null;
    const { position, rows } = found;
    if (isUnfinished(job) && store.isOpen(tx, job.number, position)) {
      // Ended here: results of an attempt under way are then dropped.
      const outcome = internalErrorOutcome(this.#runtime.clock.nowMs());
      writer.writeAttempts(tx, job.number, [{ position, rows, isRetry: true, outcome }]);
    }
    const { width, column } = jobs.formatOf(job.number);
    const cells = Array.from({ length: width }, (_, at) => (at === column ? ERASED : ""));
    return store.eraseListAddress(tx, found, JSON.stringify(cells));
  }

  /** Removes evidence of other addresses that contains the address, such as a suggestion. */
  async #eraseEvidence(table: FoundEvidence["table"]): Promise<number> {
    const { store } = this.#parts;
    let erased = 0;
    await this.#eachPage(
      (after, limit) => store.evidence(table, after, limit),
      async (rows) => {
        const found = rows.filter(({ body }) => this.#pattern.matches(readEvidence(body)));
        if (found.length === 0) return;
        await this.#runtime.db.commit((tx) => {
          for (const one of found) store.removeEvidence(tx, one);
        });
        erased += found.length;
      },
    );
    return erased;
  }

  async #eraseReportMails(): Promise<{ readonly erased: number; readonly waiting: number }> {
    const { store } = this.#parts;
    const count = { erased: 0, waiting: 0 };
    for await (const { ingestion, bytes } of store.raws()) {
      if (!(await isInReport(bytes, this.#pattern))) continue;
      if (await this.#runtime.db.commit((tx) => store.removeRaw(tx, ingestion))) count.erased += 1;
      else count.waiting += 1;
    }
    await store.raw.removeStray();
    return count;
  }
}

/** Whether a report mail or file contains an address, also encoded or packed. */
export const isInReport = async (bytes: Uint8Array, pattern: AddressPattern): Promise<boolean> => {
  for await (const text of reportContents(bytes)) if (pattern.matches(text)) return true;
  return false;
};

/** Evidence that cannot be read any more, which nobody can show either, counts as empty. */
export const readEvidence = (body: Uint8Array | string): string => {
  try {
    return typeof body === "string" ? body : evidenceJson(body);
  } catch {
    return "";
  }
};

const decoder = new TextDecoder();

/**
 * The texts of a report mail or file: as received, and what is encoded or packed in it (transfer encodings, archives).
 * Texts beyond the limits of reading reports are left out. Never throws, whatever the bytes.
 */
async function* reportContents(bytes: Uint8Array): AsyncGenerator<string, void> {
  yield decoder.decode(bytes);
  const budget = createUnpackBudget();
  const message = await readMessage(bytes);
  const parts = message.ok ? message.value.parts : [{ bytes, name: null }];
  for (const part of parts) {
    for (const unpacked of await unpack(part.bytes, part.name, budget))
      if (unpacked.kind !== "refused") yield decoder.decode(unpacked.bytes);
  }
}
