import type { Argument, Command, Option } from "commander";

/** An option as the help shows it: `--limit <n>`, what it is for, and its words for completion. */
interface CommandOption {
  readonly flags: string;
  readonly description: string;
  readonly long: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** A command or group of the command line. */
export interface CommandNode {
  /** From the program down: `["keys", "create"]`; empty for the program itself. */
  readonly path: readonly string[];
  readonly usage: string;
  readonly description: string;
  readonly options: readonly CommandOption[];
  /** A command line that works; empty for none. */
  readonly example: string;
  readonly commands: readonly CommandNode[];
  readonly takesFiles: boolean;
}

const optionOf = ({ flags, description, long, required, optional, argChoices }: Option): CommandOption => ({
  ...{ flags, description, long: long ?? flags, takesValue: required || optional, choices: argChoices ?? [] },
});

const exampleOf = (command: Command): string => {
  let text = "";
  // Texts that were added to the help are only written, never returned.
  const writeOut = (part: string): void => {
    text += part;
  };
  command.configureOutput({ writeOut }).outputHelp();
  return /^Example:\n(.+)$/m.exec(text)?.[1]?.trim() ?? "";
};

/** A command as data, read from the program itself. */
export const commandTree = (command: Command, path: readonly string[] = []): CommandNode => ({
  path,
  usage: command.usage().replace("[options] ", ""),
  description: command.description(),
  options: command.options.map(optionOf),
  example: exampleOf(command),
  commands: command.commands
    .filter((inner) => inner.name() !== "help")
    .map((inner) => commandTree(inner, [...path, inner.name()])),
  takesFiles: command.registeredArguments.some((argument: Argument) => /file/i.test(argument.name())),
});

/** A command and all below it. */
export const allCommands = (node: CommandNode): readonly CommandNode[] => [node, ...node.commands.flatMap(allCommands)];
