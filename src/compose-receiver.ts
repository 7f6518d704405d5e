import type { Clock } from "./base/clock.ts";
import { ok } from "./base/errors.ts";
import type { Log } from "./base/log.ts";
import { mailHostOf, type Config } from "./config.ts";
import { createReportMailRules } from "./dmarc/ingest/report-mail-rules.ts";
import { receiverCertificate } from "./net/self-signed-file.ts";
import { SmtpReceiver } from "./net/smtp-receiver.ts";
import type { Dmarc } from "./compose-dmarc.ts";

export interface ReceiverParts {
  readonly config: Config;
  readonly dmarc: Pick<Dmarc, "store" | "intake" | "authors" | "authenticate" | "reserve">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Where report mail comes in; null when no listener is set, an error when there is no certificate. */
export const composeReceiver = ({ config, dmarc, clock, log }: ReceiverParts) => {
  const { reportHost, reportListen, reportTls: files, dataDir } = config;
  if (reportHost === null || reportListen === null) return null;
  const hostName = mailHostOf(config) ?? reportHost;
  const readCertificate = () => receiverCertificate({ dataDir, hostName, files, clock });
  const certificate = readCertificate();
  if (!certificate.ok) return certificate;
  const { store: domains, intake, authors, authenticate, reserve } = dmarc;
  const rules = createReportMailRules({ domains, authors, authenticate, intake, reportHost, reserve, clock, log });
  const receiver = new SmtpReceiver({ rules, hostName, tls: certificate.value, clock, log });
  return ok({
    receiver,
    ...reportListen,
    /** Takes over a certificate that was renewed meanwhile. One that cannot be used leaves the old one in its place. */
    async renewCertificate(): Promise<void> {
      const fresh = readCertificate();
      if (fresh.ok) receiver.useCertificate(fresh.value);
      else log.warn("the certificate for report mail stays the old one", { problem: fresh.error.message });
    },
  });
};
