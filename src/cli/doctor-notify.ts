import type { Clock } from "../base/clock.ts";
import type { Config } from "../config.ts";
import { formatRelay } from "../setting-parsers.ts";
import type { SmtpRelay } from "../net/mailer.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const notifyCheck = doctorFindings("notify");

export interface NotifyCheckOptions {
  readonly config: Pick<Config, "notifyRelay">;
  readonly clock: Clock;
}

const TIMEOUT_MS = 5_000;

/**
 * Whether the relay for alert mail responds: connects, sends EHLO, and starts TLS as a mail would. Does not log in and
 * sends no mail. Empty when no relay is set. Never rejects.
 */
export const checkNotify = async ({ config, clock }: NotifyCheckOptions): Promise<readonly DoctorCheck[]> => {
  const { notifyRelay: relay } = config;
  if (relay === null) return [];
  const where = formatRelay(relay);
  const problem = await greetRelay(relay, clock);
  return problem === null
    ? [notifyCheck.ok(`${where} responds; no login was tried.`)]
    : [
        notifyCheck.fail(
          `${where}: ${problem} No alert mail can be sent. Check POSTWARDEN_NOTIFY_SMTP_URL and the relay.`,
        ),
      ];
};

/** Null on success, else a sentence. */
const greetRelay = async ({ host, port, implicitTls, password }: SmtpRelay, clock: Clock): Promise<string | null> => {
  // Loaded when needed: most commands send no mail.
  const { default: SmtpConnection } = await import("nodemailer/lib/smtp-connection");
  const connection = new SmtpConnection({
    host,
    port,
    secure: implicitTls,
    requireTLS: !implicitTls && password !== null,
    tls: { rejectUnauthorized: true },
    connectionTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
  });
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const cancel = clock.after(TIMEOUT_MS, () => resolve(`no response within ${TIMEOUT_MS / 1_000} seconds.`));
  connection.on("error", (error) => resolve(sentenceOf(error)));
  connection.on("end", () => resolve("the connection was closed."));
  connection.connect((error) => resolve(error === undefined || error === null ? null : sentenceOf(error)));
  const problem = await promise;
  cancel();
  if (problem === null) connection.quit();
  else connection.close();
  return problem;
};

const sentenceOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").replace(/\.?$/, ".");
};
