import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { AuthenticateMail } from "./mail-authentication.ts";
import type { AuthenticationStore, PendingMail } from "./authentication-store.ts";
import { type AuthenticationResults, notAuthenticated } from "./authentication-results.ts";
import { waitFor } from "../../base/wait.ts";

export interface AuthenticationJobDeps {
  readonly db: Db;
  readonly store: AuthenticationStore;
  readonly check: AuthenticateMail;
  readonly clock: Clock;
  readonly log: Log;
}

/** Mails judged at a time; each is in memory meanwhile. */
export const AUTHENTICATIONS_AT_ONCE = 4;
/** Mails judged in a run; the others wait for the next one. */
export const AUTHENTICATIONS_A_RUN_MAX = 500;
const REPORTS_AT_ONCE = 500;
/** How long to wait before the second and the third try, when the DNS did not answer. There is no fourth. */
const RETRY_DELAYS_MS = [10 * 60_000, 2 * 60 * 60_000] as const;
/** A mail older than this is not tried again. */
const TRIED_FOR_MS = 24 * 60 * 60_000;
/** Mails whose tries are remembered. A forgotten one has all its tries again, until it is too old. */
const REMEMBERED_MAX = 10_000;

interface Tried {
  readonly tries: number;
  readonly nextAtMs: number;
}

/** What the timetable does to find out which report mails are authentic. */
export const createAuthenticationJob = ({ db, store, check, clock, log }: AuthenticationJobDeps) => {
  /** Kept in memory only: a restart begins to count anew. */
  const tried = new Map<string, Tried>();
  const stopping = new AbortController();

  const remember = (ingestion: string, tries: Tried): void => {
    const [oldest] = tried.keys();
    if (tried.size >= REMEMBERED_MAX && oldest !== undefined) tried.delete(oldest);
    tried.set(ingestion, tries);
  };

  const judge = async ({ ingestion, mode, ...mail }: PendingMail): Promise<AuthenticationResults | null> => {
    if (mode === "test")
      return notAuthenticated("Mails that came for test keys are not judged: that would ask the DNS.");
    const bytes = store.findMail(ingestion);
    if (mode === null || bytes === undefined)
      return notAuthenticated("The mail is no longer kept, so that it cannot be judged.");
    const waited = await waitFor(clock, check({ ...mail, bytes }), { signal: stopping.signal });
    return waited.ok ? waited.value : null;
  };

  /** Whether the mail is to be tried again, which is then noted. */
  const isPutOff = ({ ingestion, receivedAtMs }: PendingMail): boolean => {
    const tries = (tried.get(ingestion)?.tries ?? 0) + 1;
    tried.delete(ingestion);
    const delayMs = RETRY_DELAYS_MS[tries - 1];
    if (delayMs === undefined || clock.nowMs() - receivedAtMs >= TRIED_FOR_MS) return false;
    remember(ingestion, { tries, nextAtMs: clock.nowMs() + delayMs });
    return true;
  };

  /** Judges a mail for all reports that came in it. */
  const settle = async (
    { mail, reports }: ReportsOfMail,
    judged: Map<string, AuthenticationResults>,
  ): Promise<void> => {
    try {
      const finding = judged.get(mail.ingestion) ?? (await judge(mail));
      if (finding === null) return;
      if (finding.temporary === true && !judged.has(mail.ingestion) && isPutOff(mail)) return;
      judged.set(mail.ingestion, finding);
      tried.delete(mail.ingestion);
      const body = JSON.stringify(finding);
      await db.commit((tx) => {
        for (const report of reports) store.settle(tx, report, finding.authenticity, body);
      });
    } catch (cause) {
      log.error("a report mail could not be judged; it is tried again", { ingestion: mail.ingestion, cause });
      remember(mail.ingestion, { tries: 1, nextAtMs: clock.nowMs() + RETRY_DELAYS_MS[0] });
    }
  };

  const isDue = ({ ingestion }: PendingMail): boolean => (tried.get(ingestion)?.nextAtMs ?? 0) <= clock.nowMs();

  return {
    /** Judges the mails whose turn it is, the oldest first. */
    async run(): Promise<void> {
      let left = AUTHENTICATIONS_A_RUN_MAX;
      let after = 0;
      /** A mail whose reports stand on two pages is judged once. */
      const judged = new Map<string, AuthenticationResults>();
      while (left > 0 && !stopping.signal.aborted) {
        const rows = store.unproven(after, REPORTS_AT_ONCE);
        const last = rows.at(-1);
        if (last === undefined) return;
        after = last.report;
        const due = byMail(rows)
          .filter(({ mail }) => isDue(mail))
          .slice(0, left);
        left -= due.length;
        const turns = due.values();
        const takeTurns = async (): Promise<void> => {
          for (const turn of turns) if (!stopping.signal.aborted) await settle(turn, judged);
        };
        await Promise.all(Array.from({ length: AUTHENTICATIONS_AT_ONCE }, takeTurns));
      }
    },

    /** Ends a run at once. What was not written down yet is judged again after the next start. */
    stop(): void {
      stopping.abort();
    },
  };
};

export type AuthenticationJob = ReturnType<typeof createAuthenticationJob>;

interface ReportsOfMail {
  readonly mail: PendingMail;
  /** Their numbers. */
  readonly reports: readonly number[];
}

const byMail = (rows: readonly PendingMail[]): readonly ReportsOfMail[] =>
  [...Map.groupBy(rows, ({ ingestion }) => ingestion).values()].flatMap((same) => {
    const [mail] = same;
    return mail === undefined ? [] : [{ mail, reports: same.map(({ report }) => report) }];
  });
