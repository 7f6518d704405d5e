import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../foundation/base/clock.ts";
import { err, ok, type Result, errorText } from "../foundation/base/errors.ts";
import { formatRelay, type SmtpRelay } from "../foundation/net/mailer.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const notifyCheck = doctorFindings("notify", "Relay for alert mail", "webhooks-and-mail#mail-relay");

export interface NotifyCheckOptions {
  readonly config: Pick<DoctorSettings, "notifyRelay">;
  readonly clock: Clock;
  /** Whose certificate is expected; by default that of the host, from the system's authorities. */
  readonly tls?: Pick<ConnectionOptions, "ca" | "servername">;
}

const TIMEOUT_MS = 10_000;

/**
 * Whether the relay for alert mail can be used: connects, sends EHLO, starts TLS and logs in, as a mail would. Sends no
 * mail. Empty when no relay is set. Never rejects.
 */
export const checkNotify = async ({ config, clock, tls = {} }: NotifyCheckOptions): Promise<readonly DoctorCheck[]> => {
  const { notifyRelay: relay } = config;
  if (relay === null) return [];
  const where = formatRelay(relay);
  const tried = await tryRelay(relay, { clock, tls });
  if (!tried.ok)
    return [
      notifyCheck.fail(
        `${where}: ${tried.error} No alert mail can be sent. Check POSTWARDEN_NOTIFY_SMTP_URL and the relay.`,
      ),
    ];
  const secured = tried.value.isSecure ? "TLS works" : "without TLS";
  const login = relay.user === null ? "no login is set" : "the login is accepted";
  const found = `${where} responds; ${secured}; ${login}.`;
  const isRisky = !tried.value.isSecure && !isLocalHost(relay.host);
  return [
    isRisky
      ? notifyCheck.warn(
          `${found} Alert mail crosses the network in clear text. Use a relay with STARTTLS, or smtps://.`,
        )
      : notifyCheck.ok(found),
  ];
};

const isLocalHost = (host: string): boolean => host === "localhost" || host === "::1" || host.startsWith("127.");

interface TriedRelay {
  readonly isSecure: boolean;
}

/** What a relay did. An error is a sentence. */
const tryRelay = async (
  relay: SmtpRelay,
  { clock, tls }: Required<Pick<NotifyCheckOptions, "clock" | "tls">>,
): Promise<Result<TriedRelay, string>> => {
  // Loaded when needed: most commands send no mail.
  const { default: SmtpConnection } = await import("nodemailer/lib/smtp-connection");
  const { host, port, implicitTls, user, password } = relay;
  const connection = new SmtpConnection({
    host,
    port,
    secure: implicitTls,
    requireTLS: !implicitTls && password !== null,
    tls: { rejectUnauthorized: true, ...tls },
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
  });
  const { promise, resolve } = Promise.withResolvers<Result<TriedRelay, string>>();
  const fail = (error: unknown): void => resolve(err(sentenceOf(error)));
  const succeed = (): void => resolve(ok({ isSecure: connection.secure === true }));
  const cancel = clock.after(TIMEOUT_MS, () => fail(`no response within ${TIMEOUT_MS / 1_000} seconds`));
  connection.on("error", fail);
  connection.on("end", () => fail("the connection was closed"));
  connection.connect((error) => {
    if (error) return fail(error);
    if (user === null) return succeed();
    connection.login({ credentials: { user, pass: password ?? "" } }, (refused) =>
      refused ? fail(refused) : succeed(),
    );
  });
  const tried = await promise;
  cancel();
  if (tried.ok) connection.quit();
  else connection.close();
  return tried;
};

const sentenceOf = (error: unknown): string => {
  const text = errorText(error);
  return text.replace(/\s+/g, " ").replace(/\.?$/, ".");
};
