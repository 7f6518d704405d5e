import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { imapLoginOf, mailboxAccount, mailboxNameOf } from "../compose-mailbox.ts";
import type { Db } from "../db/open.ts";
import { createMailboxStore } from "../dmarc/mailbox/mailbox-store.ts";
import { ImapFailure } from "../net/imap-failure.ts";
import { type ImapSession, openImapSession } from "../net/imap-session.ts";
import { formatImapUrl } from "../net/imap-url.ts";
import { formatImapAfter, type ImapSettings } from "../imap-settings.ts";
import { CommandFailed, type Io, print } from "./io.ts";
import { loadConfig, openDatabase } from "./data-directory.ts";

/** New messages are counted up to here. */
const COUNTED_MAX = 100_000;

const lookAt = async (session: ImapSession, settings: ImapSettings, db: Db) => {
  const state = createMailboxStore(db).find(mailboxNameOf(settings));
  const lastUid = state?.uidValidity === session.uidValidity ? state.lastUid : 0;
  const account = mailboxAccount(db, settings.account);
  return {
    mailbox: formatImapUrl(settings.url),
    messages: session.messages,
    messages_to_fetch: (await session.uidsAfter(lastUid, COUNTED_MAX)).length,
    idle: session.canIdle,
    after: formatImapAfter(settings.after),
    account_problem: account.ok ? null : account.error,
  };
};

type Look = Awaited<ReturnType<typeof lookAt>>;

const AFTER_WORDS: Readonly<Record<string, string>> = {
  seen: "flags them as read",
  delete: "deletes them",
  keep: "leaves them as they are",
};

const textOf = (look: Look): string =>
  [
    `${look.mailbox}: logged in. The folder has ${look.messages} messages, ${look.messages_to_fetch} of them not yet fetched.`,
    `\`serve\` fetches them${look.idle ? " as they come (IDLE)" : " every five minutes (the server has no IDLE)"} and ${
      AFTER_WORDS[look.after] ?? `moves them to ${look.after.replace(/^move:/, "")}`
    } once their reports are stored.`,
    ...(look.account_problem === null ? [] : [look.account_problem]),
  ].join("\n");

/** `dmarc imap-check`: logs in to the mailbox of the settings and looks, without changing anything. */
export const addMailboxCommand = (group: Command, io: Io): void => {
  group
    .command("imap-check")
    .description(
      "log in to the mailbox of POSTWARDEN_IMAP_URL, count its messages and say what `serve` does with them; changes nothing. Example: postwarden dmarc imap-check --env-file /etc/postwarden.env",
    )
    .option("--json", "print JSON")
    .action(async ({ json }: { json?: boolean }) => {
      const config = loadConfig(io);
      const { imap } = config;
      if (imap === null)
        throw new CommandFailed("POSTWARDEN_IMAP_URL is not set. The README has examples.", "no_mailbox");
      const db = openDatabase(io, config);
      try {
        const session = await openImapSession(await imapLoginOf(imap, systemClock), {
          clock: systemClock,
          isReadOnly: true,
        });
        try {
          const look = await lookAt(session, imap, db);
          print(io, json, look, () => textOf(look));
          if (look.account_problem !== null) throw new CommandFailed(look.account_problem, "account");
        } finally {
          session.close();
        }
      } catch (error) {
        if (error instanceof ImapFailure) throw new CommandFailed(error.message, `imap_${error.kind}`);
        throw error;
      } finally {
        db.close();
      }
    });
};
