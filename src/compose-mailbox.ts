import { readFileSync } from "node:fs";
import { AccountStore } from "./accounts/store.ts";
import type { Clock } from "./base/clock.ts";
import { err, ok, type Result } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import type { Random } from "./base/secrets.ts";
import type { Db } from "./db/open.ts";
import { MailboxFetcher } from "./dmarc/mailbox/mailbox-fetcher.ts";
import { createMailboxSync, type MailboxSyncDeps } from "./dmarc/mailbox/mailbox-sync.ts";
import { createMarkProcessed } from "./dmarc/mailbox/mark-processed.ts";
import { createMailboxStore } from "./dmarc/mailbox/mailbox-store.ts";
import { runTokenCommand } from "./net/access-token.ts";
import { ImapFailure } from "./net/imap-failure.ts";
import type { ImapLogin } from "./net/imap-client.ts";
import { openImapSession } from "./net/imap-session.ts";
import { formatImapUrl } from "./net/imap-url.ts";
import type { ImapSettings } from "./imap-settings.ts";

const SECRET_CHARACTERS_MAX = 1_024;

/** The text of a file; what keeps it from being read is for the operator. */
const textOf = (path: string): string => {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ImapFailure("settings", `${path} cannot be read: ${error instanceof Error ? error.message : error}.`);
  }
};

const secretOf = async (settings: ImapSettings, clock: Clock): Promise<ImapLogin["secret"]> => {
  const { url, passwordFile, tokenCommand } = settings;
  if (tokenCommand !== null) {
    const token = await runTokenCommand(tokenCommand, clock);
    if (!token.ok) throw new ImapFailure("settings", token.error);
    return { kind: "token", value: token.value };
  }
  const value = passwordFile === null ? (url.password ?? "") : textOf(passwordFile).replace(/\r?\n$/, "");
  if (value !== "" && value.length <= SECRET_CHARACTERS_MAX && !/\p{Cc}/u.test(value))
    return { kind: "password", value };
  throw new ImapFailure("settings", `${passwordFile ?? "POSTWARDEN_IMAP_URL"} does not hold a password on one line.`);
};

/** With what to log in now: files are read and the command is run at each login, so that secrets may change. */
export const imapLoginOf = async (settings: ImapSettings, clock: Clock): Promise<ImapLogin> => ({
  url: settings.url,
  secret: await secretOf(settings, clock),
  ca: settings.caFile === null ? null : textOf(settings.caFile),
});

/** The account whose the reports of the mailbox are: the one that is named, or the only one. The error is a sentence. */
export const mailboxAccount = (db: Db, name: string | null): Result<string, string> => {
  const store = new AccountStore(db);
  if (name !== null) {
    const account = store.findAccountByName(name);
    if (account !== undefined) return ok(account.id);
    return err(`There is no account "${name}" (POSTWARDEN_IMAP_ACCOUNT). \`postwarden accounts list\` shows all.`);
  }
  const [only, another] = store.listAccounts();
  if (only === undefined) return err("There is no account yet. Create one: `postwarden accounts create NAME`.");
  return another === undefined
    ? ok(only.id)
    : err("There are several accounts. Set POSTWARDEN_IMAP_ACCOUNT to the name of one.");
};

/** The name that the state of a mailbox is kept under. A new port or way of logging in does not make it another. */
export const mailboxNameOf = ({ url: { user, host, folder } }: ImapSettings): string =>
  JSON.stringify([user, host, folder]);

export interface MailboxParts extends Pick<MailboxSyncDeps, "intake" | "ingester" | "reserve"> {
  readonly db: Db;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** What fetches report mail from a mailbox; null when none is set. */
export const composeMailbox = (settings: ImapSettings | null, parts: MailboxParts): MailboxFetcher | null => {
  if (settings === null) return null;
  const { db, clock, random, log } = parts;
  const { after } = settings;
  const store = createMailboxStore(db);
  const settle = createMarkProcessed({ db, store, log, after, noteRefusal: (refusal) => mailbox.noteRefusal(refusal) });
  const pass = createMailboxSync({ ...parts, store, settle, mailbox: mailboxNameOf(settings) });
  const mailbox = new MailboxFetcher({
    ...{ pass, clock, random, log },
    name: formatImapUrl(settings.url),
    accountId: () => mailboxAccount(db, settings.account),
    async open() {
      const session = await openImapSession(await imapLoginOf(settings, clock), { clock });
      if (after.kind === "move") await session.ensureFolder(after.folder);
      return session;
    },
  });
  return mailbox;
};
