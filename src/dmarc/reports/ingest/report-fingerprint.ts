import { nextTurn } from "../../../foundation/base/clock.ts";
import type { Report } from "../report/report.ts";
import { contactOf } from "../report/reporter.ts";
import type { TlsReport } from "../report/tls-report.ts";

/** 162 bits of the hash, in base64url. */
const HASH_CHARACTERS = 27;

const shortened = (hasher: Bun.CryptoHasher): string => hasher.digest("base64url").slice(0, HASH_CHARACTERS);

const hashOf = (parts: readonly unknown[]): string =>
  shortened(new Bun.CryptoHasher("sha256").update(JSON.stringify(parts)));

/** Rows hashed in one turn of the event loop: a few milliseconds. */
const ROWS_PER_TURN = 500;

/** The rows of a report, hashed in their order: the hash of their JSON. Yields where there are many. */
export const hashRows = async ({ rows }: Pick<Report, "rows">): Promise<string> => {
  const hasher = new Bun.CryptoHasher("sha256").update("[");
  for (let from = 0; from < rows.length; from += ROWS_PER_TURN) {
    if (from > 0) await nextTurn();
    const some = rows.slice(from, from + ROWS_PER_TURN).map((row) => JSON.stringify(row));
    hasher.update(from === 0 ? some.join(",") : `,${some.join(",")}`);
  }
  return shortened(hasher.update("]"));
};

/** What identifies a report: two reports of a domain with the same fingerprint are the same report. */
export interface ReportFingerprint {
  readonly current: string;
  /** As an earlier version computed it: stored reports may have it. */
  readonly former: string;
}

/**
 * The hash of policy domain, reporter (in lower case), report id, begin and end. Without a report id, the rows take its
 * place. Where the name of the reporter could be anybody's, the domain of the contact address is included.
 */
export const fingerprintReport = (report: Report, rowsHash: string): ReportFingerprint => {
  const { policy, orgName, reportId, beginMs, endMs } = report;
  const parts = [policy.domain, orgName?.toLowerCase() ?? null, reportId ?? [rowsHash], beginMs, endMs];
  const contact = contactOf(report);
  return { current: hashOf(contact === null ? parts : [...parts, contact]), former: hashOf(parts) };
};

/** The same for a TLS report, whose domains are in its policies. Hosts were not part of what earlier versions hashed. */
export const fingerprintTlsReport = ({ orgName, reportId, beginMs, endMs, policies }: TlsReport): string => {
  const withoutHosts = (policy: TlsReport["policies"][number]) => ({
    ...policy,
    failures: policy.failures.map(({ resultType, sessions }) => ({ resultType, sessions })),
  });
  return hashOf([orgName?.toLowerCase() ?? null, reportId ?? [hashOf(policies.map(withoutHosts))], beginMs, endMs]);
};
