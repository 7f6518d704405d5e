import type { Command } from "commander";
import { isBalanced, type Statement } from "../accounts/accounts.ts";
import { isoTime } from "../foundation/base/clock.ts";
import type { LedgerEntry } from "../accounts/billing/store.ts";
import { accountError } from "./accounts.ts";
import { addCommand, addGroup, readLimit } from "./command.ts";
import { administer, unknownAccount } from "./data-directory.ts";
import { CommandFailed, type Io, print } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 10_000;

/** `credits show | grant | history` */
export const addCreditCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "credits", {
    description: "Show and grant credits; verifying an address costs one.",
    example: "credits show acme",
  });
  addCreditsShow(group, io);
  addCreditsGrant(group, io);
  addCreditsHistory(group, io);
};

const printBalance = (io: Io, json: boolean | undefined, { ledger: _, ...balance }: Statement): void =>
  print(io, json, balance, () => {
    const { account, available, held, granted, spent } = balance;
    return table(
      ["ACCOUNT", "AVAILABLE", "HELD", "GRANTED", "SPENT"],
      [[account, ...[available, held, granted, spent].map(String)]],
      io.columns,
    );
  });

const addCreditsShow = (group: Command, io: Io): Command =>
  addCommand(group, "show", {
    description: "Show the balance of an account and check it against its ledger.",
    example: "credits show acme",
  })
    .argument("<name>", "name of the account")
    .action((name: string, { json }) =>
      administer(io, (administration) => {
        const statement = administration.accounts.statement(name);
        if (!statement.ok) throw accountError(statement.error, name);
        if (!isBalanced(statement.value)) {
          const { available, held, ledger } = statement.value;
          throw new CommandFailed(
            `The ledger adds up to ${ledger.available} available and ${ledger.held} held, but the balance is ${available} and ${held}. Restore a backup and report this.`,
            "ledger_mismatch",
          );
        }
        printBalance(io, json, statement.value);
      }),
    );

const addCreditsGrant = (group: Command, io: Io): Command =>
  addCommand(group, "grant", {
    description: "Add credits to an account.",
    example: 'credits grant acme 5000 --note "invoice 17"',
  })
    .argument("<name>", "name of the account")
    .argument("<credits>", "number of credits")
    .option("--note <text>", "reason, kept in the ledger", "granted on the command line")
    .action((name: string, credits: string, { note, json }: { note: string; json?: boolean }) =>
      administer(io, (administration) => {
        const amount = /^\d+$/.test(credits) ? Number(credits) : Number.NaN;
        const granted = administration.accounts.grantCredits(name, amount, note);
        if (!granted.ok) throw accountError(granted.error, name);
        printBalance(io, json, granted.value);
      }),
    );

const entryView = ({ atMs, kind, available, held, reference, note }: LedgerEntry) => ({
  ...{ at: isoTime(atMs), kind, available, held, reference, note },
});

const signed = (amount: number): string => (amount > 0 ? `+${amount}` : String(amount));

const addCreditsHistory = (group: Command, io: Io): Command =>
  addCommand(group, "history", {
    description: "Show the entries of the ledger with their notes, newest first.",
    example: "credits history acme --grants",
  })
    .argument("<name>", "name of the account")
    .option("--grants", "only grants of credits")
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((name: string, { grants = false, limit, json }: { grants?: boolean; limit: string; json?: boolean }) =>
      administer(io, ({ store, ledger }) => {
        const account = store.findAccountByName(name);
        if (account === undefined) throw unknownAccount(name);
        const entries = ledger.history(account.id, { grantsOnly: grants, limit: readLimit(limit, SHOWN_MAX) });
        const views = entries.map(entryView);
        const rows = views.map(({ at, kind, available, held, reference, note }) => [
          ...[tableTime(at), kind, signed(available), signed(held), reference ?? "", note ?? ""],
        ]);
        print(io, json, { entries: views }, () =>
          table(["TIME", "KIND", "AVAILABLE", "HELD", "REFERENCE", "NOTE"], rows, io.columns),
        );
      }),
    );
