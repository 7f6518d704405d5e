import { DAY_MS } from "../../foundation/base/days.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { wait } from "../../foundation/base/wait.ts";
import type { Result } from "../../foundation/base/errors.ts";
import { err, ok } from "../../foundation/base/errors.ts";
import type { Blocklist } from "./blocklist.ts";

/** Why a query cannot be sent now. `retryAfterMs` is when to try again. */
export interface BudgetExceeded {
  readonly kind: "budget_spent" | "queue_full";
  readonly problem: string;
  readonly retryAfterMs: number;
}

/** Paces queries: every query to a list, tests included, needs a permit. */
export interface DnsblPacing {
  /** Waits until one query may be sent. Fails at once when the daily budget is exhausted or the wait would be too long. */
  acquire(list: Blocklist): Promise<Result<null, BudgetExceeded>>;
}

/** Where the operator publishes no limit: well below published ones, without bursts. */
const QUERIES_PER_DAY_UNPUBLISHED = 100_000;
const SPACING_UNPUBLISHED_MS = 10;

/** Queries that may be sent to a list on one day (UTC). */
export const queriesPerDayOf = ({ budget }: Pick<Blocklist, "budget">): number =>
  budget.queriesPerDay ?? QUERIES_PER_DAY_UNPUBLISHED;

/** Callers have deadlines: a longer wait fails at once. */
const WAIT_MS_MAX = 30_000;

/** Counts the queries per list and day, beyond the life of a process. */
export interface BudgetLedger {
  /** Reserves up to `wanted` queries of a day (days since 1970, UTC) durably; returns how many of `most` were left. */
  reserve(listId: string, day: number, { wanted, most }: { readonly wanted: number; readonly most: number }): number;
}

/** Share of a daily budget that is reserved at once; what a process does not use of it is lost. */
const BLOCK_SHARE = 0.01;
const BLOCK_MAX = 200;

interface Account {
  day: number;
  /** Reserved queries that were not sent yet. */
  left: number;
  /** Monotonic time at which the next query may be sent. */
  nextSlotMs: number;
}

/** A ledger for processes without a database. */
export const createMemoryLedger = (): BudgetLedger => {
  const days = new Map<string, { readonly day: number; readonly reserved: number }>();
  return {
    reserve(listId, day, { wanted, most }) {
      const known = days.get(listId);
      const reserved = known?.day === day ? known.reserved : 0;
      const granted = Math.max(0, Math.min(wanted, most - reserved));
      days.set(listId, { day, reserved: reserved + granted });
      return granted;
    },
  };
};

/**
 * Keeps to the published budgets: queries a day (UTC) and a pause between two. Queries are reserved in the ledger in
 * blocks before they are sent, so a restart or crash never exceeds the budget.
 */
export const createDnsblPacing = ({
  clock,
  ledger = createMemoryLedger(),
  waitMsMax = WAIT_MS_MAX,
}: {
  clock: Clock;
  ledger?: BudgetLedger;
  waitMsMax?: number;
}): DnsblPacing => {
  const accounts = new Map<string, Account>();

  const accountOf = (id: string, day: number): Account => {
    const known = accounts.get(id);
    const account = known ?? { day, left: 0, nextSlotMs: 0 };
    if (known === undefined) accounts.set(id, account);
    if (account.day !== day) {
      account.day = day;
      account.left = 0;
    }
    return account;
  };

  return {
    async acquire(list) {
      const { id, name, budget } = list;
      const nowMs = clock.nowMs();
      const day = Math.floor(nowMs / DAY_MS);
      const account = accountOf(id, day);
      const perDay = queriesPerDayOf(list);
      if (account.left === 0) {
        const wanted = Math.min(BLOCK_MAX, Math.max(1, Math.floor(perDay * BLOCK_SHARE)));
        account.left = ledger.reserve(id, day, { wanted, most: perDay });
      }
      if (account.left === 0) {
        const problem = `The daily budget of ${perDay} queries to ${name} is exhausted.`;
        return err({ kind: "budget_spent", problem, retryAfterMs: DAY_MS - (nowMs % DAY_MS) });
      }
      const waitMs = Math.max(0, account.nextSlotMs - clock.monotonicMs());
      if (waitMs > waitMsMax) {
        return err({ kind: "queue_full", problem: `Too many queries to ${name} are waiting.`, retryAfterMs: waitMs });
      }
      account.left -= 1;
      account.nextSlotMs = clock.monotonicMs() + waitMs + (budget.spacingMs ?? SPACING_UNPUBLISHED_MS);
      if (waitMs > 0) await wait(clock, waitMs);
      return ok(null);
    },
  };
};

/** No budgets and no pauses: for measurements and your own lists only. */
export const noPacing: DnsblPacing = { acquire: () => Promise.resolve(ok(null)) };
