import { isoTime, systemClock } from "../foundation/base/clock.ts";
import { isId } from "../foundation/base/secrets.ts";
import { AcceptedReporters, acceptedView } from "../dmarc/insight/queries/accepted-reporters.ts";
import { accountOptions, argument, command, type CommandTrees, group, toggle } from "./command.ts";
import { performInSteps } from "./data-directory.ts";
import { DOMAIN_COMMANDS } from "./dmarc-domains.ts";
import { DMARC_EXPORT } from "./dmarc-export.ts";
import { HEALTH } from "./dmarc-health.ts";
import {
  importCommand,
  ingestionLine,
  openImport,
  type ReportDatabase,
  type Stdin,
  withReportDatabase,
} from "./dmarc-import.ts";
import { createImportTally, problemsText, tallyText } from "./dmarc-import-progress.ts";
import { REPORT_MAILBOX_CHECK } from "./mailbox-check.ts";
import { REPORT_LINKS } from "./dmarc-links.ts";
import { TAGS } from "./dmarc-tags.ts";
import { MTA_STS } from "./dmarc-mta-sts.ts";
import { SOURCE_COMMANDS } from "./dmarc-sources.ts";
import { type Io, UsageError } from "./io.ts";
import { type CommandService, inService } from "./service.ts";

/** Reads ingestions again in this process. A running server may do so at the same time; each is processed once. */
const retryIngestions = async (
  database: ReportDatabase,
  { ids, isAccepted, io }: { readonly ids: readonly string[]; readonly isAccepted: boolean; readonly io: Io },
) => {
  const { owner } = database;
  const { ingestions } = openImport(database, io);
  const tally = createImportTally([]);
  const chosen = ids.length === 0 ? "all" : ids;
  const retried = await ingestions.readAgain(owner, chosen, (id) => tally.add(id, ingestions.find(owner, id)), {
    isAccepted,
  });
  const lines = ids.map((id) => ingestionLine(id, ingestions.find(owner, id)));
  return { tally, result: { retried, outcomes: tally.look().outcomes, ingestions: lines } };
};

const RETRY = command({
  description: "Read rejected or quarantined reports again.",
  example: "dmarc retry --all",
  args: { ids: argument("[id...]", "ids of ingestions") },
  options: {
    all: toggle("all that were rejected or quarantined"),
    acceptUnauthenticated: toggle("count these mails although they failed authentication"),
    ...accountOptions("reports"),
  },
  check({ ids, all, acceptUnauthenticated }) {
    if ((ids.length === 0) !== all) throw new UsageError("Pass the ids of ingestions, or --all.", "ids");
    if (all && acceptUnauthenticated)
      throw new UsageError("--accept-unauthenticated needs the ids of the mails that you accept.", "ids");
    const wrong = ids.find((id) => !isId(id));
    if (wrong !== undefined) throw new UsageError(`"${wrong}" is not the id of an ingestion.`, "ids");
  },
  run: ({ io, isJson, print }, { ids, all, acceptUnauthenticated: isAccepted, ...whose }) =>
    withReportDatabase(io, whose, async (database) => {
      const { db, owner } = database;
      const after = isAccepted ? { after: { accepted_unauthenticated: true } } : {};
      const { result, tally } = await performInSteps(io, db, {
        action: { action: "dmarc.reports.retry", accountId: owner.accountId, subject: ids[0] ?? null, ...after },
        work: () => retryIngestions(database, { ids, isAccepted, io }),
        resultOf: ({ result: { retried } }) => ({ retried }),
      });
      print(result, () => {
        const lines = result.ingestions.map(({ id, outcome, reason }) =>
          `${id}  ${outcome ?? "pending"}  ${reason ?? ""}`.trimEnd(),
        );
        const summary = all && result.retried > 0 ? [tallyText(tally.look())] : [];
        return [`${result.retried.toLocaleString("en")} read again.`, ...summary, ...lines].join("\n");
      });
      if (!isJson && all) for (const line of problemsText(tally.look())) io.err(line);
    }),
});

const acceptedOf = ({ db, service: { dmarc } }: CommandService): AcceptedReporters =>
  new AcceptedReporters({ db, clock: systemClock }, dmarc.stores.reporters);

const onReporter = { on: inService("reporters"), args: { reporter: argument("<reporter>") } };

const REPORTERS = group(
  {
    description: "Accept reporters that are not in the list of known ones, for all domains of an account.",
    example: "dmarc reporters accept partner-mail.net",
  },
  {
    list: command({
      description: "List the accepted reporters.",
      example: "dmarc reporters list",
      on: onReporter.on,
      run(context) {
        const reporters = acceptedOf(context).list(context.caller);
        const rows = reporters.map(({ author, atMs }) => [author, isoTime(atMs)]);
        context.print({ reporters: reporters.map(acceptedView) }, () =>
          rows.length === 0 ? "No reporter is accepted." : context.table(["REPORTER", "ACCEPTED"], rows),
        );
      },
    }),
    accept: command({
      description: "Let the reports of this organizational domain count in advice and alerts.",
      example: "dmarc reporters accept partner-mail.net",
      ...onReporter,
      async run(context, { reporter }) {
        const accepted = await context.perform({ action: "dmarc.reporters.accept", subject: reporter }, () =>
          acceptedOf(context).accept(context.caller, reporter),
        );
        context.print(acceptedView(accepted), () => `${accepted.author}: accepted.`);
      },
    }),
    withdraw: command({
      description: "Withdraw the acceptance of a reporter.",
      example: "dmarc reporters withdraw partner-mail.net",
      ...onReporter,
      async run(context, { reporter }) {
        const author = await context.perform({ action: "dmarc.reporters.withdraw", subject: reporter }, () =>
          acceptedOf(context).withdraw(context.caller, reporter),
        );
        context.print({ reporter: author }, () => `${author}: not accepted any more.`);
      },
    }),
  },
);

export const dmarcCommands = (stdin: Stdin = () => Bun.stdin.stream()): CommandTrees => ({
  dmarc: group(
    {
      description: "Manage monitored domains and their reports, and check the DNS records of a domain.",
      example: "dmarc health example.com",
    },
    {
      domains: DOMAIN_COMMANDS,
      ...SOURCE_COMMANDS,
      reporters: REPORTERS,
      health: HEALTH,
      "mta-sts": MTA_STS,
      links: REPORT_LINKS,
      tags: TAGS,
      "imap-check": REPORT_MAILBOX_CHECK,
      import: importCommand(stdin),
      retry: RETRY,
      export: DMARC_EXPORT,
    },
  ),
});
