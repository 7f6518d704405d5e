import { isIP } from "node:net";
import { findingOf, type HealthFinding, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { MxSection } from "./health-sections.ts";

const HOSTS_MAX = 50;

/** Checks the MX records of a domain: none (RFC 5321 §5.1), a null MX (RFC 7505), addresses in place of names. */
export const checkMx = async (dns: HealthDns, domain: string): Promise<MxSection> => {
  const reply = await dns.resolve(domain, "MX");
  const failure = uncheckedSentence(reply);
  const unchecked = failure === null ? [] : [failure];
  const hosts = [...reply.records].sort((one, other) => one.preference - other.preference).slice(0, HOSTS_MAX);
  const isNull = hosts.length > 0 && hosts.every(({ exchange }) => exchange === ".");
  const findings = failure === null ? findingsOf(domain, hosts, reply.outcome === "nxdomain") : [];
  return { code: "mx", status: statusOfFindings(findings, unchecked), findings, unchecked, hosts, null_mx: isNull };
};

const findingsOf = (domain: string, hosts: MxSection["hosts"], isMissing: boolean): readonly HealthFinding[] => {
  if (isMissing) {
    return [
      findingOf("error", "domain_missing", `${domain} does not exist in the DNS.`, {
        fix: "Check the spelling, and whether the registration has expired.",
      }),
    ];
  }
  if (hosts.length === 0) {
    return [
      findingOf("info", "mx_missing", `${domain} has no MX record; senders then try its address record.`, {
        fix: `Publish an MX record, or the null MX "0 ." if ${domain} receives no mail.`,
      }),
    ];
  }
  const nulls = hosts.filter(({ exchange }) => exchange === ".").length;
  if (nulls === hosts.length)
    return [findingOf("info", "mx_null", `${domain} says that it receives no mail (null MX).`)];
  const findings: HealthFinding[] = [];
  if (nulls > 0) {
    findings.push(
      findingOf(
        "error",
        "mx_null_not_alone",
        `${domain} has a null MX beside other MX records, which RFC 7505 forbids.`,
        {
          observed: hosts.map(({ preference, exchange }) => `${preference} ${exchange}`).join("\n"),
          fix: `Remove the MX record "0 .".`,
        },
      ),
    );
  }
  for (const { exchange } of hosts.filter((host) => isIP(host.exchange) !== 0)) {
    findings.push(
      findingOf(
        "error",
        "mx_address",
        `${domain} has the address ${exchange} as its MX; an MX record must name a host.`,
        {
          observed: exchange,
          fix: `Publish a host name with the address ${exchange}, and name that host in the MX record.`,
        },
      ),
    );
  }
  return findings;
};
