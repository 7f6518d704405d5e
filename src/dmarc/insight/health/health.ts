import { type Clock, isoTime } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import {
  abortableResolver,
  type DnsResolver,
  type DnsRecordData,
  type DnsResponse,
  type DnsType,
  emptyResponse,
} from "../../../foundation/net/dns.ts";
import type { Getter } from "../../../foundation/net/fetch-url.ts";
import { checkBimi } from "./bimi.ts";
import { checkDkim } from "./dkim.ts";
import { checkDmarcRecord } from "./dmarc-health.ts";
import { worstStatus, createHealthDns } from "./section-report.ts";
import type { DomainHealth, HealthSection } from "./health-schema.ts";
import { checkMtaSts } from "./mta-sts.ts";
import { checkMx } from "./mx.ts";
import { commonSelectors, type SelectorToCheck } from "./selectors.ts";
import { auditSpf } from "./spf.ts";
import { checkTlsRpt } from "./tls-rpt.ts";
import { withDeadline } from "../../../foundation/base/wait.ts";
import { err } from "../../../foundation/base/errors.ts";
import { createTestResolver } from "../../records/domains/domain-platform.ts";

export interface HealthCheckOptions {
  readonly resolver: DnsResolver;
  readonly get: Getter;
  readonly clock: Clock;
}

/** The domain to check, and how. */
export interface HealthCheckRequest {
  /** Lower-case A-labels. */
  readonly domain: string;
  /** Selectors that are in use; without any, common ones are tried. */
  readonly selectors: readonly SelectorToCheck[];
  /** Replaces the resolver of the options: one whose queries count for an account. */
  readonly resolver?: DnsResolver;
  readonly signal?: AbortSignal;
}

/** However slow the DNS and the policy server are, a run ends after this; what is open by then is unknown. */
export const HEALTH_MS_MAX = 20_000;

/**
 * Checks what a domain publishes for mail: DMARC, SPF, DKIM, MX, MTA-STS, TLS-RPT and BIMI. Sends at most `HEALTH_QUERIES_MAX` DNS
 * queries and one HTTPS request, and never rejects for anything that the DNS or a server does.
 */
export const createHealthCheck = ({ resolver, get, clock }: HealthCheckOptions) =>
  async function checkHealth(request: HealthCheckRequest): Promise<DomainHealth> {
    const { domain } = request;
    const checkedAtMs = clock.nowMs();
    return withDeadline(clock, { timeoutMs: HEALTH_MS_MAX, signal: request.signal }, async (signal) => {
      const dns = createHealthDns(abortableResolver(request.resolver ?? resolver, clock, signal));
      const selectors = request.selectors.length > 0 ? request.selectors : commonSelectors(domain);
      const [dmarc, spf, mx, dkim, tlsRpt] = await Promise.all([
        checkDmarcRecord(dns, domain),
        auditSpf(dns, domain),
        checkMx(dns, domain),
        checkDkim(dns, domain, { selectors, today: dayOfTime(checkedAtMs) }),
        checkTlsRpt(dns, domain),
      ]);
      const [mtaSts, bimi] = await Promise.all([
        checkMtaSts({ dns, get, signal }, domain, mx),
        checkBimi(dns, domain, dmarc),
      ]);
      const sections = existingOnly([dmarc, spf, dkim, mx, mtaSts, tlsRpt, bimi]);
      const status = worstStatus(sections.map((section) => section.status));
      return { domain, checked_at: isoTime(checkedAtMs), status, sections };
    });
  };

export type HealthCheck = ReturnType<typeof createHealthCheck>;

/** Where the domain does not exist, that is the one finding: nothing else can be published before it does. */
const existingOnly = (sections: HealthSection[]): HealthSection[] => {
  const isMissing = sections.some(({ findings }) => findings.some(({ code }) => code === "domain_missing"));
  if (!isMissing) return sections;
  return sections.map((section) => (section.code === "mx" ? section : { ...section, status: "ok", findings: [] }));
};

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
      const outcome = records.length > 0 ? "response" : "no_data";
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
