import { err, ok, type Result } from "../base/errors.ts";
import { newId } from "../base/secrets.ts";
import { type PlanName, SIGN_UP_CREDITS } from "../billing/plans.ts";
import type { Balance, Ledger } from "../billing/store.ts";
import type { Runtime } from "../db/runtime.ts";
import type { Account, AccountStore } from "./store.ts";

export type AccountProblem = "name_taken" | "name_invalid" | "unknown_account" | "credits_invalid" | "ledger_mismatch";

/** The credits of an account at one moment. `ledger` is the sum of its entries: equal, or something is broken. */
export interface Statement extends Balance {
  readonly account: string;
  readonly granted: number;
  readonly spent: number;
  readonly ledger: Balance;
}

const NAME_CHARACTERS_MAX = 100;
/** More at once is a typing error; it also keeps every sum far below 2^53. */
const GRANT_CREDITS_MAX = 1_000_000_000;

const PROBLEMS: Readonly<Record<Exclude<AccountProblem, "unknown_account">, string>> = {
  name_taken: "An account with this name already exists.",
  name_invalid: `A name must have 1 to ${NAME_CHARACTERS_MAX} characters, without control characters or surrounding white space.`,
  credits_invalid: `Credits must be a whole number from 1 to ${GRANT_CREDITS_MAX.toLocaleString("en")}.`,
  ledger_mismatch:
    "The balance of the account differs from the sum of its ledger, so nothing was granted. `postwarden credits show` prints both. Restore a backup.",
};

/** What to say about a name that no account has. */
export const describeUnknownAccount = (name: string): string =>
  `There is no account "${name}". \`postwarden accounts list\` lists all accounts.`;

/** What to say where an account is needed before the first one exists. */
export const NO_ACCOUNT_YET = "There is no account yet. Create one: `postwarden accounts create NAME`.";

/** A problem with the account of this name, as a sentence. */
export const describeAccountProblem = (problem: AccountProblem, name: string): string =>
  problem === "unknown_account" ? describeUnknownAccount(name) : PROBLEMS[problem];

/** Whether a text can name an account or a key. */
export const isName = (text: string): boolean => {
  const length = [...text].length;
  return length >= 1 && length <= NAME_CHARACTERS_MAX && text.trim() === text && !/\p{Cc}/u.test(text);
};

/** Whether the balance is the sum of the ledger's entries. */
export const isBalanced = ({ available, held, ledger }: Statement): boolean =>
  available === ledger.available && held === ledger.held;

/** The administration of accounts and their credits. */
export class Accounts {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #store: AccountStore;
  readonly #ledger: Ledger;

  constructor(
    runtime: Pick<Runtime, "db" | "clock">,
    { store, ledger }: { readonly store: AccountStore; readonly ledger: Ledger },
  ) {
    this.#runtime = runtime;
    this.#store = store;
    this.#ledger = ledger;
  }

  /** Creates an account on a plan, with the sign-up credits. */
  create(name: string, plan: PlanName = "free"): Result<Account, AccountProblem> {
    if (!isName(name)) return err("name_invalid");
    const createdAtMs = this.#runtime.clock.nowMs();
    const account = { id: newId(), name, plan, createdAtMs };
    return this.#runtime.db.transact((tx) => {
      if (this.#store.findAccountByName(name) !== undefined) return err("name_taken");
      this.#store.insertAccount(tx, account);
      const grant = { accountId: account.id, credits: SIGN_UP_CREDITS, note: "sign-up", atMs: createdAtMs };
      this.#ledger.grant(tx, grant);
      return ok(account);
    });
  }

  setPlan(name: string, plan: PlanName): Result<Account, AccountProblem> {
    return this.#runtime.db.transact((tx) => {
      const account = this.#store.findAccountByName(name);
      if (account === undefined) return err("unknown_account");
      this.#store.setPlan(tx, account.id, plan);
      return ok({ ...account, plan });
    });
  }

  /** The credits of an account, read from one state of the database. */
  statement(name: string): Result<Statement, AccountProblem> {
    return this.#runtime.db.snapshot(() => {
      const account = this.#store.findAccountByName(name);
      return account === undefined ? err("unknown_account") : ok(this.#statementOf(account));
    });
  }

  /** Adds credits, and returns the statement after it. On an error, nothing was granted. */
  grantCredits(name: string, credits: number, note: string): Result<Statement, AccountProblem> {
    if (!Number.isSafeInteger(credits) || credits < 1 || credits > GRANT_CREDITS_MAX) return err("credits_invalid");
    return this.#runtime.db.transact((tx) => {
      const account = this.#store.findAccountByName(name);
      if (account === undefined) return err("unknown_account");
      if (!isBalanced(this.#statementOf(account))) return err("ledger_mismatch");
      this.#ledger.grant(tx, { accountId: account.id, credits, note, atMs: this.#runtime.clock.nowMs() });
      return ok(this.#statementOf(account));
    });
  }

  #statementOf({ id, name }: Account): Statement {
    const ledger = this.#ledger;
    return { account: name, ...ledger.balance(id), ...ledger.totals(id), ledger: ledger.sum(id) };
  }
}
