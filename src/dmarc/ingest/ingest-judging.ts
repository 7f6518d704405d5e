import type { CheckAuthenticity } from "../authenticity/authenticity.ts";
import type { Authenticity, AuthenticityFinding } from "../authenticity/authenticity-verdict.ts";
import type { Reading } from "../report/outcome.ts";
import type { Report } from "../report/report.ts";
import { coveringDomain, type IngestStores, type Work } from "./ingest-work.ts";
import type { KeptMail } from "./ingestion-store.ts";
import { contentOf, samenessOf } from "./report-sameness.ts";
import type { SameReport } from "./report-store.ts";

export interface JudgingDeps {
  readonly stores: IngestStores;
  /** Never rejects; null where no mail is judged. */
  readonly authenticate: CheckAuthenticity | null;
}

/** Something that was read, and what its mail is judged for. */
export interface Read {
  readonly work: Work;
  /** Null while nobody wants to know. */
  proof: Promise<AuthenticityFinding> | null;
  /** Reports that are there and say something else under the same name. */
  readonly contests: SameReport[];
}

/** Reports that were read together and are still to be written, by what makes them the same one. */
export type Claims = Map<string, { readonly read: Read; readonly report: Report }>;

/** Mails of reports that are there already which are judged at a time; each is in memory meanwhile. */
const RIVALS_AT_ONCE = 8;

/**
 * Judges mails before their reports are stored: where a domain wants authentic reports only, and where a report comes
 * with other rows than the one that is there, as one of the two may be forged to keep the other one out.
 */
export const createJudging = ({ stores, authenticate }: JudgingDeps) => {
  const { domains, reports, ingestions } = stores;
  const lanes: Promise<unknown>[] = Array.from({ length: RIVALS_AT_ONCE }, () => Promise.resolve());
  let turn = 0;

  /** Notes who says something else under the name of a report; true when somebody does. */
  const isContested = (read: Read, report: Report, claims: Claims): boolean => {
    // Without an id the rows are a part of the name.
    if (report.reportId === null || report.rows.length === 0) return false;
    const { ingestion } = read.work;
    const domain = coveringDomain(domains, ingestion, report.policy.domain);
    if (domain === undefined) return false;
    const sameness = samenessOf(report, "");
    const same = reports.findSame(domain.number, sameness);
    if (same !== null) {
      if (same.via !== "smtp" || same.ingestion === ingestion.id || same.content === contentOf(report)) return false;
      read.contests.push(same);
      return true;
    }
    const key = `${domain.number} ${sameness}`;
    const claim = claims.get(key);
    if (claim === undefined) claims.set(key, { read, report });
    if (claim === undefined || claim.read === read || contentOf(claim.report) === contentOf(report)) return false;
    claim.read.proof ??= judge(claim.read.work.ingestion);
    return true;
  };

  const judge = ({ bytes, client, helo, mailFrom, receivedAtMs }: KeptMail): Promise<AuthenticityFinding> | null =>
    authenticate?.({ bytes, client, helo, mailFrom, receivedAtMs }) ?? null;

  const judgeRival = async ({ ingestion, authenticity }: SameReport): Promise<Authenticity | "pending"> => {
    if (authenticity !== "pending") return authenticity ?? "pending";
    const mail = ingestions.findMail(ingestion);
    const finding = mail === null ? null : await judge(mail);
    if (finding === null) return "unknown";
    // What the DNS did not say is no reason to take a report away.
    return finding.temporary === true ? "pending" : finding.authenticity;
  };

  const inLane = <T>(job: () => Promise<T>): Promise<T> => {
    turn = (turn + 1) % RIVALS_AT_ONCE;
    const done = (lanes[turn] ?? Promise.resolve()).then(job);
    lanes[turn] = done.catch(() => undefined);
    return done;
  };

  return {
    /** Begins to judge the mail of a work, and those read together with it, when somebody wants to know. */
    begin(work: Work, claims: Claims): Read {
      const read: Read = { work, proof: null, contests: [] };
      const { ingestion, readings } = work;
      if (authenticate === null || ingestion.via !== "smtp" || ingestion.mode === "test") return read;
      const isWanted = domainsIn(readings).some(
        (domain) => coveringDomain(domains, ingestion, domain)?.requireAuthenticReports === true,
      );
      // Each of them is looked at: a mail may hold several.
      const contested = readings.filter(({ report }) => report !== null && isContested(read, report, claims));
      if (isWanted || contested.length > 0) read.proof ??= judge(ingestion);
      return read;
    },

    /** The work with all that there is to know about its mail and its rivals. Rejects when the database cannot be read. */
    async conclude({ work, proof: judging, contests }: Read): Promise<Work> {
      const proof = await judging;
      if (proof?.authenticity !== "pass" || contests.length === 0) return { ...work, proof };
      const judged = contests.map(async (same) => [same.number, await inLane(() => judgeRival(same))] as const);
      return { ...work, proof, rivals: new Map(await Promise.all(judged)) };
    },
  };
};

const domainsIn = (readings: readonly Reading[]): string[] => [
  ...new Set(
    readings.flatMap(({ report, tlsReport }) => [
      ...(report === null ? [] : [report.policy.domain]),
      ...(tlsReport?.policies.flatMap(({ domain }) => domain ?? []) ?? []),
    ]),
  ),
];
