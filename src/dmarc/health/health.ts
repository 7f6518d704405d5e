import { type Clock, isoTime } from "../../base/clock.ts";
import { dayOfTime } from "../../base/days.ts";
import { abortableResolver, type DnsResolver } from "../../net/dns.ts";
import type { Getter } from "../../net/fetch.ts";
import { checkBimi } from "./bimi.ts";
import { checkDkim } from "./dkim.ts";
import { checkDmarcRecord } from "./dmarc-health.ts";
import { worstStatus } from "./health-finding.ts";
import { createHealthDns } from "./health-dns.ts";
import type { DomainHealth, HealthSection } from "./health-sections.ts";
import { checkMtaSts } from "./mta-sts.ts";
import { checkMx } from "./mx.ts";
import { commonSelectors, type WantedSelector } from "./selectors.ts";
import { auditSpf } from "./spf.ts";
import { checkTlsRpt } from "./tls-rpt.ts";
import { withDeadline } from "../../base/wait.ts";

export interface HealthCheckDeps {
  readonly resolver: DnsResolver;
  readonly get: Getter;
  readonly clock: Clock;
}

/** What is to be checked. */
export interface HealthOrder {
  /** Lower-case A-labels. */
  readonly domain: string;
  /** Selectors that are in use; without any, common ones are tried. */
  readonly selectors: readonly WantedSelector[];
  /** In place of the resolver of the deps: one whose queries are counted for an account. */
  readonly resolver?: DnsResolver;
  readonly signal?: AbortSignal;
}

/** However slow the DNS and the policy server are, a run ends after this; what is open by then is unknown. */
export const HEALTH_MS_MAX = 20_000;

/**
 * Checks what a domain publishes for mail: DMARC, SPF, DKIM, MX, MTA-STS, TLS-RPT and BIMI. Sends at most `HEALTH_QUERIES_MAX` DNS
 * queries and one HTTPS request, and never rejects for anything that the DNS or a server does.
 */
export const createHealthCheck = ({ resolver, get, clock }: HealthCheckDeps) =>
  async function checkHealth(order: HealthOrder): Promise<DomainHealth> {
    const { domain } = order;
    const checkedAtMs = clock.nowMs();
    return withDeadline(clock, { timeoutMs: HEALTH_MS_MAX, signal: order.signal }, async (signal) => {
      const dns = createHealthDns(abortableResolver(order.resolver ?? resolver, clock, signal));
      const selectors = order.selectors.length > 0 ? order.selectors : commonSelectors(domain);
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
      const sections = ofExisting([dmarc, spf, dkim, mx, mtaSts, tlsRpt, bimi]);
      const status = worstStatus(sections.map((section) => section.status));
      return { domain, checked_at: isoTime(checkedAtMs), status, sections };
    });
  };

export type HealthCheck = ReturnType<typeof createHealthCheck>;

/** Where the domain does not exist, that is the one finding: nothing else can be published before it does. */
const ofExisting = (sections: readonly HealthSection[]): readonly HealthSection[] => {
  const isMissing = sections.some(({ findings }) => findings.some(({ code }) => code === "domain_missing"));
  if (!isMissing) return sections;
  return sections.map((section) => (section.code === "mx" ? section : { ...section, status: "ok", findings: [] }));
};
