import { z } from "zod";
import { parseAddress } from "../foundation/mail/address.ts";
import type { ImapMark } from "../foundation/net/imap-session.ts";
import { type ImapUrl, parseImapUrl } from "../foundation/net/imap-client.ts";
import type { ImapSettings } from "../dmarc/reports/mailbox/open.ts";

/** Characters that a `mailto:` URI and a DMARC record can hold as they are (RFC 9990 §3, RFC 6068 §2). */
const ADDRESS_FORM = /^[a-z0-9][a-z0-9._+-]*@/;

/** An address in lower case that can stand in a DMARC record; null for anything else. */
const reportingAddress = (text: string): string | null => {
  const parsed = parseAddress(text);
  return parsed.ok && ADDRESS_FORM.test(parsed.value.normalized) ? parsed.value.normalized : null;
};

/** The address of the mailbox. */
export const imapAddress = z.string().transform((text, context): string => {
  const address = reportingAddress(text.trim());
  if (address !== null) return address;
  context.addIssue({
    code: "custom",
    message: `${JSON.stringify(text)} is not an address such as dmarc@example.com, of letters, digits and . _ + - before the @`,
  });
  return z.NEVER;
});

/** As `parseImapUrl` reads it. */
export const imapUrl = z.string().transform((text, context): ImapUrl => {
  const parsed = parseImapUrl(text.trim());
  if (parsed.ok) return parsed.value;
  context.addIssue({ code: "custom", message: parsed.error });
  return z.NEVER;
});

/** `seen`, `delete`, `keep`, or `move:Folder`. */
export const imapAfter = z.string().transform((text, context): ImapMark => {
  const folder = /^move:(?<folder>[^\p{Cc}]{1,255})$/u.exec(text)?.groups?.folder;
  if (folder !== undefined) return { kind: "move", folder };
  if (text === "seen" || text === "delete" || text === "keep") return { kind: text };
  context.addIssue({
    code: "custom",
    message: `${JSON.stringify(text)} is not one of seen, move:Folder, delete, keep`,
  });
  return z.NEVER;
});

export const formatImapAfter = (mark: ImapMark): string => (mark.kind === "move" ? `move:${mark.folder}` : mark.kind);

interface MailboxValues {
  readonly imapUrl: ImapUrl | null;
  readonly imapPasswordFile: string | null;
  readonly imapTokenCommand: string | null;
  readonly imapCaFile: string | null;
  readonly imapAfter: ImapMark;
  readonly imapAccount: string | null;
  readonly imapAddress: string | null;
}

/** Why the settings of the mailbox do not fit together; null when they do. */
export const imapProblem = (values: MailboxValues): string | null => {
  const {
    imapUrl: url,
    imapPasswordFile,
    imapTokenCommand,
    imapCaFile,
    imapAfter: after,
    imapAccount,
    imapAddress: address,
  } = values;
  if (url === null) {
    const given = {
      PASSWORD_FILE: imapPasswordFile,
      TOKEN_COMMAND: imapTokenCommand,
      CA_FILE: imapCaFile,
      ACCOUNT: imapAccount,
      ADDRESS: address,
    };
    const [name] = Object.entries(given).find(([, value]) => value !== null) ?? [];
    return name === undefined ? null : `POSTWARDEN_IMAP_${name} requires POSTWARDEN_IMAP_URL.`;
  }
  const secrets = [url.password, imapPasswordFile, imapTokenCommand].filter((secret) => secret !== null);
  if (secrets.length !== 1)
    return "POSTWARDEN_IMAP_URL needs exactly one of: a password in it, POSTWARDEN_IMAP_PASSWORD_FILE, POSTWARDEN_IMAP_TOKEN_COMMAND.";
  return after.kind === "move" && after.folder === url.folder
    ? "POSTWARDEN_IMAP_AFTER moves messages into the folder they are in. Name another folder."
    : null;
};

/** The mailbox; null when none is set. */
export const imapSettingsOf = (values: MailboxValues): ImapSettings | null =>
  values.imapUrl === null
    ? null
    : {
        url: values.imapUrl,
        passwordFile: values.imapPasswordFile,
        tokenCommand: values.imapTokenCommand,
        caFile: values.imapCaFile,
        after: values.imapAfter,
        account: values.imapAccount,
        address: values.imapAddress ?? reportingAddress(values.imapUrl.user),
      };
