import { Database as Sqlite } from "bun:sqlite";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const reportMailboxCheck = doctorFindings("report_mailbox", "Mailbox of reports", "dmarc-reports#report-mail-by-imap");
const bounceMailboxCheck = doctorFindings("bounce_mailbox", "Mailbox of bounces", "outgoing-mail#a-bounce-mailbox");

export interface StoredAccount {
  readonly name: string;
  readonly isDisabled: number;
}

const ACCOUNTS_MAX = 10_000;

/** The accounts of a database; null when it cannot be read. */
export const readAccounts = (database: string): readonly StoredAccount[] | null => {
  try {
    const sqlite = new Sqlite(database, { readonly: true });
    try {
      const text = "SELECT name, disabled_at_ms IS NOT NULL AS isDisabled FROM accounts ORDER BY name LIMIT ?";
      return sqlite.query<StoredAccount, [number]>(text).all(ACCOUNTS_MAX);
    } finally {
      sqlite.close();
    }
  } catch {
    return null;
  }
};

/** The account that a setting names, or the only one where `name` is null; a sentence when there is none. */
export const findNamedAccount = (
  setting: string,
  name: string | null,
  accounts: readonly StoredAccount[],
): StoredAccount | string => {
  const [only, another] = accounts;
  if (name === null && another !== undefined) return `There are several accounts. Set ${setting} to the name of one.`;
  const account = name === null ? only : accounts.find((one) => one.name === name);
  if (account !== undefined) return account;
  return name === null
    ? "There is no account. Create one: `postwarden accounts create NAME`."
    : `${setting}: There is no account "${name}". \`postwarden accounts list\` lists all accounts.`;
};

export interface MailboxCheckOptions {
  readonly config: Pick<DoctorSettings, "imap" | "bounceImap">;
  /** Null when they cannot be read. */
  readonly readAccounts: () => readonly StoredAccount[] | null;
}

/** Whether an account gets what is in each mailbox that is set. Connects to none. */
export const checkMailboxAccounts = ({
  config: { imap, bounceImap },
  readAccounts: read,
}: MailboxCheckOptions): readonly DoctorCheck[] => {
  const accounts = imap === null && bounceImap === null ? null : read();
  if (accounts === null) return [];
  const check = (
    { ok, fail }: ReturnType<typeof doctorFindings>,
    mailbox: { readonly account: string | null } | null,
    { setting, command }: { readonly setting: string; readonly command: string },
  ): DoctorCheck[] => {
    if (mailbox === null) return [];
    const found = findNamedAccount(setting, mailbox.account, accounts);
    return typeof found === "string"
      ? [fail(`${found} Until then nothing is fetched from the mailbox.`)]
      : [ok(`What arrives belongs to the account "${found.name}". \`${command}\` logs in.`)];
  };
  const ofReports = { setting: "POSTWARDEN_IMAP_ACCOUNT", command: "postwarden dmarc imap-check" };
  const ofBounces = { setting: "POSTWARDEN_BOUNCE_IMAP_ACCOUNT", command: "postwarden bounces imap-check" };
  return [...check(reportMailboxCheck, imap, ofReports), ...check(bounceMailboxCheck, bounceImap, ofBounces)];
};
