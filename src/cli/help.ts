import type { Command } from "commander";
import { GUIDES, type Guide, sectionOf, terminalText } from "../service/docs/guides.ts";
import { argument, command } from "./command.ts";
import { commandTree } from "./command-tree.ts";
import { type Io, UsageError } from "./io.ts";

/** Longer lines are hard to read. */
const COLUMNS_MAX = 100;

/** The guides, then the pages of the reference that are text. */
const topicsOf = async (program: Command): Promise<readonly Guide[]> => {
  const { referenceGuides } = await import("../service/manual.ts");
  return [...GUIDES, ...referenceGuides(commandTree(program))];
};

const topicList = (topics: readonly Guide[]): string => {
  const width = Math.max(...topics.map(({ slug }) => slug.length));
  return [
    "Topics of the manual (postwarden help TOPIC):",
    ...topics.map(({ slug, title }) => `  ${slug.padEnd(width)}  ${title}`),
  ].join("\n");
};

/** A guide by its topic, or one section of it: `lists#results`. */
const guideNamed = (topics: readonly Guide[], name: string): Guide | undefined => {
  const [topic, section] = name.split("#", 2);
  const guide = topics.find(({ slug }) => slug === topic);
  return guide === undefined || section === undefined ? guide : sectionOf(guide, section);
};

/** Prints a guide: with colours on a terminal, plain elsewhere. */
const printGuide = (io: Io, guide: Guide): void => {
  const columns = Number.isFinite(io.columns) ? Math.min(io.columns, COLUMNS_MAX) : 0;
  if (io.stdoutKind === "terminal" && io.styled !== undefined)
    io.styled(`${terminalText(guide, { colors: true, columns }).trimEnd()}\n`);
  else io.out(terminalText(guide, { colors: false, columns }).trimEnd());
};

/** `help`: a guide of the manual, or the help of a command. A guide comes first where both have one name. */
const HELP = command({
  description: "Print a guide of the manual, or the help of a command; without a topic, list both.",
  example: "help lists",
  json: null,
  args: { topic: argument("[topic...]") },
  async run({ io, wholeProgram }, { topic: words }) {
    const whole = await wholeProgram();
    // Describing a program takes over its output.
    const topics = await topicsOf(await wholeProgram());
    const guide = words.length === 1 ? guideNamed(topics, words[0] ?? "") : undefined;
    if (guide !== undefined) return printGuide(io, guide);
    if (words.length === 0) return io.out(`${whole.helpInformation()}\n${topicList(topics)}`);
    const named = words.reduce<Command | undefined>(
      (group, word) => group?.commands.find((inner) => [inner.name(), ...inner.aliases()].includes(word)),
      whole,
    );
    if (named === undefined)
      throw new UsageError(
        `help: There is no topic or command "${words.join(" ")}". \`postwarden help\` lists all.\n${topicList(topics)}`,
      );
    return named.outputHelp();
  },
});

export const HELP_COMMANDS = { help: HELP };
