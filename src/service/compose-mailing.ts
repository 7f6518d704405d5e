import { mailerOf } from "./compose-platform.ts";
import type { Config } from "./config.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Mailing } from "../notifications/mail/mail-batcher.ts";
import { MailSubscriptions } from "../notifications/mail/mail-subscriptions.ts";
import { SubscriptionStore } from "../notifications/mail/subscription-store.ts";

/** How alert mail leaves the service, null where it cannot, and who wants it no longer. */
export const composeMailing = (runtime: Pick<Runtime, "db" | "clock">, config: Config) => {
  const subscriptions = new MailSubscriptions(runtime, new SubscriptionStore(runtime.db));
  const mailer = mailerOf(config);
  const mailing: Mailing | null = mailer === null ? null : { mailer, baseUrl: config.baseUrl, subscriptions };
  return { subscriptions, mailing };
};
