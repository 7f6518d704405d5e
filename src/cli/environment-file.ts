import { accessSync, constants, readFileSync } from "node:fs";
import { ownUserId, userNameOf } from "../foundation/base/private-file.ts";
import { err, ok, type Result, errorCode } from "../foundation/base/errors.ts";
import type { Environment } from "../service/config.ts";
import { CommandFailed, describeFileError, UsageError } from "./io.ts";

const LINE_FORM = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/;

const unquoted = (value: string): string => /^(["'])(.*)\1$/s.exec(value)?.[2] ?? value;

/**
 * Parses lines `NAME=value`, as EnvironmentFile of systemd and `docker run --env-file` do: a value may be quoted, lines
 * that begin with # or ; are comments. The error names the first invalid line.
 */
const parseEnvironmentFile = (text: string): Result<Environment, { readonly line: number }> => {
  const values: Record<string, string> = {};
  for (const [at, raw] of text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#") || line.startsWith(";")) continue;
    const [, name, value] = LINE_FORM.exec(line) ?? [];
    if (name === undefined || value === undefined) return err({ line: at + 1 });
    values[name] = unquoted(value.trim());
  }
  return ok(values);
};

/**
 * The settings in the file of the package, for commands without options and variables that say otherwise; null where
 * there is no such file. Throws a CommandFailed when this user may not read it: the command would use other data.
 */
export const readSettingsFile = (path: string): Environment | null => {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(error))) return null;
    throw new CommandFailed(
      `${path} has the settings of the service, and ${userNameOf(ownUserId())} may not read it. Run the command as root or postwarden: sudo -u postwarden postwarden …, or pass --env-file or --data-dir.`,
      "settings_file",
    );
  }
  return readEnvironmentFile(path);
};

/** Reads the settings in a file. Throws a UsageError when it cannot be read. */
export const readEnvironmentFile = (path: string): Environment => {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`Settings file ${describeFileError(path, error)}`);
  }
  const parsed = parseEnvironmentFile(text);
  if (parsed.ok) return parsed.value;
  throw new UsageError(`Settings file ${path}: line ${parsed.error.line} is not NAME=value`);
};
