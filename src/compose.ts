import { createAccounts } from "./accounts/accounts.ts";
import { createAuthenticator, createKeys } from "./accounts/keys.ts";
import { ACCOUNT_OPERATIONS, createAccountRoutes } from "./accounts/routes.ts";
import { createAccountStore } from "./accounts/store.ts";
import type { Clock } from "./base/clock.ts";
import { createTokenBuckets } from "./base/limits.ts";
import type { Log } from "./base/log.ts";
import { createLedger } from "./billing/store.ts";
import { BLOCKLIST_EVENTS } from "./blocklist/event-docs.ts";
import { BLOCKLIST_OPERATIONS } from "./blocklist/operations.ts";
import { createBlocklistRoutes } from "./blocklist/routes.ts";
import { BULK_EVENTS } from "./bulk/event-docs.ts";
import { createBulkJobs } from "./bulk/jobs.ts";
import { BULK_OPERATIONS } from "./bulk/operations.ts";
import { createBulkRoutes } from "./bulk/routes.ts";
import { composeBulk, uploadsFolderOf } from "./compose-bulk.ts";
import { composeBlocklist } from "./compose-blocklist.ts";
import { composeEngine, type Outside } from "./compose-engine.ts";
import type { Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import { createGuard } from "./http/guard.ts";
import type { DnsResolver } from "./net/dns.ts";
import { createOutgoingRules } from "./net/fetch-url.ts";
import { createPoster } from "./net/fetch.ts";
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
import { createDispatcher } from "./webhooks/dispatcher.ts";
import { WEBHOOK_OPERATIONS } from "./webhooks/operations.ts";
import { createWebhookRoutes } from "./webhooks/routes.ts";
import { createWebhookSecrets } from "./webhooks/secrets.ts";
import { createSender } from "./webhooks/send.ts";
import { createWebhookStore } from "./webhooks/store.ts";
import { createWebhooks } from "./webhooks/webhooks.ts";

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

/** Webhooks of the whole product: what sends them, and what users do with them. */
export const composeWebhooks = ({ config, db, log, outside }: Omit<ServiceDeps, "baseUrl" | "listResolver">) => {
  const { clock, random, resolver } = outside;
  const store = createWebhookStore(db);
  const secrets = createWebhookSecrets({ db, store, clock });
  const rules = createOutgoingRules(config.webhookAllowNetworks);
  const send = createSender({
    post: createPoster({ resolver, rules, clock }),
    clock,
    userAgent: `Postwarden/${VERSION}`,
  });
  const dispatcher = createDispatcher({ db, store, secrets, send, clock, random, log });
  const webhooks = createWebhooks({ db, store, secrets, dispatcher, send, clock });
  return { rules, dispatcher, webhooks, turnOnUrl: store.clearGone, isUrlOff: store.isGone };
};

export interface ServiceDeps {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly outside: Outside;
  /** What blocklists are asked through, where it is another than the outside's. */
  readonly listResolver?: DnsResolver;
  readonly baseUrl: string;
}

/** The whole service, not yet listening. */
export const composeService = ({ config, db, log, outside, listResolver, baseUrl }: ServiceDeps) => {
  const { clock } = outside;
  const { match } = composeSuppressions(db, clock);
  const { engine, pool, egress } = composeEngine(config, outside, match);
  const administration = composeAccounts(db, clock);
  const { ledger, authenticate } = administration;
  const store = createVerificationStore(db);
  const runner = createRunner({ db, store, ledger, engine, clock, log });
  const checks = createChecks({ db, store, ledger, runner, clock });
  const { rules, dispatcher, webhooks, turnOnUrl, isUrlOff } = composeWebhooks({ config, db, log, outside });
  const blocklist = composeBlocklist({
    config,
    db,
    log,
    ...{ turnOnUrl, isUrlOff },
    outside: { ...outside, resolver: listResolver ?? outside.resolver },
  });
  const { lists, intake, ...work } = composeBulk({
    ...{ config, db, ledger, engine, clock, random: outside.random, log },
    checks: runner,
  });
  const uploadsFolder = uploadsFolderOf(config);
  const bulk = createBulkJobs({
    db,
    lists,
    intake,
    ...work,
    ...{ idempotency: store, clock, log, uploadsFolder },
    turnOnUrl,
    readUrl: rules.parse,
  });
  const guard = createGuard({ authenticate, buckets: createTokenBuckets(clock) });
  const description = "Verifies email addresses by asking their mail servers, and shows the evidence.";
  const app = createServer({
    log,
    clock,
    trustedProxies: config.trustedProxies,
    routes: [
      createVerifyRoutes({ guard, checks, runner, clock }),
      createBulkRoutes({ guard, bulk, lists }),
      createAccountRoutes({ guard, store: administration.store, ledger }),
      createBlocklistRoutes({ guard, rules, clock, ...blocklist }),
      createWebhookRoutes({ guard, webhooks, rules }),
      createServiceRoutes({
        db,
        operations: [
          ...VERIFY_OPERATIONS,
          ...BULK_OPERATIONS,
          ...BLOCKLIST_OPERATIONS,
          ...WEBHOOK_OPERATIONS,
          ...ACCOUNT_OPERATIONS,
        ],
        info: { version: VERSION, baseUrl, description, events: [...BULK_EVENTS, ...BLOCKLIST_EVENTS] },
        findings: () => [egress.finding()].filter((finding) => finding !== null),
      }),
    ],
  });
  return { app, runner, checks, bulk, pool, dispatcher, webhooks, blocklist, ...administration };
};

export type Service = ReturnType<typeof composeService>;
