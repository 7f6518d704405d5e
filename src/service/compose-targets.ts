import type { Log } from "../foundation/base/log.ts";
import type { TargetRow } from "../blocklist/store.ts";
import { composeBlocklist } from "./compose-blocklist.ts";
import { composeMailing } from "./compose-mailing.ts";
import type { Platform } from "./compose-platform.ts";
import type { Config } from "./config.ts";
import type { Db } from "../foundation/db/open.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { NotificationsStore } from "../notifications/settings/store.ts";
import { WebhookUrls } from "../notifications/webhooks/webhook-urls.ts";

/** Targets and their checks without the service, for the command line. The service that uses the same database sends the events. */
export const composeTargets = (given: {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
}) => {
  const policy = createUrlPolicy(given.config.webhookAllowNetworks);
  const urls = new WebhookUrls({ db: given.db, clock: given.platform.clock }, policy);
  const { targets, monitor, rangeChecks, discovery } = composeBlocklist({
    ...given,
    urls,
    notifications: new NotificationsStore(given.db),
    mailing: composeMailing({ db: given.db, clock: given.platform.clock }, given.config).mailing,
  });
  return {
    targets,
    discovery,
    /** Checks a target and returns its new state; null when it was removed meanwhile. */
    async check(target: TargetRow): Promise<TargetRow | null> {
      const running = target.members === null ? monitor.checkOnDemand(target) : rangeChecks.check(target);
      return (await running.done)?.target ?? null;
    },
  };
};
