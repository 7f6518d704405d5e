import { AppError } from "../../../foundation/base/errors.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../../../foundation/mail/recipients.ts";
import type { DomainPlatform } from "./domain-platform.ts";

/** A field of a request that is refused, with the reason. */
export const domainIssue = (
  path: string,
  message: string,
  code: "Invalid request body" | "Invalid query" = "Invalid request body",
) => new AppError(code, { issues: [{ path, message }] });

/** The host that reports are sent to. Throws `conflict` when the service receives none. */
export const reportHostOrThrow = ({ reportHost }: Pick<DomainPlatform, "reportHost">): string => {
  if (reportHost !== null) return reportHost;
  throw new AppError("conflict", {
    message:
      "This service receives no reports: POSTWARDEN_REPORT_HOST is not set, nor the address of a mailbox (POSTWARDEN_IMAP_ADDRESS).",
  });
};

/** What mail to recipients depends on. */
export interface MailSettings {
  /** Whether the service can send mail. */
  readonly hasMail: boolean;
  readonly recipientDomains: RecipientDomains;
}

/** Throws when a setting requires mail, and the service cannot send any. */
export const refuseWithoutMail = (
  { hasMail }: Pick<MailSettings, "hasMail">,
  path: "recipients" | "digest",
  isRequested: boolean,
): void => {
  if (isRequested && !hasMail) throw domainIssue(path, NO_MAIL_PROBLEM);
};

/** Throws when mail cannot be sent, or not to these addresses. */
export const refuseRecipients = (settings: MailSettings, recipients: readonly string[]): void => {
  refuseWithoutMail(settings, "recipients", recipients.length > 0);
  const problem = recipientsProblem(recipients, settings.recipientDomains);
  if (problem !== null) throw domainIssue("recipients", problem);
};
