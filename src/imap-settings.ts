import { z } from "zod";
import type { ImapMark } from "./net/imap-session.ts";
import { type ImapUrl, parseImapUrl } from "./net/imap-url.ts";

/** The mailbox that report mail is fetched from. */
export interface ImapSettings {
  readonly url: ImapUrl;
  /** Where the secret is that is not in the URL: a file with a password, or a command that prints a token. */
  readonly passwordFile: string | null;
  readonly tokenCommand: string | null;
  readonly caFile: string | null;
  readonly after: ImapMark;
  /** The name of the account whose the reports are; null for the only one. */
  readonly account: string | null;
}

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
  context.addIssue({ code: "custom", message: "seen, move:Folder, delete or keep is needed" });
  return z.NEVER;
});

export const formatImapAfter = (mark: ImapMark): string => (mark.kind === "move" ? `move:${mark.folder}` : mark.kind);

interface Given {
  readonly IMAP_URL?: ImapUrl | undefined;
  readonly IMAP_PASSWORD_FILE?: string | undefined;
  readonly IMAP_TOKEN_COMMAND?: string | undefined;
  readonly IMAP_CA_FILE?: string | undefined;
  readonly IMAP_AFTER: ImapMark;
  readonly IMAP_ACCOUNT?: string | undefined;
}

/** Why the settings of the mailbox do not go together; null when they do. */
export const imapProblem = (given: Given): string | null => {
  const { IMAP_URL: url, IMAP_PASSWORD_FILE: file, IMAP_TOKEN_COMMAND: command } = given;
  if (url === undefined) {
    const needless = (["PASSWORD_FILE", "TOKEN_COMMAND", "CA_FILE", "ACCOUNT"] as const).find(
      (name) => given[`IMAP_${name}`] !== undefined,
    );
    return needless === undefined ? null : `POSTWARDEN_IMAP_${needless} needs POSTWARDEN_IMAP_URL: the mailbox`;
  }
  const secrets = [url.password, file, command].filter((secret) => secret !== null && secret !== undefined);
  if (secrets.length !== 1) {
    return "POSTWARDEN_IMAP_URL needs one of: a password in it, POSTWARDEN_IMAP_PASSWORD_FILE, POSTWARDEN_IMAP_TOKEN_COMMAND";
  }
  const { IMAP_AFTER: after } = given;
  const isSame = after.kind === "move" && after.folder === url.folder;
  return isSame ? "POSTWARDEN_IMAP_AFTER moves messages into the folder they are in: name another one" : null;
};

/** The mailbox, when one is set. */
export const imapSettingsOf = (given: Given): ImapSettings | null =>
  given.IMAP_URL === undefined
    ? null
    : {
        url: given.IMAP_URL,
        passwordFile: given.IMAP_PASSWORD_FILE ?? null,
        tokenCommand: given.IMAP_TOKEN_COMMAND ?? null,
        caFile: given.IMAP_CA_FILE ?? null,
        after: given.IMAP_AFTER,
        account: given.IMAP_ACCOUNT ?? null,
      };
