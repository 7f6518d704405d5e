import { openAddressSearch } from "../service/erase/open.ts";
import type { Db } from "../foundation/db/open.ts";
import { createAddressPattern, type AddressPattern } from "../service/erase/address-pattern.ts";
import type { AddressTraces } from "../service/erase/address-search.ts";
import { eraseEverywhere, erasedView, type Leftovers } from "../service/erase/erase-everywhere.ts";
import type { Erased } from "../service/erase/erasure.ts";
import { argument, command, toggle } from "./command.ts";
import { inDatabase } from "./data-directory.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

const textOf = (erased: Erased, { files }: Leftovers): string => {
  const { verifications, cancelled, listRows, lists, evidence, reportMails, suppression, texts } = erased;
  const rows: [string, string][] = [
    ["verifications", `${verifications}${cancelled > 0 ? ` (${cancelled} were pending; credits released)` : ""}`],
    ["rows of lists", `${listRows}${lists > 0 ? ` in ${lists} lists` : ""}`],
    ["evidence of other addresses", String(evidence)],
    ["report mails and files", String(reportMails)],
    ["other rows removed", String(sumOf(texts.removed))],
    ["other fields redacted", String(sumOf(texts.replaced))],
    ["suppression list", suppression === null ? "not on it" : suppression === "hashed" ? "kept as a hash" : "removed"],
  ];
  const others = files.map((file) => `\n${file} still contains the address. Delete it when you no longer need it.`);
  return table(["ERASED", ""], rows) + others.join("");
};

/** What an erasure would change, in one line: "2 verifications, 3 bulk rows". */
const foundText = ({ tables, lists }: AddressTraces): string => {
  const counts = Object.entries(tables).map(([name, count]) => `${count} in ${name.replaceAll("_", " ")}`);
  if (counts.length === 0) return "The address is stored nowhere in the database.";
  return `Found: ${counts.join(", ")}${lists > 0 ? ` (${lists} lists)` : ""}.`;
};

/** Whether somebody at a terminal types the address again, after what would be erased was shown. */
const isConfirmed = async (io: Io, db: Db, pattern: AddressPattern): Promise<boolean> => {
  io.err(foundText(await openAddressSearch(db, { pattern, accountId: null }).count()));
  io.err("Erasing cannot be undone. Type the address again to confirm:");
  for await (const line of io.stdinLines()) {
    const again = createAddressPattern(line);
    return again.ok && again.value.normalized === pattern.normalized;
  }
  return false;
};

const ADDRESS = {
  ...argument("<address>"),
  read(given: unknown): AddressPattern {
    const pattern = createAddressPattern(String(given));
    if (pattern.ok) return pattern.value;
    throw new UsageError(pattern.error, "address");
  },
};

const ERASE = command({
  description:
    "Erase every trace of an address, also while the server runs. On a terminal it shows what is found and asks; there is no undo.",
  example: "erase someone@example.com",
  on: inDatabase,
  args: { pattern: ADDRESS },
  options: {
    yes: toggle("do not ask on a terminal"),
    dropSuppression: toggle("remove the address from the suppression list, too; by default its hash stays there"),
  },
  async run({ db, config, io, print, audit }, { pattern, dropSuppression, yes }) {
    if (io.stdinIsTerminal && !yes && !(await isConfirmed(io, db, pattern)))
      throw new CommandFailed("Not confirmed: nothing was erased.", "not_confirmed");
    const folders = [config.dataDir, ...(config.backupDir === null ? [] : [config.backupDir])];
    const order = { pattern, keepSuppression: !dropSuppression, folders, audit };
    const { erased, leftovers } = await eraseEverywhere(db, order);
    print({ address: pattern.normalized, ...erasedView(erased), files: leftovers.files }, () =>
      textOf(erased, leftovers),
    );
    if (leftovers.problems.length > 0)
      throw new CommandFailed(["Not everything was erased:", ...leftovers.problems].join("\n  "), "incomplete");
  },
});

export const ERASE_COMMANDS = { erase: ERASE };
