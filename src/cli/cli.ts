import { Command, CommanderError } from "commander";
import { AppError, SettingsError } from "../foundation/base/errors.ts";
import { DATA_DIR_SETTING, type Environment, hasSettings } from "../service/config.ts";
import { VERSION } from "../service/version.ts";
import { readEnvironmentFile, readSettingsFile } from "./environment-file.ts";
import { addTrees } from "./command.ts";
import { loadCommands } from "./command-modules.ts";
import { CommandFailed, type Io, printSafely, UsageError } from "./io.ts";

const EXIT_OK = 0;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

const HELP_FOOTER = `
Example:
  postwarden verify someone@example.com --evidence

Data goes to standard output, everything else to standard error.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 listed (--fail-on),
4 not everything could be checked (dmarc health).
Settings are environment variables; \`postwarden config\` prints the effective ones.
\`postwarden help\` lists the guides of the manual.`;

const everyCommand = (command: Command): Command[] => [command, ...command.commands.flatMap(everyCommand)];

interface GlobalOptions {
  readonly dataDir?: string;
  readonly envFile?: string;
}

/** An empty variable counts as not set. */
const withoutEmpty = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ""));

/** A variable overrides the file; `--data-dir` overrides both. */
const environmentOf = (environment: Environment, { dataDir, envFile }: GlobalOptions): Environment => ({
  ...(envFile === undefined ? {} : readEnvironmentFile(envFile)),
  ...withoutEmpty(environment),
  ...(dataDir === undefined ? {} : { [DATA_DIR_SETTING]: dataDir }),
});

/**
 * Reads the environment of a command; every call reads the file again. The settings file of the package is used where
 * neither options nor variables say otherwise.
 */
const environmentReader = (given: Io, options: GlobalOptions, asJson: boolean): (() => Environment) => {
  const { environment, settingsFile: path } = given;
  const isNamed = options.envFile !== undefined || options.dataDir !== undefined || hasSettings(environment);
  if (isNamed || path === null) return () => environmentOf(environment, options);
  return () => {
    const settings = readSettingsFile(path);
    if (settings !== null && given.status !== null && !asJson) given.err(`Settings: ${path}`);
    return { ...settings, ...withoutEmpty(environment) };
  };
};

export interface ProgramOptions {
  /** The parser does not print errors. */
  readonly asJson?: boolean;
  /** The command line for which the commands are loaded; by default all are. */
  readonly args?: readonly string[];
}

/** The command line. */
export const createProgram = async (
  given: Io,
  { asJson = false, args = [] }: ProgramOptions = {},
): Promise<Command> => {
  const commands = await loadCommands(args);
  let readEnvironment = (): Environment => given.environment;
  let environment: Environment | null = null;
  const io: Io = {
    ...given,
    get environment() {
      // Read at the first use: some commands work without settings.
      environment ??= readEnvironment();
      return environment;
    },
  };
  const program = new Command("postwarden")
    .description("Verify email addresses, monitor DNS blocklists and process DMARC reports.")
    .version(VERSION, "-V, --version", "print the version")
    .option("--data-dir <dir>", `data directory, overrides ${DATA_DIR_SETTING}`)
    .option("--env-file <file>", "file of settings (default: /etc/postwarden.env, when no POSTWARDEN_ variable is set)")
    .hook("preAction", (_, command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      readEnvironment = environmentReader(given, options, asJson);
      environment = options.envFile === undefined ? null : readEnvironment();
    })
    .addHelpText("after", HELP_FOOTER)
    .helpCommand(false);
  const session = { io, readEnvironment: () => readEnvironment(), wholeProgram: () => createProgram(given) };
  for (const trees of commands) addTrees(program, session, trees);
  for (const command of everyCommand(program)) {
    if (command !== program && command.commands.length > 0)
      command.helpCommand("help [command]", "Show help for a command.");
    command
      .helpOption("-h, --help", "show help")
      .exitOverride()
      .configureHelp({ showGlobalOptions: true })
      .showHelpAfterError("(run with --help for usage)")
      .configureOutput({
        outputError: (text, write) => write(withCommandMeant(text)),
        writeOut: (text) => io.out(text.trimEnd()),
        writeErr: (text) => {
          if (!asJson) io.err(text.trimEnd());
        },
      });
  }
  return program;
};

/** An API error with its issues as text. */
const describeAppError = ({ message, details }: AppError): string =>
  [
    message,
    ...(details.issues ?? []).map((issue) => [issue.path, issue.message].filter((part) => part !== "").join(": ")),
  ].join("\n  ");

/** Commands by what they are called elsewhere, such as on pages and in other products. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...{ jobs: "lists", bulk: "lists", check: "verify", validate: "verify" },
  ...{ blacklist: "blocklist", dnsbl: "blocklist", rbl: "blocklist", targets: "blocklist targets" },
  ...{ domains: "dmarc domains", reports: "dmarc import", sources: "dmarc sources" },
  ...{ suppressions: "suppress", toxic: "suppress", settings: "config", log: "audit", gdpr: "erase" },
};

/** An error of the parser with the command that was meant, where its name is another word for it. */
const withCommandMeant = (text: string): string => {
  const meant = OTHER_NAMES[/^error: unknown command '(\w+)'$/m.exec(text)?.[1]?.toLowerCase() ?? ""];
  return meant === undefined ? text : `${text.trimEnd()}\n(Did you mean ${meant}?)\n`;
};

const describeUsage = ({ code, message }: CommanderError): string =>
  code === "commander.help"
    ? "No command given. Run with --help for the list of commands."
    : withCommandMeant(message)
        .trimEnd()
        .replace(/^error: /, "");

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly status: number;
}

const failureOf = (error: unknown): Failure => {
  if (error instanceof CommanderError) return { code: "usage", message: describeUsage(error), status: EXIT_USAGE };
  if (error instanceof UsageError) return { code: error.code, message: error.message, status: EXIT_USAGE };
  if (error instanceof CommandFailed) return { code: error.code, message: error.message, status: error.status };
  if (error instanceof AppError) return { code: error.code, message: describeAppError(error), status: EXIT_FAILED };
  if (error instanceof SettingsError) return { code: "settings", message: error.message, status: EXIT_FAILED };
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: "internal_error", message, status: EXIT_FAILED };
};

/** Runs a command line (without the program name) and returns the exit status. */
export const runCli = async (args: readonly string[], streams: Io): Promise<number> => {
  const io = printSafely(streams);
  const asJson = args.includes("--json");
  try {
    const program = await createProgram(io, { asJson, args });
    await program.parseAsync([...args], { from: "user" });
    return EXIT_OK;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT_OK;
    const { code, message, status } = failureOf(error);
    if (asJson) io.err(JSON.stringify({ error: code, message }));
    // Without --json the parser has printed its errors.
    else if (!(error instanceof CommanderError)) io.err(`postwarden: ${message}`);
    return status;
  }
};
