import type { Report } from "../report/report.ts";
import { contactOf } from "../report/reporter.ts";
import type { TlsReport } from "../report/tls-report.ts";

/** 162 bits of the hash, in base64url. */
const HASH_CHARACTERS = 27;

const hashOf = (parts: readonly unknown[]): string =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, HASH_CHARACTERS);

/** The rows of a report, hashed in their order. */
export const hashRows = ({ rows }: Pick<Report, "rows">): string => hashOf(rows);

/** What identifies a report: two reports of a domain with the same fingerprint are the same report. */
export interface ReportFingerprint {
  readonly current: string;
  /** As an earlier version computed it: stored reports may have it. */
  readonly former: string;
  readonly rowsHash: string;
}

/**
 * The hash of policy domain, reporter (in lower case), report id, begin and end. Without a report id, the rows take its
 * place. Where the name of the reporter could be anybody's, the domain of the contact address is included.
 */
export const fingerprintReport = (report: Report): ReportFingerprint => {
  const { policy, orgName, reportId, beginMs, endMs } = report;
  const rowsHash = hashRows(report);
  const parts = [policy.domain, orgName?.toLowerCase() ?? null, reportId ?? [rowsHash], beginMs, endMs];
  const contact = contactOf(report);
  return { current: hashOf(contact === null ? parts : [...parts, contact]), former: hashOf(parts), rowsHash };
};

/** The same for a TLS report, whose domains are in its policies. Hosts were not part of what earlier versions hashed. */
export const fingerprintTlsReport = ({ orgName, reportId, beginMs, endMs, policies }: TlsReport): string => {
  const withoutHosts = (policy: TlsReport["policies"][number]) => ({
    ...policy,
    failures: policy.failures.map(({ resultType, sessions }) => ({ resultType, sessions })),
  });
  return hashOf([orgName?.toLowerCase() ?? null, reportId ?? [hashOf(policies.map(withoutHosts))], beginMs, endMs]);
};
