import { err } from "./base/errors.ts";
import type { Config } from "./config.ts";
import { isAllowedRecipient } from "./mail/recipients.ts";
import { createMailer, type Mailer } from "./net/mailer.ts";

/**
 * The way out for the service's own mail; null when none is set. Nothing goes to recipients whom `POSTWARDEN_NOTIFY_DOMAINS`
 * leaves out, whenever they were given.
 */
export const mailerOf = ({ notifyRelay: relay, notifyFrom: from, notifyDomains }: Config): Mailer | null => {
  if (relay === null || from === null) return null;
  const mailer = createMailer(relay, from);
  return async (mail) =>
    isAllowedRecipient(mail.to, notifyDomains)
      ? await mailer(mail)
      : err({ isFinal: true, problem: "The recipient is at no domain of POSTWARDEN_NOTIFY_DOMAINS." });
};
