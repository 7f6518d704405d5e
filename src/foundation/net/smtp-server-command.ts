import { err, ok, type Result } from "../base/errors.ts";

/** A command line: the verb in upper case, and its argument. */
export interface SmtpCommand {
  readonly verb: string;
  readonly argument: string;
}

/** What MAIL or RCPT says. `address` is as written between the angle brackets, without a source route. */
export interface SmtpPath {
  readonly address: string;
  /** By keyword in upper case; null without a value. */
  readonly parameters: ReadonlyMap<string, string | null>;
}

/** RFC 5321 §4.1.1.2 f. A space behind the colon is tolerated, because some senders write one. */
const PATH = /^(FROM|TO)\s*:\s*<([^<>\s]*)>(?:\s+(.*))?$/i;
/** RFC 5321 appendix C: a source route must be accepted and should be ignored. */
const SOURCE_ROUTE = /^@[^\s,:@]+(?:,@[^\s,:@]+)*:/;
/** Control and invisible characters, which could only disguise an address. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\x00-\x1f\x7f-\x9f\u200b\u2060\ufeff]/;
const MAILBOX = /^[^@]+@[^@]+$/;

/** Splits a command line at its first space. */
export const splitCommand = (line: string): SmtpCommand => {
  const space = line.indexOf(" ");
  const verb = space === -1 ? line : line.slice(0, space);
  return { verb: verb.trim().toUpperCase(), argument: space === -1 ? "" : line.slice(space + 1).trim() };
};

/**
 * Reads the argument of MAIL (`FROM:<path> parameters`) or RCPT (`TO:<path> parameters`). Lenient about the address, since
 * senders of reports write some that the grammar forbids: `local@domain`, nothing (`FROM`), `postmaster` (`TO`).
 */
export const readPath = (keyword: "FROM" | "TO", argument: string): Result<SmtpPath, "address" | "parameter"> => {
  const [, found = "", path = "", rest = ""] = PATH.exec(argument) ?? [];
  if (found.toUpperCase() !== keyword) return err("address");
  const address = path.replace(SOURCE_ROUTE, "");
  const isPostmaster = keyword === "TO" && address.toLowerCase() === "postmaster";
  const isNull = keyword === "FROM" && address === "";
  if (UNSAFE.test(address) || !(MAILBOX.test(address) || isPostmaster || isNull)) return err("address");
  const parameters = new Map<string, string | null>();
  for (const text of rest.split(/\s+/).filter((word) => word !== "")) {
    const equals = text.indexOf("=");
    const name = (equals === -1 ? text : text.slice(0, equals)).toUpperCase();
    if (name === "" || UNSAFE.test(text) || parameters.has(name)) return err("parameter");
    parameters.set(name, equals === -1 ? null : text.slice(equals + 1));
  }
  return ok({ address, parameters });
};
