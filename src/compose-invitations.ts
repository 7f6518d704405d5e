import type { Log } from "./base/log.ts";
import { mailerOf } from "./compose-platform.ts";
import type { Config } from "./config.ts";
import type { Invitation } from "./dashboard/users/pages.tsx";
import { composeMail } from "./notify/compose-mail.ts";
import { line } from "./notify/mail-content.ts";
import { minuteTime } from "./notify/mail-text.ts";

/** Mails one-time links to users; null where the service sends no mail. */
export const composeInvitations = (config: Config, log: Log): ((invitation: Invitation) => Promise<boolean>) | null => {
  const mailer = mailerOf(config);
  if (mailer === null) return null;
  return async ({ email, account, path, expiresAtMs }) => {
    const content = {
      subject: `Your sign-in to ${account} on Postwarden`,
      sections: [
        {
          heading: `Choose a password for the account ${account}`,
          blocks: [
            { kind: "page", text: "Choose a password", path, place: "Sign-in" } as const,
            line(`The link works once, until ${minuteTime(expiresAtMs)}.`, "muted"),
          ],
        },
      ],
      closing: ["You receive this mail because an owner of the account has added you or reset your sign-in."],
    };
    const sent = await mailer({ to: email, ...composeMail(content, { baseUrl: config.baseUrl, off: null }) });
    // The problem never contains the mail.
    if (!sent.ok) log.warn("one-time link not mailed", { problem: sent.error.problem });
    return sent.ok;
  };
};
