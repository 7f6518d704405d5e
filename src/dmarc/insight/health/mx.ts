import { isIP } from "node:net";
import type { DnsRecordData, DnsResponse, TlsaRecord } from "../../../foundation/net/dns.ts";
import { createAddressPolicy } from "../../../foundation/net/public-address.ts";
import { type HealthDns, SectionReport } from "./section-report.ts";

const NOT_RECEIVED = "Mail to the domain cannot be delivered as you expect.";
const NOT_PROTECTED = "Senders that use DANE do not protect the mail on its way as you expect.";

/** The findings about MX records and the hosts that they name, with why each matters. */
export const MX_FINDINGS = {
  mx_missing: "Senders that find no MX try the web server, and mail may be lost.",
  mx_null: "A null MX is right for a domain that receives no mail.",
  mx_null_not_alone: NOT_RECEIVED,
  mx_address: NOT_RECEIVED,
  mx_alias: "Some senders refuse to deliver to an MX host that is an alias (RFC 2181 §10.3, RFC 5321 §5.1).",
  mx_host_without_address: NOT_RECEIVED,
  mx_host_not_public: NOT_RECEIVED,
  domain_missing: "Nothing can be published, sent or received under a name that does not exist.",
  dane_unusable: NOT_PROTECTED,
  dane_without_dnssec: NOT_PROTECTED,
  dane_not_known: "Senders use TLSA records only when DNSSEC protects them.",
};

type MxReport = SectionReport<keyof typeof MX_FINDINGS>;

export const DANE_STATES = ["none", "secure", "insecure", "unusable", "not_known"] as const;
type DaneState = (typeof DANE_STATES)[number];

/** An MX record with what the DNS says about its host. */
interface MxHost extends Readonly<DnsRecordData["MX"]> {
  /** Null when the DNS did not say, or was not queried. */
  addresses: string[] | null;
  dane: DaneState | null;
}

const HOSTS_MAX = 50;
/** Hosts whose addresses and TLSA records are looked up. */
const CHECKED_HOSTS_MAX = 10;
/** A name with DNSSEC, by which a resolver that validates is known. */
const SIGNED_NAME = "org";

/**
 * Checks the MX records of a domain: none (RFC 5321 §5.1), a null MX (RFC 7505), addresses in place of names; and of the first ten
 * hosts the aliases, addresses and TLSA records (RFC 7672). No connection is made.
 */
export const checkMx = async (dns: HealthDns, domain: string) => {
  const response = await dns.resolve(domain, "MX");
  const records = [...response.records].sort((one, other) => one.preference - other.preference).slice(0, HOSTS_MAX);
  const report = new SectionReport<keyof typeof MX_FINDINGS>();
  if (report.isAnswered(response)) reportRecords(report, domain, records, response.outcome === "nxdomain");
  const hosts = records.map((record): MxHost => ({ ...record, addresses: null, dane: null }));
  const named = hosts.filter(({ exchange }) => exchange !== "." && isIP(exchange) === 0);
  const checked = named.slice(0, CHECKED_HOSTS_MAX);
  await Promise.all(
    checked.map(async (host) => {
      host.addresses = await findAddresses(report, dns, host.exchange);
      host.dane = await checkDane(report, { dns, mx: response }, host.exchange);
    }),
  );
  reportAddresses(report, domain, { checked, isAll: checked.length === hosts.length });
  const null_mx = hosts.length > 0 && hosts.every(({ exchange }) => exchange === ".");
  return { code: "mx" as const, ...report.result(), hosts, null_mx };
};

export type CheckedMx = Awaited<ReturnType<typeof checkMx>>;

const reportRecords = (
  report: MxReport,
  domain: string,
  hosts: ReadonlyArray<DnsRecordData["MX"]>,
  isMissing: boolean,
) => {
  if (isMissing) {
    report.error("domain_missing", `${domain} does not exist in the DNS.`, {
      fix: "Check the spelling, and whether the registration has expired.",
    });
    return;
  }
  if (hosts.length === 0) {
    report.info("mx_missing", `${domain} has no MX record; senders then try its address record.`, {
      fix: `Publish an MX record, or the null MX "0 ." if ${domain} receives no mail.`,
    });
    return;
  }
  const nulls = hosts.filter(({ exchange }) => exchange === ".").length;
  if (nulls === hosts.length) {
    report.info("mx_null", `${domain} declares that it receives no mail (null MX).`);
    return;
  }
  if (nulls > 0) {
    report.error("mx_null_not_alone", `${domain} has a null MX beside other MX records, which RFC 7505 forbids.`, {
      observed: hosts.map(({ preference, exchange }) => `${preference} ${exchange}`).join("\n"),
      fix: `Remove the MX record "0 .".`,
    });
  }
  for (const { exchange } of hosts.filter((host) => isIP(host.exchange) !== 0)) {
    report.error("mx_address", `${domain} has the address ${exchange} as its MX; an MX record must name a host.`, {
      observed: exchange,
      fix: `Publish a host name with the address ${exchange}, and name that host in the MX record.`,
    });
  }
};

