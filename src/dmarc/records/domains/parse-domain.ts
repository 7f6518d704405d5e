import { isIP } from "node:net";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import { describeProblem } from "../../../foundation/mail/address-problem.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";
import { isPublicSuffix } from "../../../foundation/mail/organisational-domain.ts";

/** Names that never resolve on the public internet: RFC 6761, 6762, 7686, 8375, 9476, and common private names. */
const SPECIAL_ENDINGS = ["localhost", "local", "invalid", "test", "onion", "alt", "internal", "lan", "arpa"];
/** For documentation (RFC 6761 §6.5); used with test keys. */
const EXAMPLE_ENDING = "example";

/**
 * Reads the domain that a user wants to monitor: lower-case A-labels, below a public suffix, without a final dot. The error is a
 * sentence. Names under `.example` are for test keys only.
 */
export const parseMonitoredDomain = (text: string, mode: KeyMode): Result<string, string> => {
  const trimmed = text.trim();
  if (trimmed === "") return err("Must be a domain, such as example.com.");
  const problem = findOtherForm(trimmed);
  if (problem !== null) return err(problem);
  return readDomain(trimmed.replace(/(?<=[^.])\.$/, ""), mode);
};

/** Recognizes texts that are not a domain, and says what to write instead. */
const findOtherForm = (text: string): string | null => {
  if (text.includes("://")) return "Give the domain only, without http:// and path.";
  if (isIP(text) !== 0 || /^\[.*\]$/.test(text))
    return "This is an IP address; DMARC is about domains. Give the domain.";
  if (text.includes("@")) return "This is an email address: give the domain only, the part after the @.";
  if (text.includes("/")) return "Give the domain only, without a path.";
  if (text.includes(":")) return "Give the domain only, without a port.";
  const underscored = /^(?:[^.]+\._report\.)?_dmarc\.(.+)$/i.exec(text)?.[1];
  if (underscored !== undefined) return `Give the domain that the record is about: ${underscored}.`.replace("..", ".");
  if (text.includes("_")) return "Give the domain that mail is sent from; such names have no underscore.";
  if (text.startsWith("*.")) return "Give the domain only: its record applies to all names below it.";
  return null;
};

const readDomain = (text: string, mode: KeyMode): Result<string, string> => {
  const parsed = parseDomain(text);
  if (!parsed.ok) return err(`Not a domain: ${describeProblem(parsed.error).replace(/^The address has/, "it has")}`);
  const { ascii, unicode } = parsed.value;
  if (!ascii.includes(".")) return err(`"${unicode}" is a single label, no domain on the public internet.`);
  const isBelow = (ending: string) => ascii.endsWith(`.${ending}`);
  const special = SPECIAL_ENDINGS.find(isBelow);
  if (special !== undefined) return err(`Names under .${special} are not on the public internet.`);
  if (isBelow(EXAMPLE_ENDING)) {
    return mode === "test" ? ok(ascii) : err("Names under .example are accepted with test keys only.");
  }
  if (isPublicSuffix(ascii)) return err(`"${unicode}" is a public suffix, under which others register.`);
  return ok(ascii);
};
