import type { AuditLog } from "../accounts/audit-log.ts";
import { GuessedCodes } from "../accounts/guessed-codes.ts";
import { createCallerNames } from "../accounts/caller-names.ts";
import { type PasswordCosts, Passwords } from "../accounts/passwords.ts";
import { Profiles } from "../accounts/profiles.ts";
import { SessionStore } from "../accounts/session-store.ts";
import { Sessions } from "../accounts/sessions.ts";
import { SetupLinks } from "../accounts/setup-links.ts";
import type { AccountStore } from "../accounts/store.ts";
import { UserStore } from "../accounts/user-store.ts";
import { Users } from "../accounts/users.ts";
import type { Runtime } from "../foundation/db/runtime.ts";

/** Users of the dashboard, their sessions and one-time links. */
export const composeUsers = (
  runtime: Pick<Runtime, "db" | "clock">,
  accounts: AccountStore,
  audit: AuditLog,
  passwordCosts: PasswordCosts,
) => {
  const [store, sessionStore] = [new UserStore(runtime.db), new SessionStore(runtime.db)];
  const passwords = new Passwords(runtime.clock, passwordCosts);
  const links = new SetupLinks(runtime, { store: sessionStore, users: store, passwords, audit, accounts });
  return {
    callerName: createCallerNames(accounts, store),
    setupLinks: links,
    users: new Users(runtime, { store, sessions: sessionStore, links, accounts, passwords, audit }),
    guessedCodes: new GuessedCodes(runtime.clock, { audit, users: store }),
    sessions: new Sessions(runtime, { store: sessionStore, users: store, passwords, audit }),
    profiles: new Profiles(runtime, { store, sessions: sessionStore, passwords, audit }),
  };
};
