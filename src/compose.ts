import { z } from "zod";
import { Accounts } from "./accounts/accounts.ts";
import { ApiKeys, Authenticator } from "./accounts/keys.ts";
import { createAccountRoutes } from "./accounts/routes.ts";
import { AccountStore } from "./accounts/store.ts";
import type { Clock } from "./base/clock.ts";
import { createTokenBuckets } from "./base/limits.ts";
import type { Log } from "./base/log.ts";
import { FREE_OF_CHARGE, Ledger } from "./billing/store.ts";
import { createOverviewRoutes } from "./blocklist/overview-routes.ts";
import { createBlocklistRoutes } from "./blocklist/routes.ts";
import { BulkJobs } from "./bulk/jobs.ts";
import { createBulkRoutes } from "./bulk/routes.ts";
import { composeBulk, uploadsFolderOf } from "./compose-bulk.ts";
import { composeBlocklist } from "./compose-blocklist.ts";
import { composeDmarc } from "./compose-dmarc.ts";
import { composeEngine, type Platform } from "./compose-engine.ts";
import { mailerOf } from "./compose-mail.ts";
import type { Config } from "./config.ts";
import { IdempotencyStore } from "./db/idempotency.ts";
import type { Db } from "./db/open.ts";
import type { Runtime } from "./db/runtime.ts";
import { createGuard } from "./http/guard.ts";
import { createBudgets } from "./http/request-memory.ts";
import type { DnsResolver } from "./net/dns.ts";
import { createUrlPolicy } from "./net/fetch-url.ts";
import { createPoster } from "./net/fetch.ts";
import { Notifications } from "./notifications/notifications.ts";
import { createNotificationsRoutes } from "./notifications/routes.ts";
import { NotificationsStore, type NotificationsOwner } from "./notifications/store.ts";
import { createServer } from "./server.ts";
import { createServiceRoutes } from "./service-routes.ts";
import { SuppressionStore } from "./suppress/store.ts";
import { Suppressions } from "./suppress/suppressions.ts";
import { Checks } from "./verify/checks.ts";
import { createVerifyRoutes } from "./verify/routes.ts";
import { Runner } from "./verify/runner.ts";
import { VerificationStore } from "./verify/store.ts";
import { VERSION } from "./version.ts";
import { Dispatcher } from "./webhooks/dispatcher.ts";
import { EventStore } from "./webhooks/event-store.ts";
import { createWebhookRoutes } from "./webhooks/routes.ts";
import { WebhookSecrets } from "./webhooks/secret-store.ts";
import { createSender } from "./webhooks/send.ts";
import { DeliveryStore } from "./webhooks/delivery-store.ts";
import { WebhookUrls } from "./webhooks/webhook-urls.ts";
import { Webhooks } from "./webhooks/webhooks.ts";

/** The operator's list of what is not to be mailed. */
export const composeSuppressions = (db: Db, clock: Clock) => new Suppressions({ db, clock }, new SuppressionStore(db));

/** Accounts, keys and credits: what the administration on the command line needs. */
export const composeAccounts = (db: Db, clock: Clock) => {
  const store = new AccountStore(db);
  const ledger = new Ledger(db);
  return {
    snapshot: db.snapshot,
    store,
    ledger,
    accounts: new Accounts({ db, clock }, { store, ledger }),
    keys: new ApiKeys({ db, clock }, store),
    authenticate: new Authenticator({ db, clock }, store).authenticate,
  };
};

/** The `data` of the documented example of a type of event: loaded when somebody asks for it, as the whole document is. */
const exampleOf = async (type: string): Promise<object> => {
  const { EVENT_DOCS } = await import("./interface-document.ts");
  return z.looseObject({}).parse(EVENT_DOCS.find((event) => event.type === type)?.example);
};

