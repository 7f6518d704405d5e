import { isIP } from "node:net";
import { type HealthDns, SectionReport } from "./section-report.ts";
import type { MxSection } from "./health-schema.ts";

const HOSTS_MAX = 50;

/** Checks the MX records of a domain: none (RFC 5321 §5.1), a null MX (RFC 7505), addresses in place of names. */
export const checkMx = async (dns: HealthDns, domain: string): Promise<MxSection> => {
  const response = await dns.resolve(domain, "MX");
  const hosts = [...response.records].sort((one, other) => one.preference - other.preference).slice(0, HOSTS_MAX);
  const report = new SectionReport();
  if (report.isAnswered(response)) reportHosts(report, domain, hosts, response.outcome === "nxdomain");
  const null_mx = hosts.length > 0 && hosts.every(({ exchange }) => exchange === ".");
  return { code: "mx", ...report.result(), hosts, null_mx };
};

const reportHosts = (report: SectionReport, domain: string, hosts: MxSection["hosts"], isMissing: boolean): void => {
  if (isMissing) {
    report.error({
      code: "domain_missing",
      message: `${domain} does not exist in the DNS.`,
      fix: "Check the spelling, and whether the registration has expired.",
    });
    return;
  }
  if (hosts.length === 0) {
    report.info({
      code: "mx_missing",
      message: `${domain} has no MX record; senders then try its address record.`,
      fix: `Publish an MX record, or the null MX "0 ." if ${domain} receives no mail.`,
    });
    return;
  }
  const nulls = hosts.filter(({ exchange }) => exchange === ".").length;
  if (nulls === hosts.length) {
    report.info({ code: "mx_null", message: `${domain} declares that it receives no mail (null MX).` });
    return;
  }
  if (nulls > 0) {
    report.error({
      code: "mx_null_not_alone",
      message: `${domain} has a null MX beside other MX records, which RFC 7505 forbids.`,
      observed: hosts.map(({ preference, exchange }) => `${preference} ${exchange}`).join("\n"),
      fix: `Remove the MX record "0 .".`,
    });
  }
  for (const { exchange } of hosts.filter((host) => isIP(host.exchange) !== 0)) {
    report.error({
      code: "mx_address",
      message: `${domain} has the address ${exchange} as its MX; an MX record must name a host.`,
      observed: exchange,
      fix: `Publish a host name with the address ${exchange}, and name that host in the MX record.`,
    });
  }
};
