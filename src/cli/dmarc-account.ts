import { systemClock } from "../base/clock.ts";
import { composeAccounts } from "../compose.ts";
import type { Db } from "../db/open.ts";
import { CommandFailed, UsageError } from "./io.ts";

/** The account that is meant: the one named, or the only one there is. */
export const accountIdOf = (db: Db, name: string | undefined): string => {
  const { store } = composeAccounts(db, systemClock);
  if (name !== undefined) {
    const account = store.findAccountByName(name);
    if (account !== undefined) return account.id;
    const advice = "`postwarden accounts list` shows those that exist.";
    throw new CommandFailed(`There is no account of that name. ${advice}`, "unknown_account");
  }
  const [only, another] = store.listAccounts();
  if (only === undefined) throw new CommandFailed("There is no account yet.", "unknown_account");
  if (another !== undefined) throw new UsageError("There are several accounts; say which with --account.", "account");
  return only.id;
};
