/** What a connection asks: Postfix's delegation protocol (SMTPD_POLICY_README), or one line `RCPT address`. */
export interface PolicyQuestion {
  readonly form: "attributes" | "line";
  /** The recipient as the mail server has it; null for a question about anything else. */
  readonly recipient: string | null;
}

/** Why nothing more is read from a connection. */
export const POLICY_PROBLEMS = ["line_too_long", "request_too_large", "not_the_protocol"] as const;
export type PolicyProblem = (typeof POLICY_PROBLEMS)[number];

type PolicyInput =
  | { readonly kind: "question"; readonly question: PolicyQuestion }
  | { readonly kind: "problem"; readonly problem: PolicyProblem };

/** Certificate subjects are the longest values that Postfix sends. */
const LINE_BYTES_MAX = 4 * 1024;
const REQUEST_BYTES_MAX = 16 * 1024;
const ATTRIBUTES_MAX = 100;

const LF = 10;
const CR = 13;
const NO_BYTES = Buffer.alloc(0);

/** Postfix ignores the case of none of its names; a web page that makes a browser connect here cannot send such a line first. */
const ATTRIBUTE = /^([a-z0-9_]{1,64})=(.*)$/s;
const RECIPIENT_LINE = /^rcpt[ \t]+(.*)$/is;
const USED: ReadonlySet<string> = new Set(["request", "protocol_state", "recipient"]);

const problemOf = (problem: PolicyProblem): PolicyInput => ({ kind: "problem", problem });

/** An address without the angle brackets around it. */
const bare = (text: string): string => /^<(.*)>$/s.exec(text.trim())?.[1] ?? text.trim();

/**
 * Reads the questions of one connection from its bytes, in pieces of any size. Bytes behind a question stay until `next` is called
 * again; `unreadBytes` says how many there are. After a problem nothing more is read.
 */
export class PolicyParser {
  #unread: Buffer = NO_BYTES;
  /** Bytes of `#unread` that hold no line end. */
  #searched = 0;
  readonly #attributes = new Map<string, string>();
  #attributeCount = 0;
  #requestBytes = 0;
  #problem: PolicyProblem | null = null;

  get unreadBytes(): number {
    return this.#unread.length;
  }

  /** Whether a question has begun and is not complete. */
  get isInQuestion(): boolean {
    return this.#attributeCount > 0 || this.#unread.length > 0;
  }

  push(bytes: Uint8Array): void {
    if (this.#problem !== null) return;
    this.#unread = this.#unread.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#unread, bytes]);
  }

  /** The next question; null while there is no complete one. */
  next(): PolicyInput | null {
    while (this.#problem === null) {
      const line = this.#line();
      if (line === null) break;
      const input = this.#read(line);
      if (input?.kind === "problem") this.#fail(input.problem);
      else if (input !== null) return input;
    }
    return this.#problem === null ? null : problemOf(this.#problem);
  }

  /** The next line without its end; null while there is none, and after a problem. */
  #line(): string | null {
    const end = this.#unread.indexOf(LF, this.#searched);
    const bytes = end === -1 ? this.#unread.length : end;
    if (bytes > LINE_BYTES_MAX) return this.#fail("line_too_long");
    if (end === -1) {
      this.#searched = bytes;
      return null;
    }
    this.#requestBytes += end + 1;
    if (this.#requestBytes > REQUEST_BYTES_MAX) return this.#fail("request_too_large");
    const text = this.#unread.toString("utf8", 0, end > 0 && this.#unread[end - 1] === CR ? end - 1 : end);
    this.#unread = this.#unread.subarray(end + 1);
    this.#searched = 0;
    return text;
  }

  #read(line: string): PolicyInput | null {
    if (line === "") return this.#attributeCount === 0 ? problemOf("not_the_protocol") : this.#finish();
    const recipient = this.#attributeCount === 0 ? RECIPIENT_LINE.exec(line)?.[1] : undefined;
    if (recipient !== undefined) {
      this.#requestBytes = 0;
      return { kind: "question", question: { form: "line", recipient: bare(recipient) } };
    }
    const [, name, value] = ATTRIBUTE.exec(line) ?? [];
    if (name === undefined || value === undefined) return problemOf("not_the_protocol");
    if (++this.#attributeCount > ATTRIBUTES_MAX) return problemOf("request_too_large");
    // The first of several with one name counts, as Postfix asks for.
    if (USED.has(name) && !this.#attributes.has(name)) this.#attributes.set(name, value);
    return null;
  }

  #finish(): PolicyInput {
    const attributes = this.#attributes;
    const isAboutRecipient =
      attributes.get("request") === "smtpd_access_policy" && attributes.get("protocol_state") === "RCPT";
    const recipient = isAboutRecipient ? (attributes.get("recipient") ?? null) : null;
    attributes.clear();
    this.#attributeCount = 0;
    this.#requestBytes = 0;
    return { kind: "question", question: { form: "attributes", recipient } };
  }

  #fail(problem: PolicyProblem): null {
    this.#problem = problem;
    this.#unread = NO_BYTES;
    this.#attributes.clear();
    return null;
  }
}

/** An answer as it is sent: `action=…` and an empty line, or one line. */
export const formatAction = (form: PolicyQuestion["form"], action: string): string =>
  form === "attributes" ? `action=${action}\n\n` : `${action}\n`;
