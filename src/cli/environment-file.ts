import { err, ok, type Result } from "../base/errors.ts";
import type { Environment } from "../config.ts";

const LINE_FORM = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/;

const unquoted = (value: string): string => /^(["'])(.*)\1$/s.exec(value)?.[2] ?? value;

/**
 * Reads `NAME=value` lines, as EnvironmentFile of systemd and `docker run --env-file` have them: a value may stand in
 * quotes, lines that begin with # or ; are comments. The error names the first line that is none of these.
 */
export const parseEnvironmentFile = (text: string): Result<Environment, { readonly line: number }> => {
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
