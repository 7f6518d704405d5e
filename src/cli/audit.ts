import type { Command } from "commander";
import { auditChangeText, auditView } from "../accounts/audit-store.ts";
import { addCommand, readLimit, readTime } from "./command.ts";
import { administer, unknownAccount } from "./data-directory.ts";
import { type Io, print } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 10_000;

interface AuditOptions {
  readonly account?: string;
  readonly since?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** `audit`: the log of administrative actions. */
export const addAuditCommand = (program: Command, io: Io): void => {
  addCommand(program, "audit", {
    description: "Show who changed accounts, keys, credits and monitoring on this server, newest first.",
    example: "audit --account acme --since 2026-01-01",
  })
    .option("--account <name>", "only actions on this account")
    .option("--since <time>", "only actions at or after this time (ISO 8601)")
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action(({ account, since, limit, json }: AuditOptions) =>
      administer(io, ({ audit, store }) => {
        const owner = account === undefined ? undefined : store.findAccountByName(account);
        if (account !== undefined && owner === undefined) throw unknownAccount(account);
        const filters = { accountId: owner?.id, sinceMs: readTime("since", since) };
        const page = { before: null, limit: readLimit(limit, SHOWN_MAX) };
        const entries = audit.list(filters, page).map(auditView);
        const rows = entries.map(({ at, user, host, pid, action, subject, ...change }) => [
          ...[tableTime(at), user, `${host}:${pid}`, action, subject ?? "", auditChangeText(change)],
        ]);
        print(io, json, { entries }, () =>
          table(["TIME", "USER", "HOST:PID", "ACTION", "SUBJECT", "CHANGE"], rows, io.columns),
        );
      }),
    );
};
