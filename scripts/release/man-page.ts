import { allCommands, type CommandNode } from "../../src/cli/command-tree.ts";

/** Text for roff: no line is read as a request, and a hyphen can be copied as one. */
const roff = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1");

const paragraph = (text: string): string => `.PP\n${roff(text)}`;
const entry = (term: string, text: string): string => `.TP\n\\fB${roff(term)}\\fR\n${roff(text)}`;

const commandText = ({ path, usage, description, options, example, commands }: CommandNode): string[] => {
  if (commands.length > 0) return [];
  return [
    `.SS "${roff([...path, usage].join(" ").trim())}"`,
    roff(description),
    ...options.map(({ flags, description: text }) => entry(flags, text)),
    ...(example === "" ? [] : [".PP\nExample:\n.PP\n.nf", roff(`    ${example}`), ".fi"]),
  ];
};

const FILES = {
  "/etc/postwarden.env": "Settings of the service, NAME=value per line. Readable by root and the group postwarden.",
  "/var/lib/postwarden": "Data directory: database, uploaded lists, certificates.",
  "/usr/share/doc/postwarden":
    "README, manual as text and configurations of reverse proxies. The manual is in the program, too: postwarden help.",
};

const EXIT_STATUS = {
  "0": "Done.",
  "1": "Failed.",
  "2": "Wrong usage.",
  "3": "Listed (--fail-on).",
  "4": "Not everything could be checked (dmarc health).",
};

const SIGNALS = {
  "SIGTERM, SIGINT": "Stop the service gracefully; a second one stops it immediately.",
  SIGHUP:
    "Load certificates and read the file of --env-file again. The log names changed settings that need a restart.",
};

const entries = (table: Readonly<Record<string, string>>): string[] =>
  Object.entries(table).map(([term, text]) => entry(term, text));

/** The manual page postwarden(1) in roff, from the command line itself. */
export const manPage = (
  root: CommandNode,
  {
    version,
    date,
    settings,
    topics,
  }: {
    readonly version: string;
    readonly date: string;
    readonly settings: readonly string[];
    readonly topics: ReadonlyArray<{ readonly slug: string; readonly title: string }>;
  },
): string =>
  [
    `.TH POSTWARDEN 1 "${date}" "Postwarden ${version}"`,
    ".SH NAME",
    "postwarden \\- verify email addresses, monitor DNS blocklists and process DMARC reports",
    ".SH SYNOPSIS",
    "\\fBpostwarden\\fR \\fIcommand\\fR [\\fIoptions\\fR]",
    ".SH DESCRIPTION",
    roff(
      "Postwarden verifies email addresses by querying their mail servers, checks domains and IP addresses against DNS blocklists, and receives DMARC reports. It is one executable with an embedded database.",
    ),
    paragraph("Data goes to standard output, everything else to standard error."),
    ".SH OPTIONS",
    ...root.options.map(({ flags, description }) => entry(flags, description)),
    ".SH COMMANDS",
    roff("Every command has --help."),
    ...allCommands(root).flatMap(commandText),
    ".SH TOPICS",
    roff("Guides of the manual, which `postwarden help TOPIC` prints and the service shows under /docs."),
    ...topics.map(({ slug, title }) => entry(slug, title)),
    ".SH ENVIRONMENT",
    roff(
      "Settings. `postwarden config` prints the effective values; `postwarden help reference-settings` describes each.",
    ),
    ".PP",
    roff(settings.join(", ")),
    ".SH FILES",
    ...entries(FILES),
    ".SH SIGNALS",
    ...entries(SIGNALS),
    ".SH EXIT STATUS",
    ...entries(EXIT_STATUS),
    "",
  ].join("\n");
