import { type Command, Option } from "commander";
import type { KeyMode } from "../foundation/base/secrets.ts";
import { UsageError } from "./io.ts";

export interface CommandHelp {
  /** A sentence that begins with an imperative verb. */
  readonly description: string;
  /** A command line that works, without the program's name. */
  readonly example: string;
  /** What `--json` prints. */
  readonly json?: string;
}

/** Adds a group of commands. */
export const addGroup = (parent: Command, name: string, { description, example }: Omit<CommandHelp, "json">): Command =>
  parent.command(name).description(description).addHelpText("after", `\nExample:\n  postwarden ${example}`);

/** Adds a command with the option `--json`. */
export const addCommand = (parent: Command, name: string, { json = "print JSON", ...help }: CommandHelp): Command =>
  addGroup(parent, name, help).option("--json", json);

/** The options of `ofAccount`. */
export interface AccountOptions {
  readonly account?: string;
  readonly mode: KeyMode;
  readonly json?: boolean;
}

/** Adds the options that choose the account and, of its `things`, those of live or of test keys. */
export const ofAccount = (command: Command, things: string): Command =>
  command
    .option("--account <name>", "name of the account; required when there are several")
    .addOption(
      new Option("--mode <mode>", `${things} of live or of test keys`).choices(["live", "test"]).default("live"),
    );

/** Reads a time of an option, in ms since 1970. */
export const readTime = (name: string, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new UsageError(`--${name}: "${text}" is not a time such as 2026-01-01T00:00:00Z.`);
  return ms;
};

/** Reads `--limit`. */
export const readLimit = (text: string, max: number): number => {
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > max) throw new UsageError(`--limit: "${text}" is not a whole number from 1 to ${max}.`);
  return limit;
};
