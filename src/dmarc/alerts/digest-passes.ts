import { dayOfTime } from "../../base/days.ts";
import { forEachIsolated } from "../../base/for-each-isolated.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { Mailer } from "../../net/mailer.ts";
import { type DigestFacts, sectionOf } from "./digest.ts";
import { digestHtml } from "./digest-html.ts";
import { daysToldOf } from "./digest-range.ts";
import { latestDueMs, nextDigestMs } from "../../base/digest-schedule.ts";
import type { DigestLine, DigestStore } from "./digest-store.ts";
import { digestSubject, digestText } from "./digest-text.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";

export interface DigestPassDeps {
  readonly db: Db;
  readonly store: DigestStore;
  readonly domains: Pick<DomainStore, "findByNumber" | "update">;
  /** Reads what a digest says about a domain. */
  readonly read: (domain: DomainRow, line: Pick<DigestLine, "period" | "range">) => Promise<DigestFacts>;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly log: Log;
  /** Where the service is reached, without a `/` at the end. */
  readonly baseUrl: string;
}

const DOMAINS_AT_ONCE = 200;
const RECIPIENTS_AT_ONCE = 100;
/** Domains told of in one mail; the rest are counted. */
const SECTIONS_MAX = 100;
/** A relay that takes no mail for so long: the next digest says it better. */
const KEPT_MS = 24 * 60 * 60_000;
const PUT_OFF_MS = 60 * 60_000;

/** What the timetable does for digests: queues those that are due, and mails what is queued. */
export const createDigestPasses = (deps: DigestPassDeps) => {
  const { db, store, domains, read, mailer, clock, log, baseUrl } = deps;
  /** The lines and the next time are written in one transaction, so that a crash neither loses a digest nor repeats it. */
  const queueOne = (tx: Tx, number: number, nowMs: number): void => {
    const domain = domains.findByNumber(number);
    if (domain === undefined || domain.digest === "off" || domain.digestDueAtMs === null) return;
    const { digest: period, digestDueAtMs, mode, recipients } = domain;
    domains.update(tx, number, { digestDueAtMs: nextDigestMs(period, nowMs) });
    if (mode === "test") return;
    const range = daysToldOf(period, latestDueMs(period, digestDueAtMs, nowMs));
    // Days before the enrolment without any report are no news.
    if (range.toDay < dayOfTime(domain.createdAtMs) && domain.lastReportAtMs === null) return;
    for (const recipient of recipients) {
      store.insertLine(tx, { recipient, createdAtMs: nowMs, domain: number, period, range });
    }
  };

  /** One that fails is due again in an hour: it must not be met again and again in this run. */
  const putOff = async (number: number, cause: unknown): Promise<void> => {
    log.error("the digest of a domain failed; it is due again in an hour", { number, cause });
    await db.commit((tx) => domains.update(tx, number, { digestDueAtMs: clock.nowMs() + PUT_OFF_MS }));
  };

  const queueDue = async (): Promise<void> => {
    const nowMs = clock.nowMs();
    for (let queued = DOMAINS_AT_ONCE; queued === DOMAINS_AT_ONCE;) {
      const due = store.dueDomains(nowMs, DOMAINS_AT_ONCE);
      const queue = (number: number) => db.commit((tx) => queueOne(tx, number, nowMs));
      await forEachIsolated(due, queue, { onFailure: putOff });
      queued = due.length;
    }
  };

  const forget = (lines: readonly DigestLine[]): Promise<void> =>
    db.commit((tx) =>
      store.removeLines(
        tx,
        lines.map(({ id }) => id),
      ),
    );

  const compose = async (found: readonly { readonly domain: DomainRow; readonly line: DigestLine }[]) => {
    const sections = [];
    for (const { domain, line } of found.slice(0, SECTIONS_MAX))
      sections.push(sectionOf(await read(domain, line), baseUrl));
    const frame = { more: found.length - sections.length, baseUrl };
    const subject = digestSubject(sections);
    return { subject, text: digestText(sections, frame), html: digestHtml(subject, sections, frame) };
  };

  /** One mail about the domains of one account. */
  const mailTo = async (recipient: string, lines: readonly DigestLine[]): Promise<void> => {
    const found = lines.flatMap((line) => {
      const domain = domains.findByNumber(line.domain);
      // Who was taken off the list meanwhile, or turned digests off, gets none.
      return domain?.recipients.includes(recipient) && domain.digest !== "off" ? [{ domain, line }] : [];
    });
    if (found.length === 0) return forget(lines);
    const sent = await mailer({ to: recipient, ...(await compose(found)) });
    const [oldest] = lines;
    if (sent.ok) {
      await forget(lines);
    } else if (sent.error.isFinal || clock.nowMs() - (oldest?.createdAtMs ?? 0) > KEPT_MS) {
      log.error("a DMARC digest is given up", { domains: found.length, problem: sent.error.problem });
      await forget(lines);
    } else {
      log.warn("a DMARC digest was not taken; it is sent again", { problem: sent.error.problem });
    }
  };

  const sendAll = async (recipient: string): Promise<void> => {
    const accounts = Map.groupBy(
      store.linesFor(recipient),
      ({ domain }) => domains.findByNumber(domain)?.accountId ?? "",
    );
    await forEachIsolated(accounts.values(), (lines) => mailTo(recipient, lines), { onFailure });
  };

  const onFailure = (_one: unknown, cause: unknown): void =>
    log.error("a DMARC digest failed; it is tried again in the next run", { cause });

  return {
    async run(): Promise<void> {
      await queueDue();
      for (let after = ""; ;) {
        const recipients = store.recipients(after, RECIPIENTS_AT_ONCE);
        const last = recipients.at(-1);
        if (last === undefined) return;
        await forEachIsolated(recipients, sendAll, { onFailure });
        after = last;
      }
    },
  };
};

export type DigestPasses = ReturnType<typeof createDigestPasses>;
