import { Argument, type Command, Option } from "commander";
import type { KeyMode } from "../foundation/base/secrets.ts";
import { parseDay } from "../foundation/http/day-range.ts";
import type { Environment } from "../service/config.ts";
import { type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";

/** A value on a command line, as the help shows it. `T` is what the command gets. */
export interface Operand<T> {
  /** `<name>`, `<name...>` for several, `[name]` where it may be absent; empty for a switch. */
  readonly placeholder: string;
  readonly description: string;
  readonly choices?: readonly string[];
  readonly fallback?: string;
  readonly isRequired?: boolean;
  /** A switch that is on by default and is written `--no-…`. */
  readonly isNegated?: boolean;
  /** An option that cannot be given with this one. */
  readonly conflicts?: string;
  /** The name of the option where the command calls it otherwise. */
  readonly flag?: string;
  /** Reads what was given under a name. Throws `UsageError`. */
  readonly read: (given: unknown, name: string) => T;
}

type Operands = Readonly<Record<string, Operand<unknown>>>;
type NoOperands = Record<never, never>;
export type Values<F> = { readonly [K in keyof F]: F[K] extends Operand<infer T> ? T : never };

type Several<P extends string> = P extends `${string}...${string}` ? readonly string[] : string;
type Given<P extends string> = P extends `[${string}...]`
  ? Several<P>
  : P extends `[${string}`
    ? string | undefined
    : Several<P>;

/** The parser gives what the declaration says. */
const asGiven = <T>(given: unknown): T => given as T;

/** An argument; its placeholder says whether it is required and how many there can be. */
export const argument = <const P extends string>(placeholder: P, description = ""): Operand<Given<P>> => ({
  placeholder,
  description,
  read: asGiven,
});

/** An option with one value, or with several (`<name...>`). */
export const option = <const P extends string>(
  placeholder: P,
  description: string,
): Operand<Several<P> | undefined> => ({ placeholder, description, read: asGiven });

/** An option without a value. */
export const toggle = (description: string): Operand<boolean> => ({
  placeholder: "",
  description,
  read: (given) => given === true,
});

/** A switch that is on by default: `--no-…` turns it off. */
export const unless = (description: string): Operand<boolean> => ({ ...toggle(description), isNegated: true });

/** An argument or option that has one of some values. */
export const choice = <const T extends string>(
  placeholder: string,
  choices: readonly T[],
  description: string,
): Operand<T | undefined> => ({ placeholder, choices, description, read: asGiven });

/** An option that has several of some values. */
export const severalOf = <const T extends string>(
  placeholder: string,
  choices: readonly T[],
  description: string,
): Operand<readonly T[] | undefined> => ({ placeholder, choices, description, read: asGiven });

export const required = <T>(field: Operand<T | undefined>): Operand<T> => ({
  ...field,
  isRequired: true,
  // The parser refuses a command line without it.
  read: (given, name) => asGiven<T>(field.read(given, name)),
});

export const withDefault = <T extends string>(field: Operand<T | undefined>, fallback: T): Operand<T> => ({
  ...field,
  fallback,
  read: asGiven,
});

/** An option whose text is read by a function, if it is given. */
export const parsed = <T>(
  placeholder: string,
  description: string,
  parse: (text: string, name: string) => T,
): Operand<T | undefined> => ({
  placeholder,
  description,
  read: (given, name) => (typeof given === "string" ? parse(given, name) : undefined),
});

/** `--limit` */
export const limit = (fallback: number, max: number): Operand<number> => ({
  placeholder: "<n>",
  description: `how many, up to ${max}`,
  fallback: String(fallback),
  read(given) {
    const text = String(given);
    const number = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    if (number < 1 || number > max) throw new UsageError(`--limit: "${text}" is not a whole number from 1 to ${max}.`);
    return number;
  },
});

/** A time, in ms since 1970. */
export const time = (description: string, example = "2026-01-01T00:00:00Z"): Operand<number | undefined> =>
  parsed("<time>", description, (text, name) => {
    const ms = Date.parse(text);
    if (Number.isNaN(ms)) throw new UsageError(`--${name}: "${text}" is not a time such as ${example}.`);
    return ms;
  });

/** A day in UTC. */
export const day = (description: string) =>
  parsed("<date>", description, (text, name) => {
    const read = parseDay(text);
    if (read === null) throw new UsageError(`--${name}: "${text}" is not a date such as 2026-01-31.`, name);
    return read;
  });

/** `--account` of a command that needs one. */
export const accountOption = option("<name>", "name of the account; required when there are several");

const MODES: readonly KeyMode[] = ["live", "test"];

/** The options that choose the account and, of its `things`, those of live or of test keys. */
export const accountOptions = (things: string) => ({
  account: accountOption,
  mode: withDefault(choice("<mode>", MODES, `${things} of live or of test keys`), "live"),
});

/** What every command prints with. */
export interface Terminal {
  readonly io: Io;
  readonly isJson: boolean;
  /** `--env-file` */
  readonly envFile: string | null;
  /** Reads the settings again, for a reload. */
  readonly readEnvironment: () => Environment;
  /** The program with every command. */
  readonly wholeProgram: () => Promise<Command>;
  /** Prints a JSON document with `--json`, else the text. */
  print(data: unknown, text: () => string): void;
  /** Rows as wide as the terminal. */
  table(headings: readonly string[], rows: ReadonlyArray<readonly string[]>): string;
}

/** What a command works on, such as the database: its options, and how it is opened and closed. */
export interface Surroundings<C, S extends Operands = NoOperands> {
  readonly options: S;
  readonly open: (terminal: Terminal, input: Values<S>, work: (context: C) => Promise<void>) => Promise<void>;
}

interface GroupHelp {
  /** A sentence that begins with an imperative verb. */
  readonly description: string;
  /** A command line that works, without the program's name. */
  readonly example: string;
  readonly alias?: string;
  /** Shown below the example. */
  readonly notes?: string;
}

interface CommandSpec<A, O, C, S extends Operands> extends GroupHelp {
  /** What `--json` prints; null for a command without this option. */
  readonly json?: string | null;
  /** In the order of the command line. */
  readonly args?: A;
  /** By their names in camel case. */
  readonly options?: O;
  /** Throws `UsageError` for values that do not go together, before anything is opened. */
  readonly check?: (input: Values<A> & Values<O>) => void;
  readonly on?: Surroundings<C, S>;
  readonly run: (context: C & Terminal, input: Values<A> & Values<O> & Values<S>) => unknown;
}

/** The terminal and the settings that commands are given. */
type Session = Pick<Terminal, "io" | "readEnvironment" | "wholeProgram">;

/** A command, or a group of commands. */
export interface CommandTree extends GroupHelp {
  readonly addTo: (command: Command, given: Session) => void;
}
export type CommandTrees = Readonly<Record<string, CommandTree>>;

/** A group of commands, by their names. */
export const group = (help: GroupHelp, commands: CommandTrees): CommandTree => ({
  ...help,
  addTo: (parent, given) => addTrees(parent, given, commands),
});

/** Adds commands by their names. */
export const addTrees = (parent: Command, given: Session, commands: CommandTrees): void => {
  for (const [name, { description, example, alias, notes, addTo }] of Object.entries(commands)) {
    const added = parent.command(name).description(description);
    added.addHelpText("after", `\nExample:\n  postwarden ${example}`);
    if (notes !== undefined) added.addHelpText("after", `\n${notes}`);
    if (alias !== undefined) added.alias(alias);
    addTo(added, given);
  }
};

/** Declares a command. Its parser, its help and the types of `run` follow from the declaration. */
export const command = <
  A extends Operands = NoOperands,
  O extends Operands = NoOperands,
  C extends object = object,
  S extends Operands = NoOperands,
>({
  json = "print JSON",
  args,
  options,
  check,
  on,
  run,
  ...help
}: CommandSpec<A, O, C, S>): CommandTree => {
  const all: Operands = { ...on?.options, ...options };
  const operands = Object.entries<Operand<unknown>>(args ?? {});
  return {
    ...help,
    addTo(added, given) {
      if (json !== null) added.option("--json", json);
      for (const [name, field] of Object.entries(all)) added.addOption(optionOf(field.flag ?? name, field));
      for (const [, field] of operands) added.addArgument(argumentOf(field));
      added.action(async () => {
        const values = added.opts();
        const input: Record<string, unknown> = {};
        for (const [name, { read, flag = name }] of Object.entries(all)) input[name] = read(values[flag], dashed(flag));
        for (const [at, [name, { read }]] of operands.entries()) input[name] = read(added.processedArgs[at], name);
        check?.(input as never);
        const terminal = terminalOf(given, added.optsWithGlobals());
        // `input` and the context have what the declaration says.
        const work = async (context: object) =>
          void (await run({ ...context, ...terminal } as C & Terminal, input as never));
        await (on === undefined ? work({}) : on.open(terminal, input as never, work));
      });
    },
  };
};

const terminalOf = (
  { io, readEnvironment, wholeProgram }: Session,
  { json = false, envFile = null }: { readonly json?: boolean; readonly envFile?: string | null },
): Terminal => ({
  io,
  readEnvironment,
  wholeProgram,
  isJson: json,
  envFile,
  print: (data, text) => print(io, json, data, text),
  table: (headings, rows) => table(headings, rows, io.columns),
});

const dashed = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const optionOf = (
  name: string,
  { placeholder, description, choices, fallback, isRequired = false, isNegated = false, conflicts }: Operand<unknown>,
): Option => {
  const made = new Option(`--${isNegated ? "no-" : ""}${dashed(name)} ${placeholder}`.trimEnd(), description);
  if (choices !== undefined) made.choices(choices);
  if (fallback !== undefined) made.default(fallback);
  if (conflicts !== undefined) made.conflicts(conflicts);
  return made.makeOptionMandatory(isRequired);
};

const argumentOf = ({ placeholder, description, choices }: Operand<unknown>): Argument => {
  const made = new Argument(placeholder, description);
  return choices === undefined ? made : made.choices(choices);
};
