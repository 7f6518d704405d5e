import type { AuditedAction, AuditLog } from "../../accounts/audit-store.ts";
import type { Db } from "../../foundation/db/open.ts";
import { clearPageGaps } from "../../foundation/db/page-gaps.ts";
import type { AddressPattern } from "./address-pattern.ts";
import type { Erased } from "./erasure.ts";
import { filesWith } from "./file-traces.ts";
import { openErasure } from "./open.ts";

/** What is left after an erasure: it is incomplete with these sentences, if any. */
export interface Leftovers {
  readonly problems: readonly string[];
  /** Other files with the address, such as backups. */
  readonly files: readonly string[];
}

export interface ErasureRun {
  readonly erased: Erased;
  readonly leftovers: Leftovers;
}

interface EraseOrder {
  readonly pattern: AddressPattern;
  readonly keepSuppression: boolean;
  /** The data directory and that of the backups. */
  readonly folders: readonly string[];
  readonly audit: Pick<AuditLog, "perform" | "append">;
  /** The user of the dashboard who erases; undefined: the process. */
  readonly by?: string | undefined;
}

const KEPT_ADVICE =
  "is in use and was not changed: rename the account, remove the user, change the webhook URL or use another mailbox, then erase the address again.";

const problemsOf = (erased: Erased): string[] => [
  ...Object.entries(erased.texts.kept).map(([place, count]) => `${place} (${count}) ${KEPT_ADVICE}`),
  ...(erased.waiting.lists > 0
    ? [
        `${erased.waiting.lists} lists are being received, retried or deleted. Erase the address again in a few minutes.`,
      ]
    : []),
  ...(erased.waiting.reportMails > 0
    ? [`${erased.waiting.reportMails} report mails wait to be read. Erase the address again in a few minutes.`]
    : []),
];

/** What was erased, for the API of the command and the audit log: counts, never the address. */
export const erasedView = ({ texts, waiting, listRows, reportMails, ...rest }: Erased) => ({
  ...rest,
  list_rows: listRows,
  report_mails: reportMails,
  rows_removed: texts.removed,
  fields_redacted: texts.replaced,
  fields_kept: texts.kept,
  waiting: { lists: waiting.lists, report_mails: waiting.reportMails },
});

/** Erases an address from the database with two entries in the audit log, clears unused space, and searches the files. */
export const eraseEverywhere = async (db: Db, order: EraseOrder): Promise<ErasureRun> => {
  const { pattern, keepSuppression, audit, by } = order;
  const { erasure } = openErasure(db, pattern);
  // Never the address: the audit log is not erased.
  const action: AuditedAction = { action: "erase", accountId: null, subject: null, by };
  const erased = await audit.perform({ action, work: () => erasure.run({ keepSuppression }) });
  db.transact((tx) => audit.append(tx, { ...action, action: "erase.done", after: erasedView(erased) }));
  const isPartOfOthers = erasure.isPartOfOthers;
  return { erased, leftovers: await findLeftovers(db, order, { erased, isPartOfOthers }) };
};

/** Empties the write-ahead log, clears unused space and searches the files. */
const findLeftovers = async (
  db: Db,
  { pattern, folders }: EraseOrder,
  { erased, isPartOfOthers }: { readonly erased: Erased; readonly isPartOfOthers: boolean },
): Promise<Leftovers> => {
  const problems = problemsOf(erased);
  const { outcome } = await clearPageGaps(db);
  if (outcome === "busy")
    problems.push(
      "Another program, such as a backup or Litestream, is reading the database, which may contain the address in unused space. Erase the address again when it is done, or stop it and the server and run: postwarden compact",
    );
  const { path } = db;
  const database = { path, descriptor: db.descriptor() };
  const { isInDatabase, others } = await filesWith(folders, pattern.normalized, database);
  if (isInDatabase && problems.length === 0 && !isPartOfOthers)
    problems.push(`Unused space of ${path} contains the address. Stop the server and run: postwarden compact`);
  return { problems, files: others };
};
