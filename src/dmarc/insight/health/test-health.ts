import type { Clock } from "../../../foundation/base/clock.ts";
import { err } from "../../../foundation/base/errors.ts";
import {
  type DnsRecordData,
  type DnsResponse,
  type DnsResolver,
  type DnsType,
  emptyResponse,
} from "../../../foundation/net/dns.ts";
import { createTestResolver } from "../../records/domains/domain-platform.ts";
import { createHealthCheck } from "./health.ts";
import type { DomainHealth } from "./health-sections.ts";

const REPORT_HOST = "reports.example";
const SELECTOR = "test";
/** An RSA key of 2048 bits that nobody signs with. */
const PUBLIC_KEY =
  "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAi/YnLeZHtGLz8PbOxR5YfxCDgHbO+B0iPxwOSDoZHX1wkSeXX2W1WF07oxa1VMe2/rkFi2CoBcADtGWZF6zfTDsMgFe1aOe7//TMvkxSp0blWpnFlYyKCG1y7NoFpgrB6MCGlXkHsN943mFHkcCFQaIo1A+fhvJA+53I2B5fRFOkQxZQVzqJNgwhp2vnnEPmu8LDX2y5K41ceieZpHdlmVEq17DVR1cdjZqyYT0Yrbsa91YlQd0nWfAYEWQ6NWvPeThwQqLFsSCI/H+R4smAt2mIySIbyci7NofAYQLQ8V5MdyEpZSoD0zCvEw82qtjGbK0z92PKFLfB/Hh7mHyzrwIDAQAB";

/** What test keys find at a domain: everything in order, but for the DMARC record of the names that have a bad one. */
const zoneOf = (domain: string): DnsResolver => {
  const mailHost = `mail.${domain}`;
  const dmarc = createTestResolver({
    domain,
    ours: `dmarc@${REPORT_HOST}`,
    reportHost: REPORT_HOST,
    isSetUp: true,
  });
  const zone = new Map<string, readonly DnsRecordData[DnsType][]>([
    [`TXT ${domain}`, ["v=spf1 mx -all"]],
    [`MX ${domain}`, [{ preference: 10, exchange: mailHost }]],
    [`A ${mailHost}`, ["192.0.2.10"]],
    [`TXT ${SELECTOR}._domainkey.${domain}`, [`v=DKIM1; k=rsa; p=${PUBLIC_KEY}`]],
    [`TXT _smtp._tls.${domain}`, [`v=TLSRPTv1; rua=mailto:tls@${domain}`]],
  ]);
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      if (name.startsWith("_dmarc.")) return dmarc.resolve(name, type);
      const records = zone.get(`${type} ${name}`) ?? [];
      const outcome = records.length > 0 ? "answer" : "no_data";
      // The key of the zone holds the type.
      return { ...emptyResponse(name, type, outcome), records: records as ReadonlyArray<DnsRecordData[T]> };
    },
  };
};

/** The health of a test domain, by the same checks over a made-up zone. No DNS query is sent. */
export const checkTestHealth = (domain: string, clock: Clock): Promise<DomainHealth> => {
  const check = createHealthCheck({
    resolver: zoneOf(domain),
    get: async () => err({ kind: "dns", problem: "Test domains serve no policy." }),
    clock,
  });
  return check({
    domain,
    selectors: [{ selector: SELECTOR, signer: domain, origin: "request", seen: null }],
  });
};
