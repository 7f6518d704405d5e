import type { ReceiverLimits } from "./smtp-receiver-rules.ts";
import { REPLIES, type ReceiverReply, tooLarge } from "./smtp-receiver-replies.ts";
import { err, ok, type Result } from "../base/errors.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a name must not have
const HELO_NAME = /^[^\s\x00-\x1f\x7f]{1,255}$/;

/** A MAIL or RCPT that is in order so far, or the reply that refuses it. */
type Read<T> = { readonly refusal: ReceiverReply } | T;

/** What a client has said about itself and about the mail that it sends: HELO, MAIL and RCPT (RFC 5321 §4.1.1). */
export class ReceiverEnvelope {
  /** In lower case; null before HELO and EHLO. */
  helo: string | null = null;
  /** As written in MAIL, empty for the null sender; null outside a transaction. */
  mailFrom: string | null = null;
  /** As written, by their spelling in lower case: a recipient that is named twice is one. */
  readonly #recipients = new Map<string, string>();

  get recipients(): readonly string[] {
    return [...this.#recipients.values()];
  }

  /** Ends the mail transaction. */
  reset(): void {
    this.mailFrom = null;
    this.#recipients.clear();
  }

  /** HELO or EHLO, which ends a transaction too. False when the name is invalid. */
  greet(name: string): boolean {
    if (!HELO_NAME.test(name)) return false;
    this.helo = name.toLowerCase();
    this.reset();
    return true;
  }

  /** Reads the argument of MAIL; the caller sets `mailFrom` when there is no other objection. */
  readMail(argument: string, { mailBytes }: ReceiverLimits): Read<{ readonly address: string; readonly size: number }> {
    if (this.helo === null) return { refusal: REPLIES.needHello };
    const path = readPath("FROM", argument);
    if (!path.ok && path.error === "address") return { refusal: [501, "5.1.7 Bad sender address syntax"] };
    if (!path.ok) return { refusal: REPLIES.badParameter };
    if (this.mailFrom !== null) return { refusal: [503, "5.5.1 Nested MAIL command"] };
    const { address, parameters } = path.value;
    const { SIZE: size = "0", BODY: body = "7BIT", SMTPUTF8: smtputf8 = null } = Object.fromEntries(parameters);
    const isValid = /^\d{1,20}$/.test(size ?? "") && /^(?:7BIT|8BITMIME)$/i.test(body ?? "") && smtputf8 === null;
    if (!isValid) return { refusal: REPLIES.badParameter };
    return Number(size) > mailBytes ? { refusal: tooLarge(mailBytes) } : { address, size: Number(size) };
  }

  /** Reads the argument of RCPT; the caller calls `add` when the recipient is known. */
  readRecipient(argument: string, { recipientsPerMail }: ReceiverLimits): Read<{ readonly address: string }> {
    if (this.helo === null) return { refusal: REPLIES.needHello };
    const path = readPath("TO", argument);
    if (!path.ok && path.error === "address") return { refusal: [501, "5.1.3 Bad recipient address syntax"] };
    if (!path.ok) return { refusal: REPLIES.badParameter };
    if (this.mailFrom === null) return { refusal: [503, "5.5.1 Need MAIL command"] };
    const { address } = path.value;
    const isFull = this.#recipients.size >= recipientsPerMail && !this.#recipients.has(address.toLowerCase());
    return isFull ? { refusal: [452, "4.5.3 Too many recipients"] } : { address };
  }

  add(recipient: string): void {
    this.#recipients.set(recipient.toLowerCase(), recipient);
  }
}

/** A command line: the verb in upper case, and its argument. */
interface SmtpCommand {
  readonly verb: string;
  readonly argument: string;
}

/** What MAIL or RCPT says. `address` is as written between the angle brackets, without a source route. */
interface SmtpPath {
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
