/** Why work with a mailbox ended. */
type ImapFailureKind =
  /** The server could not be reached, or its TLS certificate is not trusted. */
  | "unreachable"
  /** The connection ended, a reply did not come in time, or was not IMAP. */
  | "broken"
  /** A required setting is missing: a password, a token, an account. */
  | "settings"
  /** The server did not accept user and password or token. */
  | "login"
  | "folder"
  /** The server refused a command. */
  | "refused";

/** What ends a session with a mailbox. `message` is a sentence for the operator, without secrets. */
export class ImapFailure extends Error {
  constructor(
    readonly kind: ImapFailureKind,
    message: string,
  ) {
    super(message);
    this.name = "ImapFailure";
  }
}

const SERVER_TEXT_CHARACTERS_MAX = 200;

/** What a server said, short and on one line; empty when it said nothing. */
export const serverText = (text: unknown): string =>
  typeof text === "string"
    ? text
        .replace(/[\p{Cc}\s]+/gu, " ")
        .trim()
        .slice(0, SERVER_TEXT_CHARACTERS_MAX)
    : "";

const UNTRUSTED = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS_CERT)/;

const field = (error: unknown, name: string): unknown =>
  typeof error === "object" && error !== null && name in error ? Reflect.get(error, name) : undefined;

/** Reads what the IMAP library threw while it connected and logged in. `at` is `host:port`. */
export const failureOfConnect = (error: unknown, at: string): ImapFailure => {
  if (error instanceof ImapFailure) return error;
  const said = serverText(field(error, "responseText")) || serverText(field(error, "response"));
  if (field(error, "authenticationFailed") === true) {
    return new ImapFailure("login", `${at} did not accept the login${said === "" ? "." : `: ${said}`}`);
  }
  const code = serverText(field(error, "code"));
  const message = serverText(field(error, "message"));
  if (UNTRUSTED.test(code)) {
    const advice = "Set POSTWARDEN_IMAP_CA_FILE if a private certificate authority issued the server's certificate.";
    return new ImapFailure("unreachable", `The certificate of ${at} is not trusted: ${message}. ${advice}`);
  }
  return new ImapFailure("unreachable", `${at} cannot be used: ${said || message || code || "no reason given"}.`);
};

/** Reads what the IMAP library threw in the middle of a session. */
export const failureOfCommand = (error: unknown, what: string): ImapFailure => {
  if (error instanceof ImapFailure) return error;
  const said = serverText(field(error, "responseText"));
  const status = field(error, "responseStatus");
  if (status === "NO" || status === "BAD")
    return new ImapFailure("refused", `The server refused to ${what}${said === "" ? "." : `: ${said}`}`);
  const message = serverText(field(error, "message"));
  return new ImapFailure("broken", `The connection broke while the service wanted to ${what}: ${message}.`);
};
