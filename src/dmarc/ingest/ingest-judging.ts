import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { AuthenticationResults } from "../authentication/authentication-results.ts";
import type { ReportReading } from "../report/outcome.ts";
import { coveringDomain, type IngestStores, isUnsolicitedMail, type Work } from "./ingest-work.ts";

export interface JudgingDeps {
  readonly stores: Pick<IngestStores, "domains">;
  /** Never rejects; null where no mail is judged. */
  readonly authenticate: AuthenticateMail | null;
}

/** Something that was read, and what is being found out about its mail; null when nobody wants to know. */
export interface Read {
  readonly work: Work;
  readonly proof: Promise<AuthenticationResults> | null;
}

/** Judges mails with reports for enrolled domains, before their reports are stored. */
export const createJudging = ({ stores: { domains }, authenticate }: JudgingDeps) => ({
  /** Begins to judge the mail of a work, and those read together with it. */
  begin(work: Work): Read {
    const { ingestion, readings } = work;
    if (authenticate === null || !isUnsolicitedMail(ingestion) || ingestion.mode === "test")
      return { work, proof: null };
    const isWanted =
      domainsIn(readings).some((domain) => coveringDomain(domains, ingestion, domain) !== undefined) ||
      failingDomainsIn(readings).some((domain) => coveringDomain(domains, ingestion, domain)?.storeFailureReports);
    const { bytes, client, helo, mailFrom } = ingestion;
    const receivedAtMs = ingestion.deliveredAtMs ?? ingestion.receivedAtMs;
    return { work, proof: isWanted ? authenticate({ bytes, client, helo, mailFrom, receivedAtMs }) : null };
  },

  /** The work with all that there is to know about its mail. */
  conclude: async ({ work, proof }: Read): Promise<Work> => ({ ...work, proof: await proof }),
});

const failingDomainsIn = (readings: readonly ReportReading[]): string[] => [
  ...new Set(readings.flatMap(({ failureReport }) => failureReport?.reportedDomain ?? [])),
];

const domainsIn = (readings: readonly ReportReading[]): string[] => [
  ...new Set(
    readings.flatMap(({ report, tlsReport }) => [
      ...(report === null ? [] : [report.policy.domain]),
      ...(tlsReport?.policies.flatMap(({ domain }) => domain ?? []) ?? []),
    ]),
  ),
];
