import { Command, CommanderError } from "commander";
import { AppError } from "../base/errors.ts";
import { SettingsProblem } from "../config.ts";
import { VERSION } from "../version.ts";
import { addAccountCommands, addCreditCommands } from "./accounts.ts";
import { addBlocklistCommands } from "./blocklist.ts";
import { addDmarcCommands } from "./dmarc.ts";
import { addDoctorCommand } from "./doctor.ts";
import { addInspectCommands } from "./inspect.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import { addKeyCommands } from "./keys.ts";
import { addMaintenanceCommands } from "./maintenance.ts";
import { addServeCommand } from "./serve.ts";
import { addSuppressCommands } from "./suppress.ts";
import { addVerifyCommand } from "./verify.ts";
import { addWebhookCommands } from "./webhooks.ts";

const EXIT_OK = 0;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const HELP_FOOTER = `
Exit status: 0 done, 1 failed, 2 wrong usage. Data goes to standard output, everything else to standard error.
Settings are environment variables; \`postwarden config\` shows those in force.`;

const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

/** The whole command line, bound to where it prints. With `asJson` the parser leaves errors to the caller. */
export const createProgram = (io: Io, asJson: boolean): Command => {
  const program = new Command("postwarden")
    .description("Verifies email addresses, watches DNS blocklists, reads DMARC reports; and shows the evidence.")
    .version(VERSION, "-V, --version", "print the version")
    .addHelpText("after", HELP_FOOTER);
  addServeCommand(program, io);
  addVerifyCommand(program, io);
  addInspectCommands(program, io);
  addAccountCommands(program, io);
  addKeyCommands(program, io);
  addCreditCommands(program, io);
  addSuppressCommands(program, io);
  addBlocklistCommands(program, io);
  addDmarcCommands(program, io);
  addWebhookCommands(program, io);
  addDoctorCommand(program, io);
  addMaintenanceCommands(program, io);
  for (const command of everyCommand(program)) {
    command
      .exitOverride()
      .showHelpAfterError("(add --help for what is possible)")
      .configureOutput({
        writeOut: (text) => io.out(text.trimEnd()),
        writeErr: (text) => {
          if (!asJson) io.err(text.trimEnd());
        },
      });
  }
  return program;
};

const report = (io: Io, asJson: boolean, code: string, message: string): void =>
  io.err(asJson ? JSON.stringify({ error: code, message }) : `postwarden: ${message}`);

const usageOf = ({ code, message }: CommanderError): string =>
  code === "commander.help" ? "A command is missing; --help lists them." : message.replace(/^error: /, "");

/** Runs one command line (without the program's name) and answers the exit status. */
export const runCli = async (args: readonly string[], io: Io): Promise<number> => {
  const asJson = args.includes("--json");
  try {
    await createProgram(io, asJson).parseAsync([...args], { from: "user" });
    return EXIT_OK;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT_OK;
      // Without --json, the parser has said it already.
      if (asJson) report(io, asJson, "usage", usageOf(error));
      return EXIT_USAGE;
    }
    if (error instanceof UsageError) {
      report(io, asJson, error.code, error.message);
      return EXIT_USAGE;
    }
    if (error instanceof CommandFailed || error instanceof AppError) {
      report(io, asJson, String(error.code), error.message);
      return EXIT_FAILED;
    }
    if (error instanceof SettingsProblem) {
      report(io, asJson, "settings", error.message);
      return EXIT_FAILED;
    }
    report(io, asJson, "internal_error", error instanceof Error ? (error.stack ?? error.message) : String(error));
    return EXIT_FAILED;
  }
};
