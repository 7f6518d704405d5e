import { z } from "zod";
import { parseAddress } from "../foundation/mail/address.ts";
import type { ImapMark } from "../foundation/net/imap-session.ts";
import { formatImapUrl, type ImapUrl, parseImapUrl } from "../foundation/net/imap-client.ts";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import { parseDomain } from "../foundation/mail/domain.ts";
import type { MailboxSettings } from "../foundation/mailbox/mailbox-fetcher.ts";
import type { ReportMailboxSettings } from "../dmarc/reports/mailbox/report-mailbox.ts";
import type { BounceMailboxSettings } from "../verify/bounces/mailbox/bounce-mailbox.ts";
import { formattedSetting, optional, PREFIX, setting } from "./setting.ts";

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

/** Every bounce is believed. */
const ANYONE = "anyone";

/** A domain in the `d=` of signatures, or `anyone`. */
export const bounceSigner = (item: string): Result<string, string> => {
  if (item.toLowerCase() === ANYONE) return ok(ANYONE);
  const domain = parseDomain(item);
  return domain.ok ? ok(domain.value.ascii) : err(`is neither a domain such as example.com nor ${ANYONE}`);
};

/** As `parseImapUrl` reads it. */
const imapUrl = z.string().transform((text, context): ImapUrl => {
  const parsed = parseImapUrl(text.trim());
  if (parsed.ok) return parsed.value;
  context.addIssue({ code: "custom", message: parsed.error });
  return z.NEVER;
});

/** `seen`, `delete`, `keep`, or `move:Folder`. */
const imapAfter = z.string().transform((text, context): ImapMark => {
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

const text = z.string().min(1);

/** The settings that each mailbox has. `prefix`: the beginning of their names; `mail` and `contents`: what is fetched, and what is in it. */
export const mailboxSettings = (prefix: string, { mail, contents }: { mail: string; contents: string }) => ({
  url: formattedSetting(
    `${prefix}URL`,
    `Mailbox of ${mail}: \`imaps://user:password@host:port/Folder\`, or \`imap://\` with STARTTLS.`,
    optional(imapUrl),
    (url) => url && formatImapUrl(url),
  ),
  passwordFile: setting(
    `${prefix}PASSWORD_FILE`,
    "File with the password, instead of a password in the URL.",
    optional(text),
  ),
  tokenCommand: formattedSetting(
    `${prefix}TOKEN_COMMAND`,
    "Command that prints an OAuth 2.0 access token, instead of a password in the URL.",
    optional(text),
    (command) => command && "(set)",
  ),
  caFile: setting(
    `${prefix}CA_FILE`,
    "PEM file of the certificate authority of the mailbox.",
    optional(text),
    "that of the system",
  ),
  after: formattedSetting(
    `${prefix}AFTER`,
    "What to do with a stored message: `seen`, `move:Folder`, `delete`, `keep`.",
    imapAfter.prefault("seen"),
    formatImapAfter,
  ),
  account: setting(
    `${prefix}ACCOUNT`,
    `Account that owns the ${contents} of the mailbox.`,
    optional(text),
    "the only account",
  ),
});

interface MailboxValues extends Omit<MailboxSettings, "setting" | "url"> {
  readonly url: ImapUrl | null;
}

const REPORTS = "IMAP_";
const BOUNCES = "BOUNCE_IMAP_";

interface ReportMailboxValues {
  readonly imapUrl: ImapUrl | null;
  readonly imapPasswordFile: string | null;
  readonly imapTokenCommand: string | null;
  readonly imapCaFile: string | null;
  readonly imapAfter: ImapMark;
  readonly imapAccount: string | null;
  readonly imapAddress: string | null;
}

interface BounceMailboxValues {
  readonly bounceImapUrl: ImapUrl | null;
  readonly bounceImapPasswordFile: string | null;
  readonly bounceImapTokenCommand: string | null;
  readonly bounceImapCaFile: string | null;
  readonly bounceImapAfter: ImapMark;
  readonly bounceImapAccount: string | null;
  readonly bounceImapSignedBy: readonly string[];
}

const ofReports = (values: ReportMailboxValues): MailboxValues => ({
  url: values.imapUrl,
  passwordFile: values.imapPasswordFile,
  tokenCommand: values.imapTokenCommand,
  caFile: values.imapCaFile,
  after: values.imapAfter,
  account: values.imapAccount,
});

const ofBounces = (values: BounceMailboxValues): MailboxValues => ({
  url: values.bounceImapUrl,
  passwordFile: values.bounceImapPasswordFile,
  tokenCommand: values.bounceImapTokenCommand,
  caFile: values.bounceImapCaFile,
  after: values.bounceImapAfter,
  account: values.bounceImapAccount,
});

/** Why the settings of a mailbox do not fit together; null when they do. `others`: its further settings, null where not set. */
const mailboxProblem = (
  prefix: string,
  { url, passwordFile, tokenCommand, caFile, after, account }: MailboxValues,
  others: Readonly<Record<string, string | null>>,
): string | null => {
  const name = `${PREFIX}${prefix}`;
  if (url === null) {
    const given = { PASSWORD_FILE: passwordFile, TOKEN_COMMAND: tokenCommand, CA_FILE: caFile, ACCOUNT: account };
    const [set] = Object.entries({ ...given, ...others }).find(([, value]) => value !== null) ?? [];
    return set === undefined ? null : `${name}${set} requires ${name}URL.`;
  }
  const secrets = [url.password, passwordFile, tokenCommand].filter((secret) => secret !== null);
  if (secrets.length !== 1)
    return `${name}URL needs exactly one of: a password in it, ${name}PASSWORD_FILE, ${name}TOKEN_COMMAND.`;
  return after.kind === "move" && after.folder === url.folder
    ? `${name}AFTER moves messages into the folder they are in. Name another folder.`
    : null;
};

/** Why the settings of the mailboxes do not fit together. */
export const mailboxProblems = (values: ReportMailboxValues & BounceMailboxValues): readonly string[] => {
  const { imapAddress: ADDRESS, bounceImapUrl, bounceImapSignedBy: signers } = values;
  const name = `${PREFIX}${BOUNCES}`;
  const signed = {
    SIGNED_BY: signers.length === 0 ? null : signers.join(),
  };
  return [
    mailboxProblem(REPORTS, ofReports(values), { ADDRESS }),
    mailboxProblem(BOUNCES, ofBounces(values), signed),
    bounceImapUrl !== null && signers.length === 0
      ? `${name}URL requires ${name}SIGNED_BY: the domains whose DKIM signatures your mail has.`
      : null,
    signers.length > 1 && signers.includes(ANYONE) ? `${name}SIGNED_BY is either domains or ${ANYONE}.` : null,
  ].filter((problem) => problem !== null);
};

/** The mailbox of reports; null when none is set. */
export const reportMailboxOf = (values: ReportMailboxValues): ReportMailboxSettings | null => {
  const { url, ...rest } = ofReports(values);
  if (url === null) return null;
  const address = values.imapAddress ?? reportingAddress(url.user);
  return { ...rest, setting: `${PREFIX}${REPORTS}URL`, url, address };
};

/** The mailbox of bounces; null when none is set. */
export const bounceMailboxOf = (values: BounceMailboxValues): BounceMailboxSettings | null => {
  const { url, ...rest } = ofBounces(values);
  const { bounceImapSignedBy: signers } = values;
  if (url === null) return null;
  return { ...rest, setting: `${PREFIX}${BOUNCES}URL`, url, signedBy: signers.includes(ANYONE) ? null : signers };
};
