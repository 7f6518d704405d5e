import { openErasure } from "../service/erase/open.ts";
import type { Db } from "../foundation/db/open.ts";
import { clearPageGaps } from "../foundation/db/page-gaps.ts";
import { createAddressPattern, type AddressPattern } from "../service/erase/address-pattern.ts";
import type { Erased } from "../service/erase/erasure.ts";
import { filesWith } from "../service/erase/file-traces.ts";
import { argument, command, toggle } from "./command.ts";
import { inDatabase, performInSteps } from "./data-directory.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";

/** What is left after an erasure: the command fails with these sentences, if any. */
interface Leftovers {
  readonly problems: readonly string[];
  /** Other files with the address, such as backups. */
  readonly files: readonly string[];
}

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

const KEPT_ADVICE =
  "is in use and was not changed: rename the account, remove the user, change the webhook URL or use another mailbox, then run the command again.";

const problemsOf = (erased: Erased): string[] => [
  ...Object.entries(erased.texts.kept).map(([place, count]) => `${place} (${count}) ${KEPT_ADVICE}`),
  ...(erased.waiting.lists > 0
    ? [`${erased.waiting.lists} lists are being received, retried or deleted. Run the command again in a few minutes.`]
    : []),
  ...(erased.waiting.reportMails > 0
    ? [`${erased.waiting.reportMails} report mails wait to be read. Run the command again in a few minutes.`]
    : []),
];

const viewOf = ({ texts, waiting, listRows, reportMails, ...rest }: Erased) => ({
  ...rest,
  list_rows: listRows,
  report_mails: reportMails,
  rows_removed: texts.removed,
  fields_redacted: texts.replaced,
  fields_kept: texts.kept,
  waiting: { lists: waiting.lists, report_mails: waiting.reportMails },
});

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

interface SearchedFiles {
  readonly db: Db;
  readonly folders: readonly string[];
  readonly pattern: AddressPattern;
}

/** Empties the write-ahead log, clears unused space and searches the files. */
const findLeftovers = async (
  { erased, isPartOfOthers }: { erased: Erased; isPartOfOthers: boolean },
  { db, folders, pattern }: SearchedFiles,
): Promise<Leftovers> => {
  const problems = problemsOf(erased);
  const { outcome } = await clearPageGaps(db);
  if (outcome === "busy")
    problems.push(
      "Another program, such as a backup or Litestream, is reading the database, which may contain the address in unused space. Run the command again when it is done, or stop it and the server and run: postwarden compact",
    );
  const { path } = db;
  const database = { path, descriptor: db.descriptor() };
  const { isInDatabase, others } = await filesWith(folders, pattern.normalized, database);
  if (isInDatabase && problems.length === 0 && !isPartOfOthers)
    problems.push(`Unused space of ${path} contains the address. Stop the server and run: postwarden compact`);
  return { problems, files: others };
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
  description: "Erase every trace of an address, also while the server runs. This cannot be undone.",
  example: "erase someone@example.com",
  on: inDatabase,
  args: { pattern: ADDRESS },
  options: {
    dropSuppression: toggle("remove the address from the suppression list, too; by default its hash stays there"),
  },
  async run({ db, config, io, print }, { pattern, dropSuppression }) {
    const { erasure } = openErasure(db, pattern);
    const folders = [config.dataDir, ...(config.backupDir === null ? [] : [config.backupDir])];
    const erased = await performInSteps(io, db, {
      // Never the address: the audit log is not erased.
      action: { action: "erase", accountId: null, subject: null },
      work: () => erasure.run({ keepSuppression: !dropSuppression }),
      resultOf: viewOf,
    });
    const leftovers = await findLeftovers({ erased, isPartOfOthers: erasure.isPartOfOthers }, { db, folders, pattern });
    print({ address: pattern.normalized, ...viewOf(erased), files: leftovers.files }, () => textOf(erased, leftovers));
    if (leftovers.problems.length > 0)
      throw new CommandFailed(["Not everything was erased:", ...leftovers.problems].join("\n  "), "incomplete");
  },
});

export const ERASE_COMMANDS = { erase: ERASE };
