import { createAccounts } from "./accounts/accounts.ts";
import { createAuthenticator, createKeys } from "./accounts/keys.ts";
import { ACCOUNT_OPERATIONS, createAccountRoutes } from "./accounts/routes.ts";
import { createAccountStore } from "./accounts/store.ts";
import type { Clock } from "./base/clock.ts";
import { createTokenBuckets } from "./base/limits.ts";
import type { Log } from "./base/log.ts";
import { createLedger } from "./billing/store.ts";
import { composeEngine, type Outside } from "./compose-engine.ts";
import type { Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import { createGuard } from "./http/guard.ts";
import { createServer } from "./server.ts";
import { createServiceRoutes } from "./service-routes.ts";
import { createSuppressionStore } from "./suppress/store.ts";
import { createSuppressions } from "./suppress/suppressions.ts";
import { createChecks } from "./verify/checks.ts";
import { VERIFY_OPERATIONS } from "./verify/operations.ts";
import { createVerifyRoutes } from "./verify/routes.ts";
import { createRunner } from "./verify/runner.ts";
import { createVerificationStore } from "./verify/store.ts";
import { VERSION } from "./version.ts";

/** The operator's list of what is not to be mailed. */
export const composeSuppressions = (db: Db, clock: Clock) =>
  createSuppressions({ db, store: createSuppressionStore(db), clock });

/** Accounts, keys and credits: what the administration on the command line needs. */
export const composeAccounts = (db: Db, clock: Clock) => {
  const store = createAccountStore(db);
  const ledger = createLedger(db);
  return {
    store,
    ledger,
    accounts: createAccounts({ db, store, ledger, clock }),
    keys: createKeys({ db, store, clock }),
    authenticate: createAuthenticator({ db, store, clock }),
  };
};

export interface ServiceDeps {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly outside: Outside;
  readonly baseUrl: string;
}

/** The whole service, not yet listening. */
export const composeService = ({ config, db, log, outside, baseUrl }: ServiceDeps) => {
  const { clock } = outside;
  const { match } = composeSuppressions(db, clock);
  const { engine, pool, egress } = composeEngine(config, outside, match);
  const administration = composeAccounts(db, clock);
  const { ledger, authenticate } = administration;
  const store = createVerificationStore(db);
  const runner = createRunner({ db, store, ledger, engine, clock, log });
  const checks = createChecks({ db, store, ledger, runner, clock });
  const guard = createGuard({ authenticate, buckets: createTokenBuckets(clock) });
  const description = "Verifies email addresses by asking their mail servers, and shows the evidence.";
  const app = createServer({
    log,
    clock,
    routes: [
      createVerifyRoutes({ guard, checks, runner, clock }),
      createAccountRoutes({ guard, store: administration.store, ledger }),
      createServiceRoutes({
        db,
        operations: [...VERIFY_OPERATIONS, ...ACCOUNT_OPERATIONS],
        info: { version: VERSION, baseUrl, description },
        findings: () => [egress.finding()].filter((finding) => finding !== null),
      }),
    ],
  });
  return { app, runner, checks, pool, ...administration };
};

export type Service = ReturnType<typeof composeService>;
