import { isIP } from "node:net";
import { err, ok, type Result } from "../base/errors.ts";

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

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
};
