import type { Clock } from "../foundation/base/clock.ts";
import { ok } from "../foundation/base/errors.ts";
import type { Log } from "../foundation/base/log.ts";
import { mailHostOf, type Config } from "./config.ts";
import { ReportMailRules } from "../dmarc/reports/ingest/report-mail-rules.ts";
import { receiverCertificate } from "../foundation/net/self-signed-file.ts";
import { SmtpReceiver } from "../foundation/net/smtp-receiver.ts";
import type { Dmarc } from "./compose-dmarc.ts";

export interface ReceiverParts {
  readonly config: Config;
  readonly dmarc: Pick<Dmarc, "store" | "intake" | "quota" | "reserve">;
  readonly clock: Clock;
  readonly log: Log;
}

/** The SMTP receiver of report mail; null when no listener is configured, an error when there is no certificate. */
export const composeReceiver = ({ config, dmarc, clock, log }: ReceiverParts) => {
  const { reportHost, reportListen, reportTls: files, dataDir } = config;
  if (reportHost === null || reportListen === null) return null;
  const hostName = mailHostOf(config) ?? reportHost;
  const readCertificate = () => receiverCertificate({ dataDir, hostName, files, clock });
  const certificate = readCertificate();
  if (!certificate.ok) return certificate;
  const { store: domains, intake, quota, reserve } = dmarc;
  const rules = new ReportMailRules({ clock, log }, { domains, quota, intake, reportHost, reserve });
  const receiver = new SmtpReceiver({ rules, hostName, tls: certificate.value, clock, log });
  return ok({
    receiver,
    ...reportListen,
    /** Loads a renewed certificate. If it cannot be used, the old one stays. */
    async renewCertificate(): Promise<void> {
      const fresh = readCertificate();
      if (fresh.ok) receiver.useCertificate(fresh.value);
      else
        log.warn("the renewed certificate for report mail cannot be used; the old one stays", {
          error: fresh.error.message,
        });
    },
  });
};
