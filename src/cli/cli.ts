import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { AppError } from "../base/errors.ts";
import { DATA_DIR_SETTING, type Environment, SettingsError } from "../config.ts";
import { VERSION } from "../version.ts";
import { addAccountCommands, addCreditCommands } from "./accounts.ts";
import { addBlocklistCommands } from "./blocklist.ts";
import { addDmarcCommands } from "./dmarc.ts";
import { addDoctorCommand } from "./doctor.ts";
import { parseEnvironmentFile } from "./environment-file.ts";
import { addInspectCommands } from "./inspect.ts";
import { CommandFailed, type Io, printSafely, UsageError } from "./io.ts";
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
Exit status: 0 done, 1 failed, 2 wrong usage, 3 listed (--fail-on), 4 not everything could be checked (dmarc health). Data goes to standard output, everything else to standard error.
Settings are environment variables; \`postwarden config\` shows those in force.`;

const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

interface GlobalOptions {
  readonly dataDir?: string;
  readonly envFile?: string;
}

const readEnvironmentFile = (path: string): Environment => {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`--env-file ${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  const parsed = parseEnvironmentFile(text);
  if (parsed.ok) return parsed.value;
  throw new UsageError(`--env-file ${path}: line ${parsed.error.line} is not NAME=value.`);
};

/** Where a variable is set, it wins over the file; `--data-dir` wins over both. */
const environmentOf = (environment: Environment, { dataDir, envFile }: GlobalOptions): Environment => ({
  ...(envFile === undefined ? {} : readEnvironmentFile(envFile)),
  ...environment,
  ...(dataDir === undefined ? {} : { [DATA_DIR_SETTING]: dataDir }),
});

/** The whole command line, bound to where it prints. With `asJson` the parser leaves errors to the caller. */
export const createProgram = (given: Io, asJson: boolean): Command => {
  let environment = given.environment;
  const io: Io = {
    ...given,
    get environment() {
      return environment;
    },
  };
  const program = new Command("postwarden")
    .description("Verifies email addresses, watches DNS blocklists, reads DMARC reports; and shows the evidence.")
    .version(VERSION, "-V, --version", "print the version")
    .option("--data-dir <dir>", `the data directory, in place of ${DATA_DIR_SETTING}`)
    .option("--env-file <file>", "a file of settings, such as the EnvironmentFile of the service's unit")
    .hook("preAction", (_, command) => {
      environment = environmentOf(given.environment, command.optsWithGlobals<GlobalOptions>());
    })
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
      .configureHelp({ showGlobalOptions: true })
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

/** What the interface would say in fields, as a sentence. */
const wordsOf = ({ message, details }: AppError): string =>
  [
    message,
    ...(details.issues ?? []).map((issue) => [issue.path, issue.message].filter((part) => part !== "").join(": ")),
  ].join("\n  ");

const usageOf = ({ code, message }: CommanderError): string =>
  code === "commander.help" ? "A command is missing; --help lists them." : message.replace(/^error: /, "");

/** Runs one command line (without the program's name) and answers the exit status. */
export const runCli = async (args: readonly string[], streams: Io): Promise<number> => {
  const io = printSafely(streams);
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
      report(io, asJson, String(error.code), error instanceof AppError ? wordsOf(error) : error.message);
      return error instanceof CommandFailed ? error.status : EXIT_FAILED;
    }
    if (error instanceof SettingsError) {
      report(io, asJson, "settings", error.message);
      return EXIT_FAILED;
    }
    report(io, asJson, "internal_error", error instanceof Error ? (error.stack ?? error.message) : String(error));
    return EXIT_FAILED;
  }
};
