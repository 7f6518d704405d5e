import type { Runtime, DbClock } from "../foundation/db/runtime.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import { createPoster, createUrlPolicy, type UrlPolicy } from "../foundation/net/fetch-url.ts";
import type { Mailer } from "../foundation/net/mailer.ts";
import type { Mailing } from "./mail/mail-batcher.ts";
import { MailSubscriptions, SubscriptionStore } from "./mail/subscription-store.ts";
import { Notifications, NotificationsStore } from "./settings/store.ts";
import { MaintenanceWindows } from "./windows/windows.ts";
import { DeliveryStore } from "./webhooks/delivery-store.ts";
import { Dispatcher } from "./webhooks/dispatcher.ts";
import { EventStore } from "./webhooks/event-store.ts";
import { WebhookSecrets } from "./webhooks/secret-store.ts";
import { createSender, type LoadEventDocs } from "./webhooks/send.ts";
import { WebhookUrls } from "./webhooks/url-store.ts";
import { Webhooks } from "./webhooks/webhooks.ts";

export interface OutboundSettings {
  readonly webhookAllowNetworks: readonly string[];
  /** The URL as set; null: mail has no links to pages. */
  readonly baseUrl: string | null;
  /** What mail calls the service. */
  readonly brandName: string;
}

/** What leaves the service for anybody: which URLs are allowed, how alert mail is sent, and where accounts want it. */
export class Outbound {
  readonly rules: UrlPolicy;
  readonly urls: WebhookUrls;
  readonly defaults: NotificationsStore;
  readonly subscriptions: MailSubscriptions;
  readonly windows: MaintenanceWindows;
  /** Null where the service sends no mail. */
  readonly mailing: Mailing | null;

  constructor(
    runtime: DbClock,
    { webhookAllowNetworks, baseUrl, brandName }: OutboundSettings,
    { mailer }: { mailer: Mailer | null },
  ) {
    this.rules = createUrlPolicy(webhookAllowNetworks);
    this.urls = new WebhookUrls(runtime, this.rules);
    this.defaults = new NotificationsStore(runtime.db);
    this.subscriptions = new MailSubscriptions(runtime, new SubscriptionStore(runtime.db));
    this.windows = new MaintenanceWindows(runtime);
    const { subscriptions, windows } = this;
    this.mailing = mailer === null ? null : { mailer, baseUrl, brandName, subscriptions, windows };
  }
}

export interface NotificationsSettings extends OutboundSettings {
  /** Domains that mail may be sent to; none: any. */
  readonly notifyDomains: readonly string[];
}

/** Webhooks and their delivery, and the notification defaults of accounts. */
export class NotificationsSlice {
  readonly outbound: Outbound;
  readonly dispatcher: Dispatcher;
  readonly webhooks: Webhooks;
  readonly settings: Notifications;

  constructor(
    runtime: Runtime,
    settings: NotificationsSettings,
    {
      resolver,
      userAgent,
      loadDocs,
      mailer,
    }: {
      mailer: Mailer | null;
      resolver: DnsResolver;
      userAgent: string;
      loadDocs: LoadEventDocs;
    },
  ) {
    const { db, clock } = runtime;
    this.outbound = new Outbound(runtime, settings, { mailer });
    const { rules, urls, defaults, subscriptions, windows, mailing } = this.outbound;
    const [store, events, secrets] = [new DeliveryStore(db), new EventStore(db), new WebhookSecrets(runtime)];
    const post = createPoster({ resolver, rules, clock });
    const send = createSender({ post, clock, userAgent, baseUrl: settings.baseUrl, loadDocs });
    this.dispatcher = new Dispatcher(runtime, {
      store,
      events,
      secrets,
      send,
      defaults,
      windows,
      loadDocs,
    });
    this.webhooks = new Webhooks(runtime, { store, events, secrets, dispatcher: this.dispatcher, send, loadDocs });
    this.settings = new Notifications(runtime, {
      store: defaults,
      urls,
      subscriptions,
      hasMail: mailing !== null,
      recipientDomains: settings.notifyDomains,
    });
  }
}
