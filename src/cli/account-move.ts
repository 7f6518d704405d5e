import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { errorCode, type Result } from "../foundation/base/errors.ts";
import { megabytes } from "../foundation/db/backup.ts";
import { checkChecksum } from "../foundation/db/partial-file.ts";
import { type MovedAccount, writeAccountFile } from "../service/move/account-file.ts";
import { describeMoveProblem, type MoveProblem } from "../service/move/move-problem.ts";
import { AccountTaking } from "../service/move/take-account.ts";
import { kindOf } from "../service/operating/status.ts";
import { warnOfSettings } from "./account-delete.ts";
import { argument, command, type Terminal } from "./command.ts";
import { accountNamed, inDatabase, inNewDatabase } from "./data-directory.ts";
import { CommandFailed, describeFileError } from "./io.ts";
import { lockDatabase } from "./prepare-directory.ts";

/** The value; throws the failure about a file that its problem, the file system or SQLite describes. */
const doneWith = <T>(file: string, work: () => Result<T, MoveProblem>): T => {
  try {
    const done = work();
    if (done.ok) return done.value;
    throw new CommandFailed(describeMoveProblem(file, done.error), done.error.kind);
  } catch (error) {
    if (error instanceof CommandFailed || errorCode(error) === "") throw error;
    throw new CommandFailed(describeFileError(file, error), "file");
  }
};

const rowsOf = (moved: MovedAccount): number => moved.tables.reduce((sum, { rows }) => sum + rows, 0);

const viewOf = (moved: MovedAccount) => ({
  account: moved.account.name,
  id: moved.account.id,
  rows: rowsOf(moved),
  tables: Object.fromEntries(moved.tables.filter(({ rows }) => rows > 0).map(({ table, rows }) => [table, rows])),
});

const tableOf = ({ table }: Pick<Terminal, "table">, moved: MovedAccount): string => {
  const kinds = [...Map.groupBy(moved.tables, kindOf)]
    .map(([kind, tables]) => ({ kind, rows: tables.reduce((sum, { rows }) => sum + rows, 0) }))
    .filter(({ rows }) => rows > 0);
  return table(
    ["MOVED", "ROWS"],
    kinds.map(({ kind, rows }) => [kind, String(rows)]),
  );
};

const ARGS = { file: argument("<file>") };

export const ACCOUNT_MOVE = command({
  description:
    "Write a disabled account with everything that belongs to it to a new file, for another instance. Changes nothing, also while the server runs.",
  example: "accounts move acme acme.account",
  notes:
    "The file holds personal data, signing secrets and what proves keys and passwords: delete it once the account is taken.",
  on: inDatabase,
  args: { name: argument("<name>", "name of the account"), ...ARGS },
  async run(context, { name, file }) {
    const { db, audit, io, config, print } = context;
    const { id } = accountNamed(context, name);
    const path = resolve(file);
    const moved = await audit.perform({
      action: { action: "accounts.move", accountId: id, subject: name },
      work: async () => doneWith(file, () => writeAccountFile(db, { id, name }, path)),
    });
    const { size: bytes } = statSync(path);
    print({ ...viewOf(moved), file: path, bytes }, () =>
      [
        tableOf(context, moved),
        `${file}: ${megabytes(bytes)}, verified; SHA-256 in ${file}.sha256. Copy both to the other instance, and run there, with its server stopped: postwarden accounts take ${file}`,
        `Leave "${name}" disabled here, and delete it once it works there: postwarden accounts delete "${name}"`,
      ].join("\n"),
    );
    warnOfSettings(io, config, name, "Name another one before you delete the account here.");
  },
});

export const ACCOUNT_TAKE = command({
  description:
    "Take an account from a file of `accounts move`, with everything that belongs to it, verified by the sums of every table. The server must be stopped.",
  example: "accounts take acme.account",
  notes:
    "The account stays disabled, its users are no operators, and nobody is signed in. While it is enabled on both instances, its keys work at both.",
  on: inNewDatabase,
  args: ARGS,
  run(context, { file }) {
    const { db, audit, io, print } = context;
    if (!existsSync(file)) throw new CommandFailed(`${file}: no such file`, "file");
    const lock = lockDatabase(db.path);
    try {
      const moved = doneWith(file, () => new AccountTaking(db, audit).run(resolve(file)));
      const { name } = moved.account;
      const checksum = checkChecksum(file);
      if (checksum === "missing")
        io.err(
          `postwarden: warning: There is no ${file}.sha256, so a text that changed on the way, but not its length, was not noticed.`,
        );
      print({ ...viewOf(moved), checksum }, () =>
        [
          tableOf(context, moved),
          `The account "${name}" is here: the rows and sums of every table are those of the other instance. It is disabled, as it must stay there. To let it work here: postwarden accounts enable "${name}"`,
        ].join("\n"),
      );
    } finally {
      lock.release();
    }
  },
});
