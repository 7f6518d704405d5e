import type { KeyMode } from "../../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { AuthenticationVerdict } from "./authentication-results.ts";
import { statements } from "../../../foundation/db/statements.ts";

/** A complete report whose mail is still to be authenticated. */
export interface PendingMail {
  /** `number` of the report. */
  readonly report: number;
  readonly ingestion: string;
  /** Null when the ingestion is gone. */
  readonly mode: KeyMode | null;
  readonly client: string | null;
  readonly helo: string | null;
  readonly mailFrom: string | null;
  readonly receivedAtMs: number;
}

const PENDING = `SELECT r.number AS report, r.ingestion, i.mode, i.client, i.helo, i.mail_from AS mailFrom,
  r.received_at_ms AS receivedAtMs FROM dmarc_reports r LEFT JOIN dmarc_ingestions i ON i.id = r.ingestion
  WHERE r.authenticity = 'pending' AND r.is_complete = 1 AND r.number > ? ORDER BY r.number LIMIT ?`;

const prepareStatements = ({ sqlite }: Pick<Db, "sqlite">) =>
  statements({
    pending: () => sqlite.prepare<PendingMail, [number, number]>(PENDING),
    raw: () => sqlite.prepare<{ bytes: Uint8Array }, [string]>("SELECT bytes FROM dmarc_raw WHERE ingestion = ?"),
    finish: () =>
      sqlite.prepare(
        "UPDATE dmarc_reports SET authenticity = ?, authenticity_body = ? WHERE number = ? AND authenticity = 'pending'",
      ),
  });

/** The reports whose mail is still to be authenticated. */
export class AuthenticationStore {
  readonly #sql;

  constructor(db: Pick<Db, "sqlite">) {
    this.#sql = prepareStatements(db);
  }

  /** In the order of their numbers, after the number `after`. */
  pending(after: number, limit: number): PendingMail[] {
    return this.#sql.pending.all(after, limit);
  }

  /** The mail as it came; undefined when it is no longer kept. */
  findMail(ingestion: string): Uint8Array | undefined {
    return this.#sql.raw.get(ingestion)?.bytes;
  }

  /** Writes the results for a report, unless they are written already. `body` is JSON. */
  finish(_tx: Tx, report: number, verdict: AuthenticationVerdict, body: string): void {
    this.#sql.finish.run(verdict, body, report);
  }
}
