import { DAY_MS } from "../base/days.ts";
import type { Clock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import type { Result } from "../base/errors.ts";
import { err, ok } from "../base/errors.ts";
import type { Blocklist } from "./blocklist.ts";

/** Why a list must not be asked now. `retryAfterMs` is when it is worth trying again. */
export interface BudgetExceeded {
  readonly kind: "budget_spent" | "queue_full";
  readonly problem: string;
  readonly retryAfterMs: number;
}

/** Says when a list may be asked: every question to a list, tests included, takes its turn here first. */
export interface DnsblPacing {
  /** Waits for the turn of one question. Fails at once when the day's budget is spent or too many wait already. */
  acquire(list: Blocklist): Promise<Result<null, BudgetExceeded>>;
}

/** Where an operator publishes no figure: well below what published ones allow, and no burst. */
const QUERIES_PER_DAY_UNPUBLISHED = 100_000;
const SPACING_UNPUBLISHED_MS = 10;
/** A turn further away than this is no turn: whoever asks has a deadline too. */
const WAIT_MS_MAX = 30_000;

/** Where what was asked of the lists outlives the process. */
export interface BudgetLedger {
  /** Takes up to `wanted` queries of the budget of a day (days since 1970, UTC), durably; how many were left of `most`. */
  reserve(listId: string, day: number, { wanted, most }: { readonly wanted: number; readonly most: number }): number;
}

/** Of a day's budget; what a process reserved and did not use is lost when it ends. */
const BLOCK_SHARE = 0.01;
const BLOCK_MAX = 200;

interface Account {
  day: number;
  /** Queries that may still be sent before more must be reserved. */
  left: number;
  /** Monotonic time of the next free turn. */
  nextTurnMs: number;
}

/** A ledger for a process that has no database, or that need not be told from the next one. */
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
 * Keeps to the published budgets: so many queries a day (UTC), with a pause between two. Queries are reserved in the
 * ledger in blocks before they are sent, so that a restart or a crash never leads to more than the budget.
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
    const account = known ?? { day, left: 0, nextTurnMs: 0 };
    if (known === undefined) accounts.set(id, account);
    if (account.day !== day) {
      account.day = day;
      account.left = 0;
    }
    return account;
  };

  return {
    async acquire({ id, name, budget }) {
      const nowMs = clock.nowMs();
      const day = Math.floor(nowMs / DAY_MS);
      const account = accountOf(id, day);
      const perDay = budget.queriesPerDay ?? QUERIES_PER_DAY_UNPUBLISHED;
      if (account.left === 0) {
        const wanted = Math.min(BLOCK_MAX, Math.max(1, Math.floor(perDay * BLOCK_SHARE)));
        account.left = ledger.reserve(id, day, { wanted, most: perDay });
      }
      if (account.left === 0) {
        const problem = `${name} may be asked ${perDay} times a day, and was.`;
        return err({ kind: "budget_spent", problem, retryAfterMs: DAY_MS - (nowMs % DAY_MS) });
      }
      const waitMs = Math.max(0, account.nextTurnMs - clock.monotonicMs());
      if (waitMs > waitMsMax) {
        return err({ kind: "queue_full", problem: `Too many questions to ${name} are waiting.`, retryAfterMs: waitMs });
      }
      account.left -= 1;
      account.nextTurnMs = clock.monotonicMs() + waitMs + (budget.spacingMs ?? SPACING_UNPUBLISHED_MS);
      if (waitMs > 0) await wait(clock, waitMs);
      return ok(null);
    },
  };
};

/** No budgets and no pauses: for measurements and for lists of one's own, never for lists of others. */
export const noPacing: DnsblPacing = { acquire: () => Promise.resolve(ok(null)) };
