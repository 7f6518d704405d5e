import type { KeyMode } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { AuthenticationVerdict } from "./authentication-results.ts";

/** A complete report that came by mail and whose mail is still to be judged. The mail itself is read when its turn comes. */
export interface PendingMail {
  /** `number` of the report. */
  readonly report: number;
  readonly ingestion: string;
  /** Null when the ingestion is no longer there. */
  readonly mode: KeyMode | null;
  readonly client: string | null;
  readonly helo: string | null;
  readonly mailFrom: string | null;
  readonly receivedAtMs: number;
}

const UNPROVEN = `SELECT r.number AS report, r.ingestion, i.mode, i.client, i.helo, i.mail_from AS mailFrom,
  r.received_at_ms AS receivedAtMs FROM dmarc_reports r LEFT JOIN dmarc_ingestions i ON i.id = r.ingestion
  WHERE r.authenticity = 'pending' AND r.is_complete = 1 AND r.number > ? ORDER BY r.number LIMIT ?`;

/** The reports whose mail is still to be judged. */
export const createAuthenticationStore = ({ sqlite }: Db) => {
  const unproven = sqlite.prepare<PendingMail, [number, number]>(UNPROVEN);
  const raw = sqlite.prepare<{ bytes: Uint8Array }, [string]>("SELECT bytes FROM dmarc_raw WHERE ingestion = ?");
  const set = sqlite.prepare(
    "UPDATE dmarc_reports SET authenticity = ?, authenticity_body = ? WHERE number = ? AND authenticity = 'pending'",
  );

  return {
    /** Some of them, in the order of their numbers, behind the number `after`. */
    unproven: (after: number, limit: number): PendingMail[] => unproven.all(after, limit),
    /** The mail as it came; undefined when it is no longer kept. */
    findMail: (ingestion: string): Uint8Array | undefined => raw.get(ingestion)?.bytes,
    /** Writes down what was found about the mail of a report, unless somebody did before. `body` is JSON text. */
    settle: (_tx: Tx, report: number, authenticity: AuthenticationVerdict, body: string): void =>
      void set.run(authenticity, body, report),
  };
};

export type AuthenticationStore = ReturnType<typeof createAuthenticationStore>;
