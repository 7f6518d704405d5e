import { z } from "zod";
import { composeMailing } from "./compose-mailing.ts";
import type { Platform } from "./compose-platform.ts";
import type { Config } from "./config.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { createPoster } from "../foundation/net/fetch.ts";
import { Notifications } from "../notifications/settings/notifications.ts";
import { NotificationsStore } from "../notifications/settings/store.ts";
import { VERSION } from "./version.ts";
import { Dispatcher } from "../notifications/webhooks/dispatcher.ts";
import { EventStore } from "../notifications/webhooks/event-store.ts";
import { WebhookSecrets } from "../notifications/webhooks/secret-store.ts";
import { createSender } from "../notifications/webhooks/send.ts";
import { DeliveryStore } from "../notifications/webhooks/delivery-store.ts";
import { WebhookUrls } from "../notifications/webhooks/webhook-urls.ts";
import { Webhooks } from "../notifications/webhooks/webhooks.ts";

/** The `data` of the documented example of an event type; the document is loaded when it is first needed. */
const exampleOf = async (type: string): Promise<object> => {
  const { EVENT_DOCS } = await import("./interface-document.ts");
  return z.looseObject({}).parse(EVENT_DOCS.find((event) => event.type === type)?.example);
};

/** Webhooks: their delivery, and the notification defaults of accounts. */
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
  const { mailing, subscriptions } = composeMailing(runtime, config);
  const notifications = new Notifications(runtime, {
    ...{ store: defaults, urls, subscriptions },
    ...{ hasMail: mailing !== null, recipientDomains: config.notifyDomains },
  });
  return { rules, dispatcher, webhooks, notifications, defaults, urls, mailing, subscriptions };
};
