import { manualHint } from "../foundation/base/manual-hint.ts";
import { systemClock } from "../foundation/base/clock.ts";
import { imapLoginOf, mailboxNameOf, type MailboxSettings } from "../foundation/mailbox/mailbox-fetcher.ts";
import { accountOfSetting } from "../accounts/accounts.ts";
import { AccountStore } from "../accounts/store.ts";
import type { Db } from "../foundation/db/open.ts";
import { REPORT_MAILBOX_TABLES } from "../dmarc/reports/mailbox/report-mailbox.ts";
import { MailboxStore, type MailboxTables } from "../foundation/mailbox/mailbox-store.ts";
import type { Config } from "../service/config.ts";
import { BOUNCE_MAILBOX_TABLES } from "../verify/bounces/mailbox/bounce-mailbox.ts";
import { ImapFailure, formatImapUrl } from "../foundation/net/imap-client.ts";
import { type ImapSession, openImapSession } from "../foundation/net/imap-session.ts";
import { formatImapAfter } from "../service/imap-settings.ts";
import { command } from "./command.ts";
import { CommandFailed } from "./io.ts";
import { counted } from "./progress.ts";
import { withDatabase } from "./data-directory.ts";
import { loadConfig } from "./prepare-directory.ts";

/** New messages are counted up to this number. */
const COUNTED_MAX = 100_000;

/** Counts the messages above a UID, up to `COUNTED_MAX`. */
const countAfter = async (session: ImapSession, uid: number): Promise<number> => {
  let count = 0;
  for (let last = uid; count < COUNTED_MAX;) {
    const uids = await session.uidsAfter(last, COUNTED_MAX - count);
    if (uids.length === 0) break;
    count += uids.length;
    last = uids.at(-1) ?? last;
  }
  return count;
};

/** A mailbox that `serve` reads. */
interface ReadMailbox {
  /** The beginning of the names of its settings. */
  readonly prefix: string;
  readonly tables: MailboxTables;
  /** Null when none is set. */
  readonly settingsOf: (config: Config) => MailboxSettings | null;
  readonly example: string;
  /** The place of the manual that describes it. */
  readonly manual: string;
}

const inspectMailbox = async (
  session: ImapSession,
  { settings, prefix, tables }: Pick<ReadMailbox, "prefix" | "tables"> & { readonly settings: MailboxSettings },
  db: Db,
) => {
  const state = new MailboxStore(db, tables).find(mailboxNameOf(settings));
  const lastUid = state?.uidValidity === session.uidValidity ? state.lastUid : 0;
  const account = accountOfSetting(new AccountStore(db), `${prefix}ACCOUNT`, settings.account);
  return {
    mailbox: formatImapUrl(settings.url),
    messages: session.messages,
    messages_to_fetch: await countAfter(session, lastUid),
    idle: session.canIdle,
    after: formatImapAfter(settings.after),
    account_problem: account.ok ? null : account.error,
  };
};

type MailboxState = Awaited<ReturnType<typeof inspectMailbox>>;

const AFTER_TEXTS: Readonly<Record<string, string>> = {
  seen: "flags them as read",
  delete: "deletes them",
  keep: "leaves them as they are",
};

const textOf = ({ mailbox, messages, messages_to_fetch, idle, after, account_problem }: MailboxState): string =>
  [
    `${mailbox}: logged in. The folder has ${counted(messages, "message", "messages")}, ${messages_to_fetch.toLocaleString("en")} of them not fetched yet.`,
    `\`serve\` fetches new messages ${idle ? "as they arrive (IDLE)" : "every five minutes (the server has no IDLE)"}, stores them, and then ${
      AFTER_TEXTS[after] ?? `moves them to ${after.replace(/^move:/, "")}`
    }.`,
    ...(account_problem === null ? [] : [account_problem]),
  ].join("\n");

/** Logs in to a configured mailbox and counts its messages, without changing anything. */
const mailboxCheck = ({ prefix, tables, settingsOf, example, manual }: ReadMailbox) =>
  command({
    description: `Log in to the mailbox of ${prefix}URL and count its messages; changes nothing.`,
    example,
    async run({ io, print }) {
      const settings = settingsOf(loadConfig(io));
      if (settings === null)
        throw new CommandFailed(
          `${prefix}URL is not set. Set it to the mailbox; see ${manualHint(manual)}.`,
          "no_mailbox",
        );
      await withDatabase(io, async (db) => {
        try {
          const login = await imapLoginOf(settings, systemClock);
          const session = await openImapSession(login, { clock: systemClock, isReadOnly: true });
          try {
            const state = await inspectMailbox(session, { settings, prefix, tables }, db);
            print(state, () => textOf(state));
            if (state.account_problem !== null) throw new CommandFailed(state.account_problem, "account");
          } finally {
            session.close();
          }
        } catch (error) {
          if (error instanceof ImapFailure) throw new CommandFailed(error.message, `imap_${error.kind}`);
          throw error;
        }
      });
    },
  });

/** `dmarc imap-check`. */
export const REPORT_MAILBOX_CHECK = mailboxCheck({
  prefix: "POSTWARDEN_IMAP_",
  tables: REPORT_MAILBOX_TABLES,
  settingsOf: ({ imap }) => imap,
  example: "dmarc imap-check --env-file /etc/postwarden.env",
  manual: "dmarc-reports#report-mail-by-imap",
});

/** `bounces imap-check`. */
export const BOUNCE_MAILBOX_CHECK = mailboxCheck({
  prefix: "POSTWARDEN_BOUNCE_IMAP_",
  tables: BOUNCE_MAILBOX_TABLES,
  settingsOf: ({ bounceImap }) => bounceImap,
  example: "bounces imap-check --env-file /etc/postwarden.env",
  manual: "outgoing-mail#a-bounce-mailbox",
});
