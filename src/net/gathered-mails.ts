import { forEachIsolated } from "../base/for-each-isolated.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Mail, Mailer } from "./mailer.ts";

/** One thing that somebody is to be told, as it waits. */
export interface GatheredLine {
  readonly createdAtMs: number;
}

export interface GatheredMailsDeps<Line extends GatheredLine> {
  /** Some that lines wait for, `limit` at most, without those named. */
  readonly recipients: (limit: number, without: readonly string[]) => readonly string[];
  /** What waits for somebody, the oldest first. */
  readonly linesFor: (recipient: string) => readonly Line[];
  /** Lines are not to be mailed any more. */
  readonly forget: (lines: readonly Line[]) => Promise<void>;
  /** One mail about all of the lines, which are not empty; null when they hold nothing that can be told: they are forgotten. */
  readonly compose: (lines: readonly Line[]) => Omit<Mail, "to"> | null;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly log: Log;
  /** What the log calls such a mail: `an alert mail`. */
  readonly what: string;
}

const MINUTE_MS = 60_000;
/** More may be found at once: the first line waits this long for others. */
const GATHER_MS = MINUTE_MS;
/** At most one mail to somebody in so long, whatever happens. */
const MAIL_EVERY_MS = 10 * MINUTE_MS;
/** A relay that takes no mail for so long: what waited is of no use any more. */
const KEPT_MS = 24 * 60 * MINUTE_MS;
const RECIPIENTS_AT_ONCE = 100;

/** Sends what has gathered: one mail to each recipient. What a crash leaves behind is sent at the next run. */
export const createGatheredMails = <Line extends GatheredLine>(deps: GatheredMailsDeps<Line>) => {
  const { recipients, linesFor, forget, compose, mailer, clock, log, what } = deps;
  const mailedAtMs = new Map<string, number>();

  const mailTo = async (recipient: string): Promise<void> => {
    const lines = linesFor(recipient);
    const [oldest] = lines;
    const nowMs = clock.nowMs();
    if (oldest === undefined || nowMs - oldest.createdAtMs < GATHER_MS) return;
    const mail = compose(lines);
    if (mail === null) return forget(lines);
    const sent = await mailer({ to: recipient, ...mail });
    if (sent.ok) {
      mailedAtMs.set(recipient, nowMs);
      await forget(lines);
    } else if (sent.error.isFinal || nowMs - oldest.createdAtMs > KEPT_MS) {
      log.error(`${what} is given up`, { alerts: lines.length, problem: sent.error.problem });
      await forget(lines);
    } else {
      log.warn(`${what} was not taken; it is sent again`, { problem: sent.error.problem });
    }
  };

  return {
    async send(): Promise<void> {
      const nowMs = clock.nowMs();
      for (const [recipient, atMs] of mailedAtMs) if (nowMs - atMs >= MAIL_EVERY_MS) mailedAtMs.delete(recipient);
      await forEachIsolated(recipients(RECIPIENTS_AT_ONCE, [...mailedAtMs.keys()]), mailTo, {
        onFailure: (_recipient, cause) => log.error(`${what} failed; it is tried again in the next run`, { cause }),
      });
    },
  };
};

/** A sender of gathered mail. */
export type GatheredMails = ReturnType<typeof createGatheredMails>;
