import type { GuessedCodes } from "../../accounts/guessed-codes.ts";
import type { CodesGuessedListener } from "../../accounts/sessions.ts";
import { WRONG_CODES_MAX } from "../../accounts/second-factor.ts";
import type { Log } from "../../foundation/base/log.ts";
import type { Invitation } from "./pages.tsx";
import { composeMail } from "../../notifications/mail/compose-mail.ts";
import type { Mailer } from "../../foundation/net/mailer.ts";
import { action, line, type MailLinks, minuteTime } from "../../notifications/mail/mail-content.ts";

/** How mail about users leaves the service. */
export interface UserMailDeps extends Pick<MailLinks, "baseUrl" | "brandName"> {
  /** Null where the service sends no mail. */
  readonly mailer: Mailer | null;
  readonly log: Log;
}

/** Mails one-time links to users; null where the service sends no mail. */
export const createInvitationMail = ({
  mailer,
  log,
  ...links
}: UserMailDeps): ((invitation: Invitation) => Promise<boolean>) | null => {
  if (mailer === null) return null;
  return async ({ email, account, path, expiresAtMs }) => {
    const content = {
      subject: `Your sign-in to ${account} on ${links.brandName}`,
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
    const sent = await mailer({ to: email, ...composeMail(content, { ...links, off: null }) });
    // The problem never contains the mail.
    if (!sent.ok) log.warn("one-time link not mailed", { problem: sent.error.problem });
    return sent.ok;
  };
};

/** Mails a user that mail works, and returns null or why it was not sent; null where the service sends no mail. */
export const createTestMail = ({
  mailer,
  baseUrl,
  brandName,
}: Omit<UserMailDeps, "log">): ((email: string) => Promise<string | null>) | null => {
  if (mailer === null) return null;
  return async (email) => {
    const content = {
      subject: `Test mail from ${brandName}`,
      sections: [
        {
          heading: `Mail from ${brandName} reaches you`,
          blocks: [
            line("Alerts, digests and invitations come from the same sender by the same relay."),
            {
              kind: "page",
              text: "Choose who receives alerts",
              path: "/settings/notifications",
              place: "Notifications",
            },
          ],
        },
      ],
      closing: ["You receive this mail because you have pressed the button for it in the dashboard."],
    } as const;
    const sent = await mailer({ to: email, ...composeMail(content, { baseUrl, brandName, off: null }) });
    return sent.ok ? null : sent.error.problem;
  };
};

/** Mails the user and the owners that codes are guessed, with every doubling of the number; nobody where the service sends no mail. */
export const createCodeAlerts = (
  { mailer, log, ...links }: UserMailDeps,
  guessed: Pick<GuessedCodes, "recipients">,
): CodesGuessedListener => {
  if (mailer === null) return () => undefined;
  return (user, { count }) => {
    if (!Number.isInteger(Math.log2(count / WRONG_CODES_MAX))) return;
    const content = {
      subject: `${count} wrong codes at the sign-in of ${user.email}`,
      sections: [
        {
          heading: `Somebody signed in as ${user.email} with the right password and entered ${count} wrong codes`,
          blocks: [
            line("Codes of the app have to wait now, up to an hour. Recovery codes are accepted at any time."),
            action("If it was not you, somebody knows the password. Change it, or ask an owner for a new link."),
            { kind: "page", text: "Profile", path: "/settings/profile", place: "Settings › Profile" } as const,
          ],
        },
      ],
      closing: ["You receive this mail because it is about your user, or because you are an owner of the account."],
    };
    const mail = composeMail(content, { ...links, off: null });
    for (const to of guessed.recipients(user)) {
      // Not awaited: the response of a guesser waits for no relay. The audit log and the home page have it in any case.
      void mailer({ to, ...mail })
        .then((sent) => (sent.ok ? null : sent.error.problem), String)
        .then((problem) => {
          if (problem !== null) log.warn("mail about wrong codes not sent", { problem });
        });
    }
  };
};
