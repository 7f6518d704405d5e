import { type Guide, guideOf } from "./guides.ts";

/** A command of the command line, with its options. */
export interface CommandDoc {
  /** From the program down; empty for the program itself. */
  readonly path: readonly string[];
  readonly usage: string;
  readonly description: string;
  readonly options: ReadonlyArray<{ readonly flags: string; readonly description: string }>;
  /** A command line that works; empty for none. */
  readonly example: string;
  readonly commands: readonly CommandDoc[];
}

interface SettingDoc {
  readonly name: string;
  readonly description: string;
  readonly defaultText: string;
}

interface MetricDoc {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labelNames: readonly string[];
}

interface ReasonDoc {
  readonly verdict: string;
  readonly quality: number;
  readonly confidence: number;
  readonly meaning: string;
}

/** What the reference is made from; each is declared where it is used. */
export interface ReferenceSources {
  readonly settings: readonly SettingDoc[];
  /** The program itself with all its commands. */
  readonly commands: CommandDoc;
  readonly reasons: Readonly<Record<string, ReasonDoc>>;
  readonly signals: Readonly<Record<string, { readonly description?: string | undefined }>>;
  readonly metrics: readonly MetricDoc[];
}

/** A text in a cell of a table. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

const table = (head: readonly string[], rows: ReadonlyArray<readonly string[]>): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");

const page = (slug: string, title: string, parts: readonly string[]): Guide =>
  guideOf(slug, `${[`# ${title}`, ...parts].join("\n\n")}\n`);

const settingsPage = (settings: readonly SettingDoc[]): Guide =>
  page("reference-settings", "Settings", [
    "Settings are environment variables, or lines of the file that `--env-file` names. `postwarden config` checks them and prints the values in force; an unknown `POSTWARDEN_` name or an invalid value is an error.",
    ...settings.flatMap(({ name, description, defaultText }) => [
      `## ${name}`,
      description,
      `Default: ${/^\S+$/.test(defaultText) && defaultText !== "none" ? `\`${defaultText}\`` : defaultText}.`,
    ]),
  ]);

const withInner = (command: CommandDoc): readonly CommandDoc[] => [command, ...command.commands.flatMap(withInner)];

const optionsTable = ({ options }: CommandDoc): string[] =>
  options.length === 0
    ? []
    : [
        table(
          ["Option", "Meaning"],
          options.map(({ flags, description }) => [`\`${flags}\``, description]),
        ),
      ];

const commandSection = (command: CommandDoc, heading: string): string[] => {
  const { path, usage, description, example, commands } = command;
  const call = ["postwarden", ...path, usage].join(" ").trim();
  return [
    `${heading} ${path.join(" ")}`,
    description,
    ...(commands.length > 0 ? [] : [`\`${call}\``]),
    ...optionsTable(command),
    ...(example === "" ? [] : [`\`\`\`sh\n${example}\n\`\`\``]),
  ];
};

const commandsPage = (program: CommandDoc): Guide =>
  page("reference-commands", "Commands", [
    program.description,
    "Data goes to standard output, everything else to standard error. Every command has `--help`, and these options:",
    ...optionsTable(program),
    ...program.commands.flatMap((command) =>
      withInner(command).flatMap((one) => commandSection(one, one === command ? "##" : "###")),
    ),
  ]);

const verdictsPage = ({ reasons, signals }: ReferenceSources): Guide => {
  const all = Object.entries(reasons);
  const verdicts = [...new Set(all.map(([, { verdict }]) => verdict))];
  const rowsOf = (wanted: string) => all.filter(([, { verdict }]) => verdict === wanted);
  return page("reference-verdicts", "Verdicts and reasons", [
    "Every `sub_status` has one verdict. `quality_score` says how good it is to mail the address, before deductions for `signals`; `confidence` says how certain the verdict is. [How a verdict is reached](verify-an-address.md#how-a-verdict-is-reached)",
    ...verdicts.flatMap((verdict) => [
      `## ${verdict}`,
      table(
        ["sub_status", "Reason", "quality_score", "confidence"],
        rowsOf(verdict).map(([name, { meaning, quality, confidence }]) => [
          `\`${name}\``,
          meaning,
          String(quality),
          String(confidence),
        ]),
      ),
    ]),
    "## Signals",
    "Each signal is `pass`, `warn` (lowers the quality), `fail` (speaks against the address), `unknown` (no usable response) or `skipped` (not checked).",
    table(
      ["Signal", "Meaning"],
      Object.entries(signals).map(([name, { description }]) => [`\`${name}\``, description ?? ""]),
    ),
  ]);
};

const metricsPage = (metrics: readonly MetricDoc[]): Guide =>
  page("reference-metrics", "Metrics", [
    "What `/metrics` shows in the text format of Prometheus. [How to turn it on](running-it.md#metrics)",
    table(
      ["Metric", "Type", "Meaning"],
      metrics.map(({ name, type, labelNames, help }) => [
        `\`${name}\``,
        type,
        labelNames.length === 0 ? help : `${help} Labels: ${labelNames.join(", ")}.`,
      ]),
    ),
  ]);

/** The pages of the reference in Markdown, made from what the source declares. */
export const referencePages = (sources: ReferenceSources): readonly Guide[] => [
  settingsPage(sources.settings),
  commandsPage(sources.commands),
  verdictsPage(sources),
  metricsPage(sources.metrics),
];
