/** The envelope of one probe. `mailFrom` "" is the null sender. Mailboxes are parsed already: domain as A-label. */
export interface SmtpEnvelope {
  readonly mailFrom: string;
  readonly recipients: readonly string[];
  readonly smtputf8: boolean;
}

/** More recipients than this in one probe are a bug of the caller: RFC 5321 §4.5.3.1.8 promises 100. */
export const RECIPIENTS_MAX = 100;
/** RFC 5321 §4.5.3.1.3 allows a path of 256 octets; contract and databases know addresses of up to 320. */
const MAILBOX_CHARS_MAX = 320;

/**
 * What may stand between the angle brackets of MAIL and RCPT: no control, no space and no bracket outside a quoted
 * string (RFC 5321 §4.1.2, RFC 6531 §3.3), so that nothing can end the path or the line.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not pass
const SAFE_PATH = /^(?:[^\x00-\x20"<>\\\x7f-\x9f]|"(?:[^\x00-\x1f"\\\x7f-\x9f]|\\[\x20-\x7e])*")+$/;
const ASCII = /^[\x20-\x7e]*$/;
const SAFE_HELO = /^[\x21-\x7e]{1,255}$/;

/** `EHLO name` or `HELO name` (RFC 5321 §4.1.1.1). Throws when the name could break the line: a bug. */
export const greetingCommand = (verb: "EHLO" | "HELO", heloName: string): string => {
  if (!SAFE_HELO.test(heloName)) throw new Error(`not a HELO name: ${JSON.stringify(heloName)}`);
  return `${verb} ${heloName}`;
};

/**
 * The MAIL command and one RCPT for each recipient, without line ends (RFC 5321 §4.1.1.2 f.).
 *
 * With `smtputf8` MAIL carries SMTPUTF8, and BODY=8BITMIME where `eightBitMime` is offered (RFC 6531 §3.4).
 * Throws on addresses that could inject a command, on non-ASCII without `smtputf8`, on none or too many recipients:
 * addresses were parsed before, so each of these is a bug.
 */
export const envelopeCommands = (envelope: SmtpEnvelope, eightBitMime: boolean): { mail: string; rcpts: string[] } => {
  const { mailFrom, recipients, smtputf8 } = envelope;
  if (recipients.length === 0 || recipients.length > RECIPIENTS_MAX) {
    throw new Error(`a probe has 1 to ${RECIPIENTS_MAX} recipients, not ${recipients.length}`);
  }
  if (mailFrom !== "") assertSafe(mailFrom, smtputf8);
  const rcpts = recipients.map((recipient) => {
    assertSafe(recipient, smtputf8);
    return `RCPT TO:<${recipient}>`;
  });
  const parameters = smtputf8 ? (eightBitMime ? " BODY=8BITMIME SMTPUTF8" : " SMTPUTF8") : "";
  return { mail: `MAIL FROM:<${mailFrom}>${parameters}`, rcpts };
};

const assertSafe = (mailbox: string, smtputf8: boolean): void => {
  if (mailbox.length <= MAILBOX_CHARS_MAX && SAFE_PATH.test(mailbox) && (smtputf8 || ASCII.test(mailbox))) return;
  throw new Error(`not a mailbox for the wire: ${JSON.stringify(mailbox.slice(0, MAILBOX_CHARS_MAX))}`);
};
