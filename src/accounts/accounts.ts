import { err, ok, type Result } from "../foundation/base/errors.ts";
import { newId } from "../foundation/base/secrets.ts";
import {
  CUSTOM_RATE_MAX,
  type CustomRate,
  type PlanName,
  SIGN_UP_CREDITS,
  type Balance,
  type Ledger,
} from "./billing/store.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { DbClock } from "../foundation/db/runtime.ts";
import type { AuditLog } from "./audit-store.ts";
import type { Account, AccountStore } from "./store.ts";

/** The credits of an account at one moment. `ledger` is the sum of its entries: equal, or something is broken. */
export interface Statement extends Balance {
  readonly account: string;
  readonly granted: number;
  readonly spent: number;
  readonly ledger: Balance;
}

const NAME_CHARACTERS_MAX = 100;
const NOTE_CHARACTERS_MAX = 200;
/** More at once is a typing error; it also keeps every sum far below 2^53. */
const GRANT_CREDITS_MAX = 1_000_000_000;

const PROBLEMS = {
  name_taken: "An account with this name already exists.",
  name_invalid: `A name must have 1 to ${NAME_CHARACTERS_MAX} characters, without control characters or surrounding white space.`,
  credits_invalid: `Credits must be a whole number from 1 to ${GRANT_CREDITS_MAX.toLocaleString("en")}.`,
  note_invalid: `A note must have 1 to ${NOTE_CHARACTERS_MAX} characters, without control characters.`,
  rate_invalid: `A rate and a burst must be whole numbers from 1 to ${CUSTOM_RATE_MAX.toLocaleString("en")}.`,
  ledger_mismatch:
    "The balance of the account differs from the sum of its ledger, so nothing was granted. `postwarden credits show` prints both. Restore a backup.",
};
export type AccountProblem = keyof typeof PROBLEMS | "unknown_account";

/** What to say about a name that no account has. */
export const describeUnknownAccount = (name: string): string =>
  `There is no account "${name}". \`postwarden accounts list\` lists all accounts.`;

/** What to say where an account is needed before the first one exists. */
export const NO_ACCOUNT_YET = "There is no account yet. Create one: `postwarden accounts create NAME`.";

/** The id of the account that a setting names: the named one, or with null the only one. The error is a sentence. */
export const accountOfSetting = (
  store: Pick<AccountStore, "findAccountByName" | "listAccounts">,
  setting: string,
  name: string | null,
): Result<string, string> => {
  if (name !== null) {
    const account = store.findAccountByName(name);
    if (account !== undefined) return ok(account.id);
    // Without the name: anybody may read it at `/readyz`.
    return err(`${setting} names an account that does not exist. \`postwarden accounts list\` lists all accounts.`);
  }
  const [only, another] = store.listAccounts();
  if (only === undefined) return err(NO_ACCOUNT_YET);
  return another === undefined ? ok(only.id) : err(`There are several accounts. Set ${setting} to the name of one.`);
};

/** As `accountOfSetting`; a disabled account is an error. */
export const enabledAccount = (
  store: Pick<AccountStore, "findAccount" | "findAccountByName" | "listAccounts">,
  setting: string,
  name: string | null,
): Result<string, string> => {
  const found = accountOfSetting(store, setting, name);
  const account = found.ok ? store.findAccount(found.value) : undefined;
  return account === undefined || account.disabledAtMs === null ? found : err(`${setting}: The account is disabled.`);
};

/** A problem with the account of this name, as a sentence. */
export const describeAccountProblem = (problem: AccountProblem, name: string): string =>
  problem === "unknown_account" ? describeUnknownAccount(name) : PROBLEMS[problem];

/** Whether a text can name an account or a key. */
export const isName = (text: string): boolean => {
  const length = [...text].length;
  return length >= 1 && length <= NAME_CHARACTERS_MAX && text.trim() === text && !/\p{Cc}/u.test(text);
};

const isNote = (text: string) => {
  const length = [...text].length;
  return length >= 1 && length <= NOTE_CHARACTERS_MAX && !/\p{Cc}/u.test(text);
};

const isCustomRate = (rate: number | null) =>
  rate === null || (Number.isSafeInteger(rate) && rate >= 1 && rate <= CUSTOM_RATE_MAX);

export const NO_CUSTOM_RATE: CustomRate = { ratePerSecond: null, rateBurst: null };

/** What an entry of the audit log says about limits. */
const planValues = ({ plan, ratePerSecond, rateBurst }: Pick<Account, "plan" | keyof CustomRate>) => ({
  plan,
  requests_per_second: ratePerSecond,
  burst: rateBurst,
});

/** Whether the balance is the sum of the ledger's entries. */
export const isBalanced = ({ available, held, ledger }: Statement): boolean =>
  available === ledger.available && held === ledger.held;

