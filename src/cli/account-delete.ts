import { openAccountDeletion } from "../service/erase/open.ts";
import { clearPageGaps, type ClearedGaps } from "../foundation/db/page-gaps.ts";
import type { Config } from "../service/config.ts";
import type { DeletedAccount } from "../service/erase/account-deletion.ts";
import { deletedName } from "../service/erase/account-deletion-store.ts";
import { argument, command, toggle } from "./command.ts";
import { inDatabase, performInSteps, unknownAccount } from "./data-directory.ts";
import { CommandFailed, type Io } from "./io.ts";
import { table } from "./terminal-text.ts";

/** Warns of the settings that name an account which is not there under this name any more. */
export const warnOfSettings = (io: Io, config: Config, name: string, advice: string): void => {
  const { imapAccount, bounceImapAccount, policyAccount } = config;
  const settings = { IMAP: imapAccount, BOUNCE_IMAP: bounceImapAccount, POLICY: policyAccount };
  for (const [prefix, named] of Object.entries(settings))
    if (named === name) io.err(`postwarden: warning: POSTWARDEN_${prefix}_ACCOUNT names the account. ${advice}`);
};

/** Whether the first line of standard input is the name. */
const isConfirmed = async (io: Io, name: string): Promise<boolean> => {
  io.err(
    `This deletes the account "${name}" with its users, keys, verifications, lists, targets and reports. There is no undo.`,
  );
  io.err("Type the name of the account to confirm:");
  for await (const line of io.stdinLines()) return line === name;
  return false;
};

const textOf = (
  name: string,
  { verifications, lists, reportMails, otherRows }: DeletedAccount,
  kept: string,
): string => {
  const rows: [string, string][] = [
    ["verifications", String(verifications)],
    ["lists", String(lists)],
    ["report mails and files", String(reportMails)],
    ["other rows", String(otherRows)],
  ];
  return `${table(["DELETED", ""], rows)}\nThe account "${name}" is deleted. Its ledger stays, without notes, as ${kept}.`;
};

/** Where the bytes of deleted rows remain, and until when. */
const remainsText = (path: string, outcome: ClearedGaps["outcome"]): string =>
  outcome === "unsupported"
    ? `Unused space of ${path} may contain deleted data. To clear it, stop the server and run: postwarden compact`
    : `Another program, such as a backup or Litestream, is reading ${path}: its unused space may contain deleted data until a purge (03:07 UTC) finds no such reader.`;

const countsOf = ({ verifications, lists, reportMails, otherRows }: DeletedAccount) => ({
  ...{ verifications, lists },
  report_mails: reportMails,
  other_rows: otherRows,
});

export const ACCOUNT_DELETE = command({
  description: "Delete an account with everything that belongs to it, also while the server runs.",
  example: "accounts delete acme",
  on: inDatabase,
  args: { name: argument("<name>", "name of the account") },
  options: { yes: toggle("do not ask for confirmation") },
  async run({ db, io, config, print }, { name, yes }) {
    const { store, deletion } = openAccountDeletion(db);
    const account = store.find(name);
    if (account === undefined) throw unknownAccount(name);
    if (!yes && !(await isConfirmed(io, name)))
      throw new CommandFailed("Not confirmed: nothing was deleted. Scripts pass --yes.", "not_confirmed");
    const deleted = await performInSteps(io, db, {
      action: { action: "accounts.delete", accountId: account.id, subject: account.id },
      work: () => deletion.run(account),
      resultOf: countsOf,
    });
    const { outcome } = await clearPageGaps(db);
    const { left } = deleted;
    const counts = countsOf(deleted);
    const kept = deletedName(account.id);
    print({ account: name, id: account.id, ...counts, left, ledger: kept, unused_space: outcome }, () =>
      textOf(name, deleted, kept),
    );
    warnOfSettings(io, config, name, "Name another one and restart the service.");
    if (outcome !== "cleared") io.err(`postwarden: warning: ${remainsText(db.path, outcome)}`);
    if (left.length > 0)
      throw new CommandFailed(
        `${left.join(" ")} Run in a few minutes: postwarden accounts delete ${kept}`,
        "incomplete",
      );
  },
});
