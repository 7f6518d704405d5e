import type { SmtpReply } from "./smtp-reply.ts";

/** What a server offers in its reply to EHLO (RFC 5321 §4.1.1.1). After HELO: nothing. */
export interface SmtpCapabilities {
  /** RFC 2920. */
  readonly pipelining: boolean;
  /** RFC 3207. */
  readonly starttls: boolean;
  /** RFC 6531. */
  readonly smtputf8: boolean;
  /** RFC 6152. */
  readonly eightBitMime: boolean;
  /** RFC 2034. */
  readonly enhancedStatusCodes: boolean;
  /** RFC 1870: octets, `null` when not offered or without a limit. */
  readonly sizeBytesMax: number | null;
}

/** The capabilities of a server without EHLO. */
export const NO_CAPABILITIES: SmtpCapabilities = {
  pipelining: false,
  starttls: false,
  smtputf8: false,
  eightBitMime: false,
  enhancedStatusCodes: false,
  sizeBytesMax: null,
};

/**
 * Reads the keywords of a 250 reply to EHLO: one a line, after the first, in any case, parameters behind a space or
 * (as old servers write it) "=". Unknown keywords are ignored.
 */
export const readCapabilities = (reply: SmtpReply): SmtpCapabilities => {
  const found = { ...NO_CAPABILITIES };
  for (let i = 1; i < reply.lines.length; i++) {
    const [keyword, parameter] = (reply.lines[i] ?? "").trim().split(/[ =]+/, 2);
    switch (keyword?.toUpperCase()) {
      case "PIPELINING":
        found.pipelining = true;
        break;
      case "STARTTLS":
        found.starttls = true;
        break;
      case "SMTPUTF8":
        found.smtputf8 = true;
        break;
      case "8BITMIME":
        found.eightBitMime = true;
        break;
      case "ENHANCEDSTATUSCODES":
        found.enhancedStatusCodes = true;
        break;
      case "SIZE":
        found.sizeBytesMax = /^[1-9]\d{0,14}$/.test(parameter ?? "") ? Number(parameter) : null;
        break;
      default:
    }
  }
  return found;
};
