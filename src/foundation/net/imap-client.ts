import type { ImapFlow } from "imapflow";
import { isIP } from "node:net";
import { err, ok, type Result } from "../base/errors.ts";

/** With what to log in. */
export interface ImapLogin {
  readonly url: ImapUrl;
  readonly secret: { readonly kind: "password" | "token"; readonly value: string };
  /** PEM certificates that are trusted in place of the system's. */
  readonly ca: string | null;
}

/** As large as the receiver of report mail takes them. */
export const IMAP_MESSAGE_BYTES_MAX = 25 * 1024 * 1024;
const AROUND_BYTES_MAX = 64 * 1024;
/** Twice the longest line: 10,000 UIDs. */
const LINE_BYTES_MAX = 256 * 1024;
export const IMAP_CONNECT_MS_MAX = 30_000;
/** The library's own, behind the deadlines of a session; longer than IDLE is left alone. */
const SOCKET_MS_MAX = 15 * 60_000;

/** The IMAP library with all its ceilings, not yet connected. Loaded at its first use. */
export const createImapClient = async ({ url, secret, ca }: ImapLogin): Promise<ImapFlow> => {
  const { ImapFlow } = await import("imapflow");
  const { host, port, security, user } = url;
  return new ImapFlow({
    host,
    port,
    secure: security === "tls",
    doSTARTTLS: security === "starttls",
    auth: secret.kind === "token" ? { user, accessToken: secret.value } : { user, pass: secret.value },
    tls: {
      rejectUnauthorized: true,
      ...(ca === null ? {} : { ca }),
      // For addresses the library says `false`, which this platform does not take; the address is checked nevertheless.
      ...(security === "tls" && /^[\d.]+$|:/.test(host) ? { servername: "" } : {}),
    },
    logger: false,
    disableAutoIdle: true,
    disableAutoEnable: true,
    // COMPRESS saves little on reports, which are compressed, and its stream can grow a thousandfold.
    disableCompression: true,
    clientInfo: { name: "Postwarden" },
    connectionTimeout: IMAP_CONNECT_MS_MAX,
    greetingTimeout: IMAP_CONNECT_MS_MAX,
    socketTimeout: SOCKET_MS_MAX,
    maxLineLength: LINE_BYTES_MAX,
    maxLiteralSize: IMAP_MESSAGE_BYTES_MAX + AROUND_BYTES_MAX,
    maxResponseSize: IMAP_MESSAGE_BYTES_MAX + LINE_BYTES_MAX,
  });
};

/** Server, credentials and folder of a mailbox (RFC 5092, but with a password, which that RFC does not allow). */
export interface ImapUrl {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte, TLS by STARTTLS before the login, or none: on loopback only. */
  readonly security: "tls" | "starttls" | "none";
  readonly user: string;
  /** Null when it is to be found elsewhere. */
  readonly password: string | null;
  readonly folder: string;
}

const IMAP_PORT = 143;
const IMAPS_PORT = 993;
const FOLDER_CHARACTERS_MAX = 255;
const FORM =
  "must be a URL such as imaps://user:password@mail.example.com/INBOX, with user, password and folder percent-encoded";

/**
 * Reads `imaps://user:password@host:port/Folder` or `imap://…`, which needs STARTTLS unless the host is on loopback
 * (`?starttls` asks for it there too). Port and folder may be left out: 993 or 143, INBOX. The error never repeats the URL.
 */
export const parseImapUrl = (text: string): Result<ImapUrl, string> => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^imaps?:$/.test(url.protocol) || url.hostname === "" || url.hash !== "") return err(FORM);
  const [user, password, folder] = [url.username, url.password, url.pathname.replace(/^\//, "")].map(decoded);
  if (user === undefined || password === undefined || folder === undefined || user === "") return err(FORM);
  if (/\p{Cc}/u.test(`${user}${password}${folder}`) || folder.length > FOLDER_CHARACTERS_MAX) return err(FORM);
  if (url.search !== "" && (url.search !== "?starttls" || url.protocol === "imaps:")) {
    return err("only imap:// may have a query, and only ?starttls");
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  const security = securityOf(url, host);
  if (security === "starttls" && isIP(host) !== 0) {
    return err("STARTTLS needs a host name, because the certificate is checked against it; or use imaps://");
  }
  return ok({
    host,
    port: url.port === "" ? (security === "tls" ? IMAPS_PORT : IMAP_PORT) : Number(url.port),
    security,
    user,
    password: password === "" ? null : password,
    folder: folder === "" ? "INBOX" : folder,
  });
};

/** With the user and without the password. */
export const formatImapUrl = ({ host, port, security, user, folder }: ImapUrl): string => {
  const at = `${encodeURIComponent(user)}@${host.includes(":") ? `[${host}]` : host}:${port}`;
  const path = folder.split("/").map(encodeURIComponent).join("/");
  return `${security === "tls" ? "imaps" : "imap"}://${at}/${path}${security === "starttls" ? "?starttls" : ""}`;
};

const securityOf = ({ protocol, search }: URL, host: string): ImapUrl["security"] => {
  if (protocol === "imaps:") return "tls";
  return isLoopback(host) && search === "" ? "none" : "starttls";
};

const isLoopback = (host: string) =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
};

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
