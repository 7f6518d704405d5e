import { type Clock, isoTime } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { abortableResolver, type DnsResolver } from "../../../foundation/net/dns.ts";
import type { Getter } from "../../../foundation/net/fetch.ts";
import { checkBimi } from "./bimi.ts";
import { checkDkim } from "./dkim.ts";
import { checkDmarcRecord } from "./dmarc-health.ts";
import { worstStatus } from "./health-finding.ts";
import { createHealthDns } from "./health-dns.ts";
import type { DomainHealth, HealthSection } from "./health-sections.ts";
import { checkMtaSts } from "./mta-sts.ts";
import { checkMx } from "./mx.ts";
import { commonSelectors, type SelectorToCheck } from "./selectors.ts";
import { auditSpf } from "./spf.ts";
import { checkTlsRpt } from "./tls-rpt.ts";
import { withDeadline } from "../../../foundation/base/wait.ts";

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
