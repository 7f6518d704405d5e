import type { Command } from "commander";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import { AcceptedReporters, acceptedView } from "../dmarc/insight/queries/accepted-reporters.ts";
import { type AccountOptions, addCommand, addGroup, ofAccount } from "./command.ts";
import { type Io, print } from "./io.ts";
import { type CommandService, withService } from "./service.ts";
import { table } from "./terminal-text.ts";

const acceptedOf = ({ db, service: { dmarc } }: CommandService): AcceptedReporters =>
  new AcceptedReporters({ db, clock: systemClock }, dmarc.stores.reporters);

/** `dmarc reporters list | accept | withdraw` */
export const addReporterCommands = (dmarc: Command, io: Io): void => {
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