/** Webhooks of the whole product: what sends them, and what users do with them. */
export const composeWebhooks = (runtime: Runtime, config: Config, { resolver }: Platform) => {
  const { db, clock } = runtime;
  const store = new DeliveryStore(db);
  const events = new EventStore(db);
  const defaults = new NotificationsStore(db);
  const secrets = new WebhookSecrets(runtime);
  const rules = createUrlPolicy(config.webhookAllowNetworks);
  const send = createSender({
    post: createPoster({ resolver, rules, clock }),
    clock,
    userAgent: `Postwarden/${VERSION}`,
    baseUrl: config.baseUrl,
  });
  const dispatcher = new Dispatcher(runtime, {
    ...{ store, events, secrets, send },
    defaultUrl: (owner) => defaults.findDefaults(owner).webhookUrl,
  });
  const webhooks = new Webhooks(runtime, { store, events, secrets, dispatcher, send, exampleOf });
  const urls = new WebhookUrls(runtime, rules);
  const mail = { hasMail: mailerOf(config) !== null, recipientDomains: config.notifyDomains };
  const notifications = new Notifications(runtime, { store: defaults, urls, ...mail });
  return { rules, dispatcher, webhooks, notifications, defaults, urls };
};

export interface ServiceDeps {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  /** A resolver that keeps nothing, where it is another than the platform's: for blocklists and DMARC records. */
  readonly freshResolver?: DnsResolver;
  readonly baseUrl: string;
}

/** The whole service, not yet listening. */
export const composeService = ({ config, db, log, platform, freshResolver: given, baseUrl }: ServiceDeps) => {
  const { clock, random } = platform;
  const runtime = { db, clock, log, random };
  const freshResolver = given ?? platform.resolver;
  const { match } = composeSuppressions(db, clock);
  const { engines, pool, outages } = composeEngine(config, platform, match, { log, fresh: freshResolver });
  const administration = composeAccounts(db, clock);
  const { ledger, authenticate } = administration;
  const store = new VerificationStore(db);
  const credits = { live: ledger, test: FREE_OF_CHARGE };
  const runner = new Runner(runtime, { store, engines, credits });
  const idempotency = new IdempotencyStore(runtime);
  const checks = new Checks(runtime, { store, idempotency, engines, credits, runner });
  const { rules, dispatcher, webhooks, notifications, defaults, urls } = composeWebhooks(runtime, config, platform);
  const defaultRecipients = (owner: NotificationsOwner) => defaults.findDefaults(owner).recipients;
  const keyName = (id: string): string => administration.store.findKey(id)?.name ?? id;
  const blocklist = composeBlocklist({
    config,
    db,
    log,
    ...{ urls, notifications: defaults },
    platform: { ...platform, resolver: freshResolver },
  });
  const bulkParts = composeBulk({ runtime, config, ledger, engines, outages, checks: runner });
  const bulk = new BulkJobs(runtime, {
    ...{ ...bulkParts, engines, ledger, idempotency, urls },
    uploadsFolder: uploadsFolderOf(config),
  });
  const budgets = createBudgets(clock);
  const guard = createGuard({ authenticate, buckets: createTokenBuckets(clock), budgets });
  const { routes: dmarcRoutes, ...dmarc } = composeDmarc({
    ...{
      config,
      db,
      log,
      platform,
      freshResolver,
      baseUrl,
      guard,
      rules,
      urls,
      defaultRecipients,
    },
  });
  const description = "Verifies email addresses, watches DNS blocklists, reads DMARC reports; and shows the evidence.";
  const app = createServer({
    log,
    clock,
    trustedProxies: config.trustedProxies,
    routes: [
      createVerifyRoutes({ guard, checks, runner, clock }),
      createBulkRoutes({ guard, bulk, lists: bulkParts.lists }),
      createAccountRoutes(guard, { store: administration.store, ledger }),
      createBlocklistRoutes({ ...{ guard, rules, clock, ...blocklist }, keyName }),
      createOverviewRoutes({ guard, rules, clock, ...blocklist }),
      ...dmarcRoutes,
      createWebhookRoutes({ guard, webhooks, rules }),
      createNotificationsRoutes({ guard, notifications, rules }),
      createServiceRoutes(
        { db, clock },
        {
          guard,
          describe: async () => {
            const { interfaceDocument } = await import("./interface-document.ts");
            return interfaceDocument({ version: VERSION, baseUrl, description });
          },
          blockers: () => outages.findings(),
          findings: () => [...dmarc.findings(), ...blocklist.usability.findings()],
        },
      ),
    ],
  });
  return {
    app,
    runner,
    checks,
    idempotency,
    bulk,
    pool,
    outages,
    dispatcher,
    webhooks,
    blocklist,
    dmarc,
    ...administration,
  };
};

export type Service = ReturnType<typeof composeService>;
