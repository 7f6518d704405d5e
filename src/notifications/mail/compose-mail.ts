import type { Mail } from "../../foundation/net/mailer.ts";
import type { MailContent, MailLinks } from "./mail-content.ts";
import { mailPage } from "./mail-page.ts";
import { mailText } from "./mail-plain.ts";
import { oneLine } from "./mail-text.ts";

/** Makes the mail: plain text, and the same as HTML that loads nothing and reads well on a phone, light or dark. */
export const composeMail = (content: MailContent, links: MailLinks): Required<Omit<Mail, "to" | "oneClickUrl">> => {
  const subject = oneLine(content.subject);
  return { subject, text: mailText(content, links), html: mailPage({ ...content, subject }, links) };
};
