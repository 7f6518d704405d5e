import type { DoctorCheck } from "./doctor-check.ts";
import type { DoctorFinding } from "./run-checks.ts";

/** A finding for people who look at a page. */
export interface DoctorAdvice {
  /** `Outgoing port 25`. */
  readonly title: string;
  readonly area: string;
  readonly severity: DoctorCheck["state"];
  /** What was found. */
  readonly detail: string;
  /** What to do; null when there is nothing, or it is part of `detail`. */
  readonly remedy: string | null;
}

const TITLES: Readonly<Record<string, string>> = {
  asn: "Networks of addresses",
  backup: "Backups",
  base_url: "Public URL",
  blocklists: "Blocklists through this resolver",
  clock: "Clock",
  copies: "Copies of former databases",
  database: "Database",
  disk: "Disk space",
  dns: "DNS servers",
  dns_rewriting: "DNS responses",
  dns_tcp: "DNS over TCP",
  egress_address: "Public address",
  egress_listed: "Own address on blocklists",
  egress_name: "Reverse DNS of the own address",
  files: "File permissions",
  geoip: "GeoIP database",
  helo: "HELO name",
  mail_from: "Sender of probes",
  notify: "Relay for alert mail",
  open_files: "Open files",
  port: "Outgoing port 25",
  report_authorisation: "Authorization of the report host",
  report_host: "Report host",
  report_listener: "Receiver of report mail",
  report_mx: "MX of the report host",
  report_port: "Incoming port 25",
};

/** Where the sentence begins that says what to do. */
const REMEDY =
  /(?<=[.!?)] )(?=(?:Ask|Check|Choose|Correct|Free|Give|Install|Lower|Make|Move|Name|Open|Publish|Raise|Register|Remove|Restart|Run|See|Set|Start|Stop|Use)\b)/;

/** Splits a message at the sentence that says what to do. */
export const adviceOf = ({ area, check, state, message }: DoctorFinding): DoctorAdvice => {
  const at = state === "ok" ? -1 : message.search(REMEDY);
  return {
    ...{ title: TITLES[check] ?? area, area, severity: state },
    detail: at < 0 ? message : message.slice(0, at).trim(),
    remedy: at < 0 ? null : message.slice(at),
  };
};
