import { readFileSync } from "node:fs";
import { err, ok, type Result } from "../base/errors.ts";
import type { Environment } from "../config.ts";
import { describeFileError, UsageError } from "./io.ts";

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

/** Reads the settings in a file. Throws a UsageError when it cannot be read. */
export const readEnvironmentFile = (path: string): Environment => {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`--env-file: ${describeFileError(path, error)}`);
  }
  const parsed = parseEnvironmentFile(text);
  if (parsed.ok) return parsed.value;
  throw new UsageError(`--env-file: ${path}: line ${parsed.error.line} is not NAME=value`);
};
