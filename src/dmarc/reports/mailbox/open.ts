import { readFileSync } from "node:fs";
import type { Clock } from "../../../foundation/base/clock.ts";
import type { Result } from "../../../foundation/base/errors.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { runTokenCommand } from "../../../foundation/net/access-token.ts";
import type { ImapLogin } from "../../../foundation/net/imap-client.ts";
import { ImapFailure } from "../../../foundation/net/imap-failure.ts";
import { type ImapMark, openImapSession } from "../../../foundation/net/imap-session.ts";
import { formatImapUrl, type ImapUrl } from "../../../foundation/net/imap-url.ts";
import { MailboxFetcher } from "./mailbox-fetcher.ts";
import { MailboxStore } from "./mailbox-store.ts";
import { MailboxSync, type MailboxSyncParts, MessageMarker } from "./mailbox-sync.ts";

/** The mailbox from which report mail is fetched. */
export interface ImapSettings {
  readonly url: ImapUrl;
  /** A file with the password, or a command that prints a token; both null when the password is in the URL. */
  readonly passwordFile: string | null;
  readonly tokenCommand: string | null;
  readonly caFile: string | null;
  readonly after: ImapMark;
  /** The name of the account that gets the reports; null for the only account. */
  readonly account: string | null;
  /** The address that reports are sent to; null when it is not known. */
  readonly address: string | null;
}

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

/** The key of the state of a mailbox. Another port or login method does not change it. */
export const mailboxNameOf = ({ url: { user, host, folder } }: ImapSettings): string =>
  JSON.stringify([user, host, folder]);

export interface MailboxDeps extends Pick<MailboxSyncParts, "intake" | "ingester" | "reserve"> {
  /** The account that gets the reports: the named one, or with null the only one. The error is a sentence. */
  readonly accountOf: (name: string | null) => Result<string, string>;
}

/** What fetches report mail from a mailbox; null when none is configured. */
export const openMailbox = (
  runtime: Runtime,
  settings: ImapSettings | null,
  { accountOf, ...deps }: MailboxDeps,
): MailboxFetcher | null => {
  if (settings === null) return null;
  const { db, clock } = runtime;
  const { after } = settings;
  const store = new MailboxStore(db);
  const marker = new MessageMarker(runtime, { store, after, onRefusal: (refusal) => fetcher.noteRefusal(refusal) });
  const fetcher: MailboxFetcher = new MailboxFetcher(runtime, {
    sync: new MailboxSync(runtime, { ...deps, store, marker, mailbox: mailboxNameOf(settings) }),
    name: formatImapUrl(settings.url),
    accountId: () => accountOf(settings.account),
    async open() {
      const session = await openImapSession(await imapLoginOf(settings, clock), { clock });
      if (after.kind === "move") await session.ensureFolder(after.folder);
      return session;
    },
  });
  return fetcher;
};
