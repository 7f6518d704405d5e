import { err, ok, type Result, errorText } from "../base/errors.ts";

/** A submission server for alert mail. */
export interface SmtpRelay {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte; without it STARTTLS is used where it is offered, and required where there is a password. */
  readonly implicitTls: boolean;
  readonly user: string | null;
  readonly password: string | null;
}

/** Without user and password. */
export const formatRelay = ({ host, port, implicitTls }: SmtpRelay): string =>
  `${implicitTls ? "smtps" : "smtp"}://${host.includes(":") ? `[${host}]` : host}:${port}`;

export interface Mail {
  readonly to: string;
  readonly subject: string;
  /** Plain text. */
  readonly text: string;
  /** The same as a page, for programs that show one; they choose (multipart/alternative, RFC 2046 §5.1.4). */
  readonly html?: string;
  /** An https URL at which one POST stops such mail (RFC 8058); null without one. */
  readonly oneClickUrl?: string | null;
}

/** Why a mail was not accepted. `isFinal`: a permanent refusal, which must not be retried. */
export interface MailFailure {
  readonly isFinal: boolean;
  /** A sentence without passwords. */
  readonly problem: string;
}

/** Hands one mail to the relay. Never rejects for anything that the relay or the network does. */
export type Mailer = (mail: Mail) => Promise<Result<null, MailFailure>>;

const CONNECT_TIMEOUT_MS = 10_000;
const REPLY_TIMEOUT_MS = 30_000;
const PERMANENT = 500;

/** Creates the sender of the service's own mail. Each mail uses a new connection, because there are few. */
export const createMailer = (relay: SmtpRelay, from: string): Mailer => {
  const { host, port, implicitTls, user, password } = relay;
  // Loaded here, because most installations send no mail.
  const transport = import("nodemailer").then(({ createTransport }) =>
    createTransport({
      host,
      port,
      secure: implicitTls,
      requireTLS: !implicitTls && password !== null,
      // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would disable it.
      tls: { rejectUnauthorized: true },
      ...(user === null ? {} : { auth: { user, pass: password ?? "" } }),
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: REPLY_TIMEOUT_MS,
      // The content of a mail is text; a path or URL in it must never be opened.
      disableFileAccess: true,
      disableUrlAccess: true,
    }),
  );
  return async ({ to, subject, text, html, oneClickUrl = null }) => {
    try {
      await (
        await transport
      ).sendMail({
        from,
        to: { name: "", address: to },
        subject,
        text,
        ...(html === undefined ? {} : { html }),
        headers: { "Auto-Submitted": "auto-generated", ...unsubscribeHeaders(oneClickUrl) },
      });
      return ok(null);
    } catch (error) {
      return err({ isFinal: isRefusedForGood(error), problem: problemOf(error) });
    }
  };
};

/** RFC 2369 §3.2, RFC 8058 §3.1. */
const unsubscribeHeaders = (url: string | null) =>
  url === null ? {} : { "List-Unsubscribe": `<${url}>`, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" };

const problemOf = (error: unknown) => {
  const text = errorText(error);
  return `The mail was not accepted: ${text.replace(/\s+/g, " ").replace(/\.?$/, ".")}`;
};

/** A 5xx about the recipient or the message. The operator can fix a refused login or sender, and then all mails are sent. */
const isRefusedForGood = (error: unknown) =>
  error instanceof Error &&
  "responseCode" in error &&
  typeof error.responseCode === "number" &&
  error.responseCode >= PERMANENT &&
  "command" in error &&
  (error.command === "RCPT TO" || error.command === "DATA");
