import type { Clock } from "../base/clock.ts";
import { err, ok, type Result } from "../base/errors.ts";
import { newId } from "../base/secrets.ts";
import { type PlanName, SIGN_UP_CREDITS } from "../billing/plans.ts";
import type { Balance, Ledger } from "../billing/store.ts";
import type { Db } from "../db/open.ts";
import type { Account, AccountStore } from "./store.ts";

export interface AccountsDeps {
  readonly db: Db;
  readonly store: AccountStore;
  readonly ledger: Ledger;
  readonly clock: Clock;
}

export type AccountProblem = "name_taken" | "name_invalid" | "unknown_account" | "credits_invalid" | "ledger_mismatch";

/** The credits of an account, all of one moment. `ledger` is the sum of its entries: equal, or something is broken. */
export interface Statement extends Balance {
  readonly account: string;
  readonly granted: number;
  readonly spent: number;
  readonly ledger: Balance;
}

const NAME_CHARACTERS_MAX = 100;
/** More in one go is a slip of the finger; it also keeps every sum far below 2^53. */
const GRANT_CREDITS_MAX = 1_000_000_000;

const PROBLEMS: Readonly<Record<AccountProblem, string>> = {
  name_taken: "An account of that name exists already.",
  name_invalid: `A name has 1 to ${NAME_CHARACTERS_MAX} characters, none of them control characters.`,
  unknown_account: "There is no account of that name. `postwarden accounts list` shows those that exist.",
  credits_invalid: `Credits are a whole number from 1 to ${GRANT_CREDITS_MAX.toLocaleString("en")}.`,
  ledger_mismatch:
    "The account's balance is not the sum of its ledger, so nothing was granted. `postwarden credits show` prints both. Restore a backup.",
};

export const describeAccountProblem = (problem: AccountProblem): string => PROBLEMS[problem];

/** Whether a text can name an account or a key. */
export const isName = (text: string): boolean => {
  const length = [...text].length;
  return length >= 1 && length <= NAME_CHARACTERS_MAX && text.trim() === text && !/\p{Cc}/u.test(text);
};

/** Whether the balance is the sum of the ledger's entries. */
export const isBalanced = ({ available, held, ledger }: Statement): boolean =>
  available === ledger.available && held === ledger.held;

export const createAccounts = ({ db, store, ledger, clock }: AccountsDeps) => {
  const statementOf = ({ id, name }: Account): Statement => ({
    account: name,
    ...ledger.balance(id),
    ...ledger.totals(id),
    ledger: ledger.sum(id),
  });

  return {
    /** A new account on a plan, with the free credits of sign-up. */
    create(name: string, plan: PlanName = "free"): Result<Account, AccountProblem> {
      if (!isName(name)) return err("name_invalid");
      const account = { id: newId(), name, plan, createdAtMs: clock.nowMs() };
      return db.transact((tx) => {
        if (store.findAccountByName(name) !== undefined) return err("name_taken");
        store.insertAccount(tx, account);
        ledger.grant(tx, {
          accountId: account.id,
          credits: SIGN_UP_CREDITS,
          note: "sign-up",
          atMs: account.createdAtMs,
        });
        return ok(account);
      });
    },

    setPlan(name: string, plan: PlanName): Result<Account, AccountProblem> {
      return db.transact((tx) => {
        const account = store.findAccountByName(name);
        if (account === undefined) return err("unknown_account");
        store.setPlan(tx, account.id, plan);
        return ok({ ...account, plan });
      });
    },

    /** The credits of an account, read on one state of the database. */
    statement(name: string): Result<Statement, AccountProblem> {
      return db.snapshot(() => {
        const account = store.findAccountByName(name);
        return account === undefined ? err("unknown_account") : ok(statementOf(account));
      });
    },

    /** Adds credits, and answers the statement after it. A failure means that nothing was granted. */
    grantCredits(name: string, credits: number, note: string): Result<Statement, AccountProblem> {
      if (!Number.isSafeInteger(credits) || credits < 1 || credits > GRANT_CREDITS_MAX) return err("credits_invalid");
      return db.transact((tx) => {
        const account = store.findAccountByName(name);
        if (account === undefined) return err("unknown_account");
        if (!isBalanced(statementOf(account))) return err("ledger_mismatch");
        ledger.grant(tx, { accountId: account.id, credits, note, atMs: clock.nowMs() });
        return ok(statementOf(account));
      });
    },
  };
};

export type Accounts = ReturnType<typeof createAccounts>;
