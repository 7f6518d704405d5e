import type { Command } from "commander";
import { systemClock, isoTime } from "../foundation/base/clock.ts";
import { createLog } from "../foundation/base/log.ts";
import { isId } from "../foundation/base/secrets.ts";
import { ImportSlice } from "../dmarc/reports/open.ts";
import { addCommand, addGroup, type AccountOptions, ofAccount } from "./command.ts";
import { addDomainCommands } from "./dmarc-domains.ts";
import { addDmarcExport } from "./dmarc-export.ts";
import { addDmarcHealthCommand } from "./dmarc-health.ts";
import { addDmarcImport, ingestionLine, type ReportDatabase, type Stdin, withReportDatabase } from "./dmarc-import.ts";
import { createImportTally, problemsText, tallyText } from "./dmarc-import-progress.ts";
import { performInSteps } from "./data-directory.ts";
import { addMailboxCommand } from "./dmarc-mailbox.ts";
import { addSourceCommands } from "./dmarc-sources.ts";
import { type Io, print, UsageError } from "./io.ts";
import { AcceptedReporters, acceptedView } from "../dmarc/insight/queries/accepted-reporters.ts";
import { type CommandService, withService } from "./service.ts";
import { table } from "./terminal-text.ts";

/** `dmarc domains | sources | classify | advice | reporters | import | retry | export | health | imap-check` */
export const addDmarcCommands = (program: Command, io: Io, stdin: Stdin = () => Bun.stdin.stream()): void => {
  const group = addGroup(program, "dmarc", {
    description: "Manage monitored domains and their reports, and check the DNS records of a domain.",
    example: "dmarc health example.com",
  });
  addDomainCommands(group, io);
  addSourceCommands(group, io);
  addReporterCommands(group, io);
  addDmarcHealthCommand(group, io);
  addMailboxCommand(group, io);
  addDmarcImport(group, io, stdin);
  addDmarcRetry(group, io);
  addDmarcExport(group, io);
};

interface RetryOptions {
  readonly account?: string;
  readonly json?: boolean;
  readonly all?: boolean;
  readonly acceptUnauthenticated?: boolean;
}

const checkUsage = (ids: readonly string[], { all, acceptUnauthenticated }: RetryOptions): void => {
  if ((ids.length === 0) !== (all === true)) throw new UsageError("Pass the ids of ingestions, or --all.", "ids");
  if (all && acceptUnauthenticated)
    throw new UsageError("--accept-unauthenticated needs the ids of the mails that you accept.", "ids");
  const wrong = ids.find((id) => !isId(id));
  if (wrong !== undefined) throw new UsageError(`"${wrong}" is not the id of an ingestion.`, "ids");
};

/** Reads ingestions again in this process. A running server may do so at the same time; each is processed once. */
const retryIngestions = async (
  { db, platform, accountId }: ReportDatabase,
  { ids, isAccepted, io }: { readonly ids: readonly string[]; readonly isAccepted: boolean; readonly io: Io },
) => {
  const owner = { accountId, mode: "live" } as const;
  const { ingestions } = new ImportSlice(
    { db, clock: platform.clock, log: createLog("error", systemClock, io.err) },
    platform,
  );
  const tally = createImportTally([]);
  const chosen = ids.length === 0 ? "all" : ids;
  const retried = await ingestions.readAgain(owner, chosen, (id, conclusion) => tally.add(id, conclusion), {
    isAccepted,
  });
  const lines = ids.map((id) => ingestionLine(id, ingestions.find(owner, id)));
  return { tally, result: { retried, outcomes: tally.look().outcomes, ingestions: lines } };
};

const addDmarcRetry = (group: Command, io: Io): Command =>
  addCommand(group, "retry", {
    description: "Read rejected or quarantined reports again.",
    example: "dmarc retry --all",
  })
    .argument("[id...]", "ids of ingestions")
    .option("--all", "all that were rejected or quarantined")
    .option("--accept-unauthenticated", "count these mails although they failed authentication")
    .option("--account <name>", "name of the account; required when there are several")
    .action(async (ids: string[], options: RetryOptions) => {
      checkUsage(ids, options);
      const { account, json, acceptUnauthenticated: isAccepted = false } = options;
      await withReportDatabase(io, account, async (database) => {
        const { db, accountId } = database;
        const after = isAccepted ? { after: { accepted_unauthenticated: true } } : {};
        const { result, tally } = await performInSteps(io, db, {
          action: { action: "dmarc.reports.retry", accountId, subject: ids[0] ?? null, ...after },
          work: () => retryIngestions(database, { ids, isAccepted, io }),
          resultOf: ({ result: { retried } }) => ({ retried }),
        });
        print(io, json, result, () => {
          const lines = result.ingestions.map(({ id, outcome, reason }) =>
            `${id}  ${outcome ?? "pending"}  ${reason ?? ""}`.trimEnd(),
          );
          const summary = ids.length === 0 && result.retried > 0 ? [tallyText(tally.look())] : [];
          return [`${result.retried.toLocaleString("en")} read again.`, ...summary, ...lines].join("\n");
        });
        if (!json && ids.length === 0) for (const line of problemsText(tally.look())) io.err(line);
      });
    });

const acceptedOf = ({ db, service: { dmarc } }: CommandService): AcceptedReporters =>
  new AcceptedReporters({ db, clock: systemClock }, dmarc.stores.reporters);

/** `dmarc reporters list | accept | withdraw` */
const addReporterCommands = (dmarc: Command, io: Io): void => {
  const group = addGroup(dmarc, "reporters", {
    description: "Accept reporters that are not in the list of known ones, for all domains of an account.",
    example: "dmarc reporters accept partner-mail.net",
  });
  ofAccount(
    addCommand(group, "list", { description: "List the accepted reporters.", example: "dmarc reporters list" }),
    "reporters",
  ).action((options: AccountOptions) =>
    withService(io, options, async (command) => {
      const reporters = acceptedOf(command).list(command.caller);
      const rows = reporters.map(({ author, atMs }) => [author, isoTime(atMs)]);
      print(io, options.json, { reporters: reporters.map(acceptedView) }, () =>
        rows.length === 0 ? "No reporter is accepted." : table(["REPORTER", "ACCEPTED"], rows, io.columns),
      );
    }),
  );
  ofAccount(
    addCommand(group, "accept <reporter>", {
      description: "Let the reports of this organizational domain count in advice and alerts.",
      example: "dmarc reporters accept partner-mail.net",
    }),
    "reporters",
  ).action((reporter: string, options: AccountOptions) =>
    withService(io, options, async (command) => {
      const accepted = await command.perform({ action: "dmarc.reporters.accept", subject: reporter }, () =>
        acceptedOf(command).accept(command.caller, reporter),
      );
      print(io, options.json, acceptedView(accepted), () => `${accepted.author}: accepted.`);
    }),
  );
  ofAccount(
    addCommand(group, "withdraw <reporter>", {
      description: "Withdraw the acceptance of a reporter.",
      example: "dmarc reporters withdraw partner-mail.net",
    }),
    "reporters",
  ).action((reporter: string, options: AccountOptions) =>
    withService(io, options, async (command) => {
      const author = await command.perform({ action: "dmarc.reporters.withdraw", subject: reporter }, () =>
        acceptedOf(command).withdraw(command.caller, reporter),
      );
      print(io, options.json, { reporter: author }, () => `${author}: not accepted any more.`);
    }),
  );
};
