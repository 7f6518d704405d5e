import { manualHint } from "../foundation/base/manual-hint.ts";
import { systemClock } from "../foundation/base/clock.ts";
import { imapLoginOf, mailboxNameOf } from "../dmarc/reports/mailbox/open.ts";
import { accountOfSetting } from "../accounts/accounts.ts";
import { AccountStore } from "../accounts/store.ts";
import type { Db } from "../foundation/db/open.ts";
import { MailboxStore } from "../dmarc/reports/mailbox/mailbox-sync.ts";
import { ImapFailure, formatImapUrl } from "../foundation/net/imap-client.ts";
import { type ImapSession, openImapSession } from "../foundation/net/imap-session.ts";
import { formatImapAfter } from "../service/imap-settings.ts";
import type { ImapSettings } from "../dmarc/reports/mailbox/open.ts";
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

const inspectMailbox = async (session: ImapSession, settings: ImapSettings, db: Db) => {
  const state = new MailboxStore(db).find(mailboxNameOf(settings));
  const lastUid = state?.uidValidity === session.uidValidity ? state.lastUid : 0;
  const account = accountOfSetting(new AccountStore(db), "POSTWARDEN_IMAP_ACCOUNT", settings.account);
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

/** `dmarc imap-check`: logs in to the configured mailbox and counts its messages, without changing anything. */
export const MAILBOX_CHECK = command({
  description: "Log in to the mailbox of POSTWARDEN_IMAP_URL and count its messages; changes nothing.",
  example: "dmarc imap-check --env-file /etc/postwarden.env",
  async run({ io, print }) {
    const { imap } = loadConfig(io);
    if (imap === null)
      throw new CommandFailed(
        `POSTWARDEN_IMAP_URL is not set. Set it to the mailbox; see ${manualHint("dmarc-reports#report-mail-by-imap")}.`,
        "no_mailbox",
      );
    await withDatabase(io, async (db) => {
      try {
        const login = await imapLoginOf(imap, systemClock);
        const session = await openImapSession(login, { clock: systemClock, isReadOnly: true });
        try {
          const state = await inspectMailbox(session, imap, db);
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
