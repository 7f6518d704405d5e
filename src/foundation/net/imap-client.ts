import type { ImapFlow } from "imapflow";
import type { ImapUrl } from "./imap-url.ts";

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
