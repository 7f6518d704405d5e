import { BoundedMap } from "../../../foundation/base/bounded-map.ts";
import { mapConcurrently, waitFor } from "../../../foundation/base/wait.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import {
  notAuthenticated,
  type AuthenticationResults,
  type AuthenticationVerdict,
  type AuthenticateMail,
} from "./mail-authentication.ts";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";

/** Mails authenticated at a time; each is in memory meanwhile. */
export const AUTHENTICATIONS_AT_ONCE = 4;
/** Mails authenticated in one run. */
export const AUTHENTICATIONS_A_RUN_MAX = 500;
const REPORTS_AT_ONCE = 500;
/** Delays before the second and the third attempt after a temporary failure. There is no fourth. */
const RETRY_DELAYS_MS = [10 * 60_000, 2 * 60 * 60_000] as const;
/** An older mail is not tried again. */
const TRIED_FOR_MS = 24 * 60 * 60_000;
/** Mails whose attempts are kept in memory. One that is evicted has all its attempts again, until it is too old. */
const ATTEMPTS_MAX = 10_000;

interface Attempts {
  readonly count: number;
  readonly nextAtMs: number;
}

/** Authenticates mails among uploaded files, for information, in the background. */
export class AuthenticationJob {
  readonly #stopping = new AbortController();
  /** By ingestion. In memory only: a restart begins again. */
  readonly #attempts = new BoundedMap<string, Attempts>(ATTEMPTS_MAX);

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: {
      store: AuthenticationStore;
      /** The mail as it came; undefined when it is no longer kept. */
      findMail: (ingestion: string) => Promise<Uint8Array | undefined>;
      authenticate: AuthenticateMail;
    },
  ) {}

  /** Authenticates the mails that are due, oldest first. */
  async run(): Promise<void> {
    let left = AUTHENTICATIONS_A_RUN_MAX;
    let after = 0;
    /** A mail may have reports on two pages. */
    const known = new Map<string, AuthenticationResults>();
    while (left > 0 && !this.#stopping.signal.aborted) {
      const rows = this.deps.store.pending(after, REPORTS_AT_ONCE);
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.report;
      const due = byMail(rows).filter(({ mail }) => this.#isDue(mail));
      const taken = due.slice(0, left);
      left -= taken.length;
      await mapConcurrently(taken, AUTHENTICATIONS_AT_ONCE, (one) => this.#process(one, known));
    }
  }

  /** Ends a run at once. Results that are not written yet are computed after the next start. */
  stop(): void {
    this.#stopping.abort();
  }

  #isDue({ ingestion }: PendingMail) {
    return (this.#attempts.get(ingestion)?.nextAtMs ?? 0) <= this.runtime.clock.nowMs();
  }

  async #process(
    {
      mail,
      reports,
    }: {
      mail: PendingMail;
      reports: readonly number[];
    },
    known: Map<string, AuthenticationResults>,
  ) {
    if (this.#stopping.signal.aborted) return;
    const { ingestion } = mail;
    try {
      const results = known.get(ingestion) ?? (await this.#authenticate(mail));
      if (results === null) return;
      if (results.temporary === true && !known.has(ingestion) && this.#postpone(mail)) return;
      known.set(ingestion, results);
      this.#attempts.delete(ingestion);
      const body = JSON.stringify(results);
      await this.runtime.db.commit((tx) => {
        for (const report of reports) this.deps.store.finish(tx, report, results.authenticity, body);
      });
    } catch (error) {
      const message = "the authentication results of a report mail could not be stored; it is tried again";
      this.runtime.log.error(message, { ingestion, error });
      this.#attempts.set(ingestion, { count: 1, nextAtMs: this.runtime.clock.nowMs() + RETRY_DELAYS_MS[0] });
    }
  }

  /** Null when the service ends. */
  async #authenticate({ ingestion, mode, ...mail }: PendingMail): Promise<AuthenticationResults | null> {
    const { findMail, authenticate } = this.deps;
    if (mode === "test") return notAuthenticated("Mail for test keys is not authenticated: no DNS queries are made.");
    const bytes = await findMail(ingestion);
    if (mode === null || bytes === undefined) return notAuthenticated("The mail is no longer kept.");
    try {
      const work = authenticate({ ...mail, bytes });
      const waited = await waitFor(this.runtime.clock, work, { signal: this.#stopping.signal });
      return waited.ok ? waited.value : null;
    } catch (error) {
      this.runtime.log.error("a report mail could not be authenticated; it is tried again", { ingestion, error });
      return notAuthenticated("Authentication failed with an internal error; see the log.", { temporary: true });
    }
  }

  /** Plans another attempt; false when there is none. */
  #postpone({ ingestion, receivedAtMs }: PendingMail) {
    const nowMs = this.runtime.clock.nowMs();
    const count = (this.#attempts.get(ingestion)?.count ?? 0) + 1;
    this.#attempts.delete(ingestion);
    const delayMs = RETRY_DELAYS_MS[count - 1];
    if (delayMs === undefined || nowMs - receivedAtMs >= TRIED_FOR_MS) return false;
    this.#attempts.set(ingestion, { count, nextAtMs: nowMs + delayMs });
    return true;
  }
}

const byMail = (rows: readonly PendingMail[]) =>
  [...Map.groupBy(rows, ({ ingestion }) => ingestion).values()].flatMap((same) => {
    const [mail] = same;
    return mail === undefined ? [] : [{ mail, reports: same.map(({ report }) => report) }];
  });

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

const STATEMENTS = {
  pending: rows<PendingMail, [number, number]>(PENDING),
  finish:
    "UPDATE dmarc_reports SET authenticity = ?, authenticity_body = ? WHERE number = ? AND authenticity = 'pending'",
};

/** The reports whose mail is still to be authenticated. */
export class AuthenticationStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  /** In the order of their numbers, after the number `after`. */
  pending(after: number, limit: number): PendingMail[] {
    return this.#sql.pending.all(after, limit);
  }

  /** Writes the results for a report, unless they are written already. `body` is JSON. */
  finish(_tx: Tx, report: number, verdict: AuthenticationVerdict, body: string): void {
    this.#sql.finish.run(verdict, body, report);
  }
}
