import { choice, command, required } from "./command.ts";
import { allCommands, type CommandNode, commandTree } from "./command-tree.ts";

const wordsOf = ({ commands, options }: CommandNode): readonly string[] => [
  ...commands.map(({ path }) => path.at(-1) ?? ""),
  ...options.map(({ long }) => long),
];

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The words that may follow a command: its own, and the options that every command has. */
const choicesOf = (root: CommandNode, node: CommandNode): readonly string[] =>
  node === root
    ? [...wordsOf(root), "--help"]
    : [...new Set([...wordsOf(node), ...root.options.map(({ long }) => long), "--help"])];

const choicesByOption = (root: CommandNode): ReadonlyMap<string, readonly string[]> =>
  new Map(
    allCommands(root)
      .flatMap(({ options }) => options)
      .filter(({ choices }) => choices.length > 0)
      .map(({ long, choices }) => [long, choices]),
  );

const bashCases = (root: CommandNode): string[] =>
  allCommands(root).map(
    (node) => `    ${quoted(node.path.join(" "))}) words=${quoted(choicesOf(root, node).join(" "))} ;;`,
  );

/** Commands and options for bash; file names where no command or option is being typed. */
export const bashCompletion = (root: CommandNode): string =>
  [
    "# Written by: postwarden completion bash",
    "_postwarden() {",
    `  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path="" word words`,
    "  case $previous in",
    ...[...choicesByOption(root)].map(
      ([long, choices]) =>
        `    ${long}) COMPREPLY=($(compgen -W ${quoted(choices.join(" "))} -- "$current")); return ;;`,
    ),
    ...fileOptions(root).map((long) => `    ${long}) COMPREPLY=($(compgen -f -- "$current")); return ;;`),
    "  esac",
    `  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do`,
    '    case "$path $word" in',
    ...allCommands(root)
      .filter(({ path }) => path.length > 0)
      .map(({ path }) => `      ${quoted(` ${path.join(" ")}`)}) path=${quoted(` ${path.join(" ")}`)} ;;`),
    "    esac",
    "  done",
    `  case \${path# } in`,
    ...bashCases(root),
    "  esac",
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    `  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))`,
    "}",
    "complete -o filenames -F _postwarden postwarden",
    "",
  ].join("\n");

/** Options whose value is a file or directory. */
const fileOptions = (root: CommandNode): readonly string[] => [
  ...new Set(
    allCommands(root)
      .flatMap(({ options }) => options)
      .filter(({ flags }) => /<(file|dir|path)/.test(flags))
      .map(({ long }) => long),
  ),
];

/** For zsh: the same table, with descriptions of commands. */
export const zshCompletion = (root: CommandNode): string =>
  [
    "#compdef postwarden",
    "# Written by: postwarden completion zsh",
    "_postwarden() {",
    '  local position="" word',
    "  local -a commands options",
    `  for word in "\${(@)words[2,CURRENT-1]}"; do`,
    '    case "$position $word" in',
    ...allCommands(root)
      .filter(({ path }) => path.length > 0)
      .map(({ path }) => `      ${quoted(` ${path.join(" ")}`)}) position=${quoted(` ${path.join(" ")}`)} ;;`),
    "    esac",
    "  done",
    `  case \${position# } in`,
    ...allCommands(root).map((node) => {
      const described = node.commands.map(({ path, description }) =>
        quoted(`${path.at(-1) ?? ""}:${description.replaceAll(":", "\\:")}`),
      );
      const options = choicesOf(root, node).filter((word) => word.startsWith("-"));
      return `    ${quoted(node.path.join(" "))}) commands=(${described.join(" ")}); options=(${options.join(" ")}) ;;`;
    }),
    "  esac",
    "  if [[ $words[CURRENT] == -* ]]; then compadd -- $options",
    "  elif (( $#commands )); then _describe command commands",
    "  else _files",
    "  fi",
    "}",
    '_postwarden "$@"',
    "",
  ].join("\n");

/** For fish: each command and option with its description. */
export const fishCompletion = (root: CommandNode): string =>
  [
    "# Written by: postwarden completion fish",
    "function __postwarden_is_at",
    "    set -l words (commandline -opc)[2..-1]",
    "    set words (string match -v -- '-*' $words)",
    '    test "$words" = "$argv"',
    "end",
    ...allCommands(root).flatMap((node) => [
      ...node.commands.map(
        ({ path, description }) =>
          `complete -c postwarden -f -n ${quoted(`__postwarden_is_at ${node.path.join(" ")}`)} -a ${path.at(-1) ?? ""} -d ${quoted(description)}`,
      ),
      ...node.options.map(
        ({ long, description, takesValue, choices }) =>
          `complete -c postwarden${node === root ? "" : ` -n ${quoted(seenIn(node))}`} -l ${long.slice(2)}${takesValue ? " -r" : ""}${
            choices.length > 0 ? ` -f -a ${quoted(choices.join(" "))}` : ""
          } -d ${quoted(description)}`,
      ),
    ]),
    "",
  ].join("\n");

const seenIn = ({ path }: CommandNode): string =>
  path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");

const SHELLS = ["bash", "zsh", "fish"] as const;
const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;

const COMPLETION = command({
  description: "Print the script that completes commands and options in a shell; the Debian package installs it.",
  example: "completion bash > /etc/bash_completion.d/postwarden",
  json: null,
  args: { shell: required(choice("<shell>", SHELLS, "the shell")) },
  async run({ io, wholeProgram }, { shell }) {
    io.out(SCRIPTS[shell](commandTree(await wholeProgram())).trimEnd());
  },
});

export const COMPLETION_COMMANDS = { completion: COMPLETION };