/** The addresses of an MX host; null when one of the queries had no response, which the report then says. */
const findAddresses = async (report: MxReport, dns: HealthDns, host: string): Promise<string[] | null> => {
  const [a, aaaa] = await Promise.all([dns.resolve(host, "A"), dns.resolve(host, "AAAA")]);
  const [alias] = a.cnames.length > 0 ? a.cnames : aaaa.cnames;
  if (alias !== undefined) {
    report.warning("mx_alias", `The MX host ${host} is an alias (CNAME) of ${alias}; an MX must name a host itself.`, {
      observed: `${host} CNAME ${[...(a.cnames.length > 0 ? a.cnames : aaaa.cnames)].join(" CNAME ")}`,
      fix: `Name the host that has the addresses in the MX record, or give ${host} address records in place of the CNAME.`,
    });
  }
  const isKnown = [report.isAnswered(a), report.isAnswered(aaaa)].every(Boolean);
  return isKnown ? [...a.records, ...aaaa.records] : null;
};

const PUBLIC = createAddressPolicy([]);

interface CheckedHosts {
  readonly checked: readonly MxHost[];
  /** Whether all hosts of the domain were checked. */
  readonly isAll: boolean;
}

/** Hosts that senders cannot reach. It is an error only where it is certain that there is no other host. */
const reportAddresses = (report: MxReport, domain: string, { checked, isAll }: CheckedHosts) => {
  const isReachable = ({ addresses }: MxHost) => addresses === null || addresses.some((ip) => PUBLIC.isAllowed(ip));
  const severity = isAll && !checked.some(isReachable) ? "error" : "warning";
  for (const { exchange, addresses } of checked) {
    if (addresses === null) continue;
    const effect = severity === "error" ? `no mail reaches ${domain}` : "senders lose time, or mail, at it";
    const hidden = addresses.filter((ip) => !PUBLIC.isAllowed(ip));
    if (addresses.length === 0) {
      report.add(severity, "mx_host_without_address", `The MX host ${exchange} has no address; ${effect}.`, {
        fix: `Publish the address of ${exchange}, or remove it from the MX records.`,
      });
    } else if (hidden.length > 0) {
      const isOnly = hidden.length === addresses.length;
      report.add(
        isOnly ? severity : "warning",
        "mx_host_not_public",
        `The MX host ${exchange} ${isOnly ? "has only" : "also has"} addresses that nobody outside can reach: ${hidden.join(", ")}.`,
        {
          observed: addresses.join("\n"),
          fix: `Publish public addresses of ${exchange} only. If your network sees other addresses than the internet (split DNS), look from outside.`,
        },
      );
    }
  }
};

interface DaneContext {
  readonly dns: HealthDns;
  readonly mx: Pick<DnsResponse, "authenticated">;
}

/** Checks the TLSA records of an MX host (RFC 7672); null when the DNS did not respond, which the report then says. */
const checkDane = async (report: MxReport, { dns, mx }: DaneContext, host: string): Promise<DaneState | null> => {
  const name = `_25._tcp.${host}`;
  const response = await dns.resolve(name, "TLSA");
  if (!report.isAnswered(response)) return null;
  const { records } = response;
  if (records.length === 0) return "none";
  const observed = records.map(tlsaText).join("\n");
  if (!records.some(isUsable)) {
    report.warning("dane_unusable", `No sender can use the TLSA records of the MX host ${host}.`, {
      observed,
      fix: `Publish "3 1 1" and the SHA-256 digest of the key of ${host} at ${name} (RFC 7672 §3.1), or remove the records.`,
    });
    return "unusable";
  }
  if (response.authenticated && mx.authenticated) return "secure";
  const isValidating = (await dns.resolve(SIGNED_NAME, "SOA")).authenticated;
  if (!isValidating) {
    report.info(
      "dane_not_known",
      `The MX host ${host} has TLSA records. The resolver of this service does not validate DNSSEC, so it is not known if DNSSEC protects them.`,
      { observed },
    );
    return "not_known";
  }
  const what = response.authenticated ? "the MX records" : `the TLSA records of the MX host ${host}`;
  report.warning(
    "dane_without_dnssec",
    `DNSSEC does not protect ${what}, so senders ignore the TLSA records of ${host}.`,
    {
      observed,
      fix: "Sign the zone with DNSSEC and publish its DS record, or remove the TLSA records.",
    },
  );
  return "insecure";
};

const tlsaText = ({ usage, selector, matching, dataBytes }: TlsaRecord) =>
  `${usage} ${selector} ${matching} (${dataBytes} octets)`;

const DIGEST_BYTES: Readonly<Record<number, number>> = { 1: 32, 2: 64 };

/** RFC 7672 §3.1: usages 2 and 3 only; RFC 6698 §2.1: selectors 0 and 1, digests of their length. */
const isUsable = ({ usage, selector, matching, dataBytes }: TlsaRecord) =>
  (usage === 2 || usage === 3) &&
  selector <= 1 &&
  (matching === 0 ? dataBytes > 0 : DIGEST_BYTES[matching] === dataBytes);
