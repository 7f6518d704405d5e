import type { Db } from "../../db/open.ts";
import type { TlsReport } from "../report/tls-report.ts";

/** A TLS report that is trusted, as the rule reads it. */
export interface TlsReportRead {
  readonly org: string | null;
  readonly beginMs: number | null;
  readonly endMs: number | null;
  readonly receivedAtMs: number;
  readonly policies: TlsReport["policies"];
}

/** The last alert about a subject. `body` is the JSON text of `{ summary, data }`. */
export interface LastTlsAlert {
  readonly subject: string;
  readonly atMs: number;
  readonly body: string;
}

/** Reports read for one review, the newest ones. */
const REPORTS_MAX = 500;
const SUBJECTS_MAX = 1_000;

/** What the rule about TLS failures reads. `domain` is always the `number` of a domain. */
export const createTlsFailureStore = ({ sqlite }: Pick<Db, "sqlite">) => {
  // A space in `sameness` stands before the author of a report that is not trusted.
  const reports = sqlite.prepare<Omit<TlsReportRead, "policies"> & { body: string }, [number, number, number]>(
    `SELECT org, begin_ms beginMs, end_ms endMs, received_at_ms receivedAtMs, body
      FROM (SELECT * FROM dmarc_tls_reports WHERE domain = ? ORDER BY id DESC LIMIT ?)
      WHERE received_at_ms >= ? AND instr(sameness, ' ') = 0`,
  );
  const alerts = sqlite.prepare<LastTlsAlert, [number, number]>(
    `SELECT subject, max(at_ms) atMs, body FROM dmarc_alerts WHERE domain = ? AND rule = 'tls_failures' GROUP BY subject
      ORDER BY 2 DESC LIMIT ?`,
  );
  return {
    /** The TLS reports that came since. */
    tlsReportsSince: (domain: number, sinceMs: number): TlsReportRead[] =>
      reports.all(domain, REPORTS_MAX, sinceMs).map(({ body, ...report }) => {
        const { policies } = JSON.parse(body) as Pick<TlsReport, "policies">;
        return { ...report, policies };
      }),
    /** The last alert about each subject, the latest first. */
    lastTlsAlerts: (domain: number): LastTlsAlert[] => alerts.all(domain, SUBJECTS_MAX),
  };
};

export type TlsFailureStore = ReturnType<typeof createTlsFailureStore>;
