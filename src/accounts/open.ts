import type { Clock } from "../foundation/base/clock.ts";
import { createTokenBuckets } from "../foundation/base/limits.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Runtime, DbClock } from "../foundation/db/runtime.ts";
import { type Authenticate, Guard } from "../foundation/http/guard.ts";
import { FormGate } from "../foundation/http/form-gate.ts";
import { createBudgets } from "../foundation/http/request-memory.ts";
import { Accounts } from "./accounts.ts";
import { type Actor, actorOfProcess, AuditLog } from "./audit-store.ts";
import { type CreditHolds, FREE_OF_CHARGE, Ledger } from "./billing/store.ts";
import { GuessedCodes } from "./guessed-codes.ts";
import { ApiKeys, Authenticator } from "./keys.ts";
import { PASSWORD_COSTS, type PasswordCosts, Passwords } from "./passwords.ts";
import { Profiles } from "./profiles.ts";
import { SessionStore } from "./session-store.ts";
import { Sessions } from "./sessions.ts";
import { SetupLinks } from "./setup-links.ts";
import { AccountStore } from "./store.ts";
import { SuppressionStore, Suppressions } from "./suppress/store.ts";
import { AccountUsage, RateLimitedRequests } from "./usage/account-usage.ts";
import { UsageStore } from "./usage/usage-store.ts";
import { UserStore } from "./user-store.ts";
import { Users } from "./users.ts";

/** The operator's suppression list. */
export const openSuppressions = (db: Db, clock: Clock): Suppressions =>
  new Suppressions({ db, clock }, new SuppressionStore(db));

/** Accounts, users, keys and credits; `actor` is who the audit log names. */
export class AccountsSlice {
  readonly snapshot: Db["snapshot"];
  readonly store: AccountStore;
  readonly ledger: Ledger;
  readonly credits: ByMode<CreditHolds>;
  readonly audit: AuditLog;
  readonly accounts: Accounts;
  readonly keys: ApiKeys;
  readonly authenticate: Authenticate;
  /** What a caller is called, by its `keyId`; null for one that was removed. */
  readonly callerName: (keyId: string) => string | null;
  readonly setupLinks: SetupLinks;
  readonly users: Users;
  readonly guessedCodes: GuessedCodes;
  readonly sessions: Sessions;
  readonly profiles: Profiles;

  constructor(runtime: DbClock, actor: Actor = actorOfProcess(), passwordCosts: PasswordCosts = PASSWORD_COSTS) {
    const { db, clock } = runtime;
    const store = new AccountStore(db);
    const ledger = new Ledger(db);
    const audit = new AuditLog(runtime, actor);
    this.snapshot = db.snapshot;
    this.store = store;
    this.ledger = ledger;
    this.credits = { live: ledger, test: FREE_OF_CHARGE };
    this.audit = audit;
    this.accounts = new Accounts(runtime, { store, ledger, audit });
    this.keys = new ApiKeys(runtime, store, audit);
    this.authenticate = new Authenticator(runtime, store).authenticate;
    const [users, sessions, passwords] = [new UserStore(db), new SessionStore(db), new Passwords(clock, passwordCosts)];
    const links = new SetupLinks(runtime, { store: sessions, users, passwords, audit, accounts: store });
    this.callerName = createCallerNames(store, users);
    this.setupLinks = links;
    this.users = new Users(runtime, { store: users, sessions, links, accounts: store, passwords, audit });
    this.guessedCodes = new GuessedCodes(clock, { audit, users });
    this.sessions = new Sessions(runtime, { store: sessions, users, passwords, audit });
    this.profiles = new Profiles(runtime, { store: users, sessions, passwords, audit });
  }
}

/** What accounts used, and the guard that counts the requests which the rate limit refuses. */
export class UsageSlice {
  readonly guard: Guard;
  readonly formGate: FormGate;
  readonly usage: AccountUsage;
  readonly rateLimited: RateLimitedRequests;

  constructor(
    runtime: Runtime,
    { authenticate, audit, store: keys }: Pick<AccountsSlice, "authenticate" | "audit" | "store">,
  ) {
    const { clock } = runtime;
    const store = new UsageStore(runtime.db);
    this.usage = new AccountUsage(store);
    this.rateLimited = new RateLimitedRequests(runtime, store);
    this.formGate = new FormGate({
      clock,
      countSince: (keyId, sinceMs) => keys.verificationsSince(keyId, sinceMs),
      readOrigins: () => keys.formOrigins(clock.nowMs()),
    });
    this.guard = new Guard(authenticate, {
      buckets: createTokenBuckets(clock),
      formGate: this.formGate,
      budgets: createBudgets(clock),
      onRateLimited: (caller) => this.rateLimited.count(caller),
      perform: ({ accountId, keyId }, done, act) =>
        audit.perform({ ...act, action: { ...done, accountId, byKey: keyId } }),
    });
  }
}

/** What the `keyId` of a caller begins with when it is a user of the dashboard. */
const USER_PREFIX = "user:";
/** The `keyId` of verifications that the policy service begins for an account: no key has it. */
export const POLICY_KEY_ID = "policy";

/** Says what a caller is called: the name of an API key, or the address of a user; null for one that was removed. */
const createCallerNames = (keys: AccountStore, users: UserStore) => (keyId: string) => {
  if (keyId === POLICY_KEY_ID) return "Policy service";
  return keyId.startsWith(USER_PREFIX)
    ? (users.find(keyId.slice(USER_PREFIX.length))?.user.email ?? null)
    : (keys.findKey(keyId)?.name ?? null);
};
