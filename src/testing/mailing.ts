import type { Runtime } from "../foundation/db/runtime.ts";
import type { Mailer } from "../foundation/net/mailer.ts";
import type { Mailing } from "../notifications/mail/mail-batcher.ts";
import { MaintenanceWindows } from "../notifications/windows/windows.ts";
import { MailSubscriptions, SubscriptionStore } from "../notifications/mail/subscription-store.ts";

export const MAIL_BASE_URL = "https://verify.example.org";
/** What a mail without a subscription links to. */
export const MAIL_LINKS = { baseUrl: MAIL_BASE_URL, brandName: "Postwarden", off: null };

/** Mail to a fake relay, with links to `MAIL_BASE_URL`. */
export const createTestMailing = (runtime: Pick<Runtime, "db" | "clock">, mailer: Mailer) =>
  ({
    ...{ mailer, baseUrl: MAIL_BASE_URL, brandName: "Postwarden" },
    windows: new MaintenanceWindows(runtime),
    subscriptions: new MailSubscriptions(runtime, new SubscriptionStore(runtime.db)),
  }) satisfies Mailing;