/** The administration of accounts and their credits. */
export class Accounts {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: { store: AccountStore; ledger: Ledger; audit: AuditLog },
  ) {}

  /** Creates an account on a plan, with the sign-up credits. */
  create(name: string, plan: PlanName = "free"): Result<Account, AccountProblem> {
    if (!isName(name)) return err("name_invalid");
    const createdAtMs = this.runtime.clock.nowMs();
    const account = { id: newId(), name, plan, ...NO_CUSTOM_RATE, disabledAtMs: null, createdAtMs };
    return this.runtime.db.transact((tx) => {
      if (this.deps.store.findAccountByName(name) !== undefined) return err("name_taken");
      this.deps.store.insertAccount(tx, account);
      const grant = { accountId: account.id, credits: SIGN_UP_CREDITS, note: "sign-up", atMs: createdAtMs };
      this.deps.ledger.grant(tx, grant);
      const after = { plan, credits: SIGN_UP_CREDITS };
      this.deps.audit.append(tx, { action: "accounts.create", accountId: account.id, subject: name, after });
      return ok(account);
    });
  }

  /** Sets the plan, with rate limits of its own or, by default, those of the plan. */
  setPlan(
    name: string,
    plan: PlanName,
    custom: CustomRate = NO_CUSTOM_RATE,
    by?: string,
  ): Result<Account, AccountProblem> {
    if (!isCustomRate(custom.ratePerSecond) || !isCustomRate(custom.rateBurst)) return err("rate_invalid");
    return this.#change(name, (tx, account) => {
      const change = { plan, ...custom };
      this.deps.store.updateAccount(tx, account.id, change);
      const [before, after] = [planValues(account), planValues(change)];
      this.deps.audit.append(tx, {
        action: "accounts.set-plan",
        accountId: account.id,
        subject: name,
        before,
        after,
        by,
      });
      return ok({ ...account, ...change });
    });
  }

  /** Renames an account; its id, keys, credits and history stay. */
  rename(name: string, to: string, by?: string): Result<Account, AccountProblem> {
    if (!isName(to)) return err("name_invalid");
    return this.#change(name, (tx, account) => {
      if (to !== name && this.deps.store.findAccountByName(to) !== undefined) return err("name_taken");
      this.deps.store.updateAccount(tx, account.id, { name: to });
      const [before, after] = [{ name }, { name: to }];
      this.deps.audit.append(tx, {
        action: "accounts.rename",
        accountId: account.id,
        subject: name,
        before,
        after,
        by,
      });
      return ok({ ...account, name: to });
    });
  }

  /**
   * Refuses the keys and users of an account from the next request on and pauses its monitoring. Accepted verifications and lists
   * finish, and report mail is still accepted. Enabling it undoes all of that; repeating either changes nothing.
   */
  setEnabled(name: string, isEnabled: boolean): Result<Account, AccountProblem> {
    return this.#change(name, (tx, account) => {
      if ((account.disabledAtMs === null) === isEnabled) return ok(account);
      const disabledAtMs = isEnabled ? null : this.runtime.clock.nowMs();
      this.deps.store.updateAccount(tx, account.id, { disabledAtMs });
      const action = isEnabled ? "accounts.enable" : "accounts.disable";
      this.deps.audit.append(tx, { action, accountId: account.id, subject: name });
      return ok({ ...account, disabledAtMs });
    });
  }

  /** The credits of an account, read from one state of the database. */
  statement(name: string): Result<Statement, AccountProblem> {
    return this.runtime.db.snapshot(() => {
      const account = this.deps.store.findAccountByName(name);
      return account === undefined ? err("unknown_account") : ok(this.#statementOf(account));
    });
  }

  /** Adds credits, and returns the statement after it. On an error, nothing was granted. `by`: as in the audit log. */
  grantCredits(name: string, credits: number, note: string, by?: string): Result<Statement, AccountProblem> {
    if (!Number.isSafeInteger(credits) || credits < 1 || credits > GRANT_CREDITS_MAX) return err("credits_invalid");
    if (!isNote(note)) return err("note_invalid");
    return this.#change(name, (tx, account) => {
      const before = this.#statementOf(account);
      if (!isBalanced(before)) return err("ledger_mismatch");
      this.deps.ledger.grant(tx, { accountId: account.id, credits, note, atMs: this.runtime.clock.nowMs() });
      const after = this.#statementOf(account);
      this.deps.audit.append(tx, {
        action: "credits.grant",
        accountId: account.id,
        subject: name,
        before: { available: before.available },
        after: { available: after.available, granted: credits, note },
        by,
      });
      return ok(after);
    });
  }

  /** Runs `work` on an account of this name in a transaction. */
  #change<T>(name: string, work: (tx: Tx, account: Account) => Result<T, AccountProblem>): Result<T, AccountProblem> {
    return this.runtime.db.transact((tx) => {
      const account = this.deps.store.findAccountByName(name);
      return account === undefined ? err("unknown_account") : work(tx, account);
    });
  }

  #statementOf({ id, name }: Account): Statement {
    const ledger = this.deps.ledger;
    return { account: name, ...ledger.balance(id), ...ledger.totals(id), ledger: ledger.sum(id) };
  }
}
