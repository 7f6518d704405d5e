import { DAY_MS } from "../foundation/base/days.ts";
import { pagesOf } from "../foundation/base/in-steps.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { AgedRow, VerificationExpiryStore } from "./store.ts";

/** For how many days something is kept; null: for ever. */
export interface VerificationRetention {
  readonly verificationDays: number | null;
  readonly evidenceDays: number | null;
}

/** What a run removed. */
export interface ExpiredVerifications {
  readonly verifications: number;
  readonly evidence: number;
}

/** Rows examined, and removed, in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 100;
/** An Idempotency-Key is valid for a day, and is stored moments after the verification that it stands for. */
const SLACK_MS = 60 * 60 * 1000;

interface Walk {
  readonly days: number | null;
  readonly page: (after: number, limit: number) => AgedRow[];
  readonly remove: (tx: Tx, row: AgedRow) => void;
}

/** Removes verifications that have ended, and their evidence, when they expire. Pending ones are never touched. */
export class VerificationExpiry {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly store: VerificationExpiryStore,
    private readonly retention: VerificationRetention,
  ) {}

  /** Removes what has expired, in short transactions, until nothing is left or `isStopping`. The next run resumes. */
  async run(isStopping: () => boolean): Promise<ExpiredVerifications> {
    const { store } = this;
    const { verificationDays, evidenceDays } = this.retention;
    const evidence = await this.#remove(isStopping, {
      days: evidenceDays,
      page: (after, limit) => store.evidenceAfter(after, limit),
      remove: (tx, row) => store.removeEvidence(tx, row),
    });
    const verifications = await this.#remove(isStopping, {
      days: verificationDays,
      page: (after, limit) => store.verificationsAfter(after, limit),
      remove: (tx, row) => store.removeVerification(tx, row),
    });
    return { verifications, evidence };
  }

  /** Walks from the oldest row to the first page that nothing of is expired. */
  async #remove(isStopping: () => boolean, { days, page, remove }: Walk): Promise<number> {
    if (days === null) return 0;
    const nowMs = this.runtime.clock.nowMs();
    const beforeMs = nowMs - days * DAY_MS - SLACK_MS;
    let removed = 0;
    const read = (after: number): AgedRow[] => page(after, ROWS_AT_ONCE);
    for await (const rows of pagesOf({ start: 0, read, positionOf: ({ rowid }) => rowid }, { isStopping })) {
      const expired = rows.filter(({ endedAtMs }) => endedAtMs !== null && endedAtMs < beforeMs);
      if (expired.length > 0) {
        await this.runtime.db.commit((tx) => {
          for (const row of expired) remove(tx, row);
        });
        removed += expired.length;
      } else if (rows.some((row) => isYoung(row, nowMs))) break;
    }
    return removed;
  }
}

/** Ended, and not in the future: rows from a time when the clock was wrong do not hide older ones behind them. */
const isYoung = ({ endedAtMs }: AgedRow, nowMs: number): boolean => endedAtMs !== null && endedAtMs <= nowMs;
