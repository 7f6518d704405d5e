import { renameSync } from "node:fs";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import { ok } from "../foundation/base/errors.ts";
import { copyDatabase, describeCopyProblem, megabytes } from "../foundation/db/backup.ts";
import type { Db } from "../foundation/db/open.ts";
import { partialNameOf, removeAbandonedPartialsOf, removePartial } from "../foundation/db/partial-file.ts";
import { unhurried } from "../foundation/db/unhurried.ts";
import { type Expired, expireNow } from "../service/operating/expiry.ts";
import { command, type Terminal, toggle } from "./command.ts";
import { type DatabaseContext, inDatabase, openDatabaseAt, performInSteps } from "./data-directory.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { withService } from "./service.ts";
import { tableTime } from "./terminal-text.ts";

/** Runs `work` on a copy of the database, beside it, which is then removed; the next start removes what a crash leaves. */
const onCopy = async <T>(path: string, work: (copy: Db) => Promise<T>): Promise<T> => {
  const name = `${path}.dry-run`;
  removeAbandonedPartialsOf(name);
  try {
    const copied = copyDatabase(path, `${path}.copy`, (partial) => {
      renameSync(partial, partialNameOf(name));
      return ok(null);
    });
    if (!copied.ok) throw new CommandFailed(describeCopyProblem(path, name, copied.error), copied.error.kind);
    const copy = openDatabaseAt(partialNameOf(name));
    try {
      copy.sqlite.run("PRAGMA synchronous = OFF");
      return await work(copy);
    } finally {
      copy.close();
    }
  } finally {
    removePartial(name);
  }
};

const rehearse = ({ io, db, config }: DatabaseContext & Terminal): Promise<Expired> =>
  onCopy(db.path, (copy) => withService({ io }, { db: copy, config }, (service) => expireNow(service, copy)));

const purge = ({ io, db, config }: DatabaseContext & Terminal): Promise<Expired> =>
  performInSteps(io, db, {
    action: { action: "purge", accountId: null, subject: null },
    work: () => withService({ io }, { db: unhurried(db, systemClock), config }, (service) => expireNow(service, db)),
    resultOf: ({ kinds }) => Object.fromEntries(kinds.map(({ kind, rows }) => [kind, rows])),
  });

const textOf = (
  { table }: Pick<Terminal, "table">,
  { kinds, bytesReturned }: Expired,
  { isDryRun, at }: { readonly isDryRun: boolean; readonly at: string },
): string => {
  if (kinds.length === 0) return `Nothing has expired by ${tableTime(at)}.`;
  const rows = kinds.map(({ kind, rows: count }) => [kind, String(count)]);
  const space =
    bytesReturned === 0 ? "" : ` The file ${isDryRun ? "would become" : "became"} ${megabytes(bytesReturned)} smaller.`;
  const done = isDryRun ? "Nothing was removed. To remove it: postwarden purge --now" : "";
  return `${table([isDryRun ? "EXPIRED" : "REMOVED", "ROWS"], rows)}\n${isDryRun ? "By" : "Removed by"} the clock of this machine: ${tableTime(at)}.${space} ${done}`.trimEnd();
};

const PURGE = command({
  description:
    "Remove now what has expired, as the service does by itself every hour and every night, or only count it.",
  example: "purge --dry-run",
  notes:
    "The counting is exact: it runs on a copy of the database in the data directory, which needs as much disk space. A server may run meanwhile.",
  on: inDatabase,
  options: {
    now: toggle("remove it"),
    dryRun: { ...toggle("count it by kind, and remove nothing"), conflicts: "now" },
  },
  check({ now, dryRun }) {
    if (!now && !dryRun) throw new UsageError("Pass --dry-run to count what has expired, or --now to remove it.");
  },
  async run(context, { dryRun: isDryRun }) {
    const at = isoTime(systemClock.nowMs());
    const expired = await (isDryRun ? rehearse(context) : purge(context));
    const { kinds, bytesReturned: bytes_returned } = expired;
    const rows = kinds.reduce((sum, kind) => sum + kind.rows, 0);
    context.print({ dry_run: isDryRun, at, rows, kinds, bytes_returned }, () =>
      textOf(context, expired, { isDryRun, at }),
    );
  },
});

export const PURGE_COMMANDS = { purge: PURGE };
