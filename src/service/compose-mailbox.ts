import { readFileSync } from "node:fs";
import { describeUnknownAccount, NO_ACCOUNT_YET } from "../accounts/accounts.ts";
import { AccountStore } from "../accounts/store.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { MailboxFetcher } from "../dmarc/reports/mailbox/mailbox-fetcher.ts";
import { MailboxSync, type MailboxSyncParts } from "../dmarc/reports/mailbox/mailbox-sync.ts";
import { MessageMarker } from "../dmarc/reports/mailbox/message-marker.ts";
import { MailboxStore } from "../dmarc/reports/mailbox/mailbox-store.ts";
import { runTokenCommand } from "../foundation/net/access-token.ts";
import { ImapFailure } from "../foundation/net/imap-failure.ts";
import type { ImapLogin } from "../foundation/net/imap-client.ts";
import { openImapSession } from "../foundation/net/imap-session.ts";
import { formatImapUrl } from "../foundation/net/imap-url.ts";
import type { ImapSettings } from "./imap-settings.ts";

const SECRET_CHARACTERS_MAX = 1_024;

/** The text of a file. Throws an `ImapFailure` for the operator. */
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

/** The current credentials: files are read and the command is run at each login, so that secrets may change. */
export const imapLoginOf = async (settings: ImapSettings, clock: Clock): Promise<ImapLogin> => ({
  url: settings.url,
  secret: await secretOf(settings, clock),
  ca: settings.caFile === null ? null : textOf(settings.caFile),
});

/** The account that gets the reports of the mailbox: the named one, or the only one. The error is a sentence. */
export const mailboxAccount = (db: Db, name: string | null): Result<string, string> => {
  const store = new AccountStore(db);
  if (name !== null) {
    const account = store.findAccountByName(name);
    if (account !== undefined) return ok(account.id);
    return err(`POSTWARDEN_IMAP_ACCOUNT: ${describeUnknownAccount(name)}`);
  }
  const [only, another] = store.listAccounts();
  if (only === undefined) return err(NO_ACCOUNT_YET);
  return another === undefined
    ? ok(only.id)
    : err("There are several accounts. Set POSTWARDEN_IMAP_ACCOUNT to the name of one.");
};

/** The key of the state of a mailbox. Another port or login method does not change it. */
export const mailboxNameOf = ({ url: { user, host, folder } }: ImapSettings): string =>
  JSON.stringify([user, host, folder]);

/** What fetches report mail from a mailbox; null when none is configured. */
export const composeMailbox = (
  runtime: Runtime,
  settings: ImapSettings | null,
  parts: Pick<MailboxSyncParts, "intake" | "ingester" | "reserve">,
): MailboxFetcher | null => {
  if (settings === null) return null;
  const { db, clock } = runtime;
  const { after } = settings;
  const store = new MailboxStore(db);
  const marker = new MessageMarker(runtime, { store, after, onRefusal: (refusal) => fetcher.noteRefusal(refusal) });
  const fetcher: MailboxFetcher = new MailboxFetcher(runtime, {
    sync: new MailboxSync(runtime, { ...parts, store, marker, mailbox: mailboxNameOf(settings) }),
    name: formatImapUrl(settings.url),
    accountId: () => mailboxAccount(db, settings.account),
    async open() {
      const session = await openImapSession(await imapLoginOf(settings, clock), { clock });
      if (after.kind === "move") await session.ensureFolder(after.folder);
      return session;
    },
  });
  return fetcher;
};
