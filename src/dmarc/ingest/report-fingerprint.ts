import type { Report } from "../report/report.ts";
import { contactOf } from "../report/reporter.ts";
import type { TlsReport } from "../report/tls-report.ts";

/** 162 bits of the hash, in base64url. */
const HASH_CHARACTERS = 27;

const hashOf = (parts: readonly unknown[]): string =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(parts)).digest("base64url").slice(0, HASH_CHARACTERS);

/** The rows of a report, hashed in their order. */
export const rowsHash = ({ rows }: Pick<Report, "rows">): string => hashOf(rows);

/**
 * What makes two reports the same one, hashed: policy domain, reporter (in lower case), report id, begin and end. Without
 * a report id, which alone tells apart what a reporter says twice of a day, the rows (`content`) join in; so does the domain
 * of the contact address, where the name of the reporter is one that anybody may give himself.
 */
export const reportFingerprint = (report: Omit<Report, "rows">, content: string): string => {
  const contact = contactOf(report);
  return hashOf([...partsOf(report, content), ...(contact === null ? [] : [contact])]);
};

/** The same as it was before contact addresses joined in: reports that are stored may be known by it. */
export const formerReportFingerprint = (report: Omit<Report, "rows">, content: string): string =>
  hashOf(partsOf(report, content));

const partsOf = ({ policy, orgName, reportId, beginMs, endMs }: Omit<Report, "rows">, content: string) => [
  policy.domain,
  orgName?.toLowerCase() ?? null,
  reportId ?? [content],
  beginMs,
  endMs,
];

/** The same for a TLS report, which names domains by policy only. */
export const tlsReportFingerprint = ({ orgName, reportId, beginMs, endMs, policies }: TlsReport): string =>
  hashOf([orgName?.toLowerCase() ?? null, reportId ?? [hashOf(policies.map(withoutHosts))], beginMs, endMs]);

/** As policies were when reports began to be told apart by them. */
const withoutHosts = (policy: TlsReport["policies"][number]) => ({
  ...policy,
  failures: policy.failures.map(({ resultType, sessions }) => ({ resultType, sessions })),
});
