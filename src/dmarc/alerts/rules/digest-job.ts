import { dayOfTime, latestDueMs, nextDigestMs } from "../../../foundation/base/days.ts";
import { forEachIsolated } from "../../../foundation/base/in-steps.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { MailBatcher, type Mailing, type MailRuntime } from "../../../notifications/mail/mail-batcher.ts";
import type { MailContent } from "../../../notifications/mail/mail-content.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { digestDays, type DomainDigestFacts, dmarcDigestMail } from "./digest-mail.ts";
import { DigestQueue, type QueuedDigest } from "./mail-queue-store.ts";

export interface DigestJobOptions {
  readonly domains: Pick<DomainStore, "findByNumber" | "update">;
  /** Reads what a digest says about a domain. */
  readonly read: (domain: DomainRow, queued: Pick<QueuedDigest, "period" | "range">) => Promise<DomainDigestFacts>;
  readonly mailing: Mailing;
}

const DOMAINS_AT_ONCE = 200;
/** Domains in one mail; the rest are counted. */
const SECTIONS_MAX = 100;
const POSTPONED_MS = 60 * 60_000;

/** The scheduled job for digests: queues those that are due, then mails what is queued, one mail about all domains of an account. */
export class DigestJob {
  readonly #queue: DigestQueue;
  readonly #batcher: MailBatcher<QueuedDigest>;

  constructor(
    private readonly runtime: MailRuntime,
    private readonly options: DigestJobOptions,
  ) {
    const { domains, mailing } = options;
    this.#queue = new DigestQueue(runtime.db);
    this.#batcher = new MailBatcher(runtime, {
      name: "DMARC digest",
      queue: this.#queue,
      mailing,
      compose: (rows, recipient) => this.#compose(rows, recipient),
      topicOf: ({ domain: number }) => {
        const domain = domains.findByNumber(number);
        return domain === undefined ? null : { accountId: domain.accountId, kind: "dmarc_digest" };
      },
      gatherMs: 0,
      intervalMs: 0,
    });
  }

  async run(): Promise<void> {
    await this.#queueDue();
    await this.#batcher.send();
  }

  async #queueDue(): Promise<void> {
    const { db, clock } = this.runtime;
    const nowMs = clock.nowMs();
    for (;;) {
      const due = this.#queue.dueDomains(nowMs, DOMAINS_AT_ONCE);
      await forEachIsolated(due, (number) => db.commit((tx) => this.#queueOne(tx, number, nowMs)), {
        onFailure: (number, error) => this.#postpone(number, error),
      });
      if (due.length < DOMAINS_AT_ONCE) return;
    }
  }

  /** Queues a digest and sets its next time in one transaction: a crash neither loses nor repeats it. */
  #queueOne(tx: Tx, number: number, nowMs: number): void {
    const { domains } = this.options;
    const domain = domains.findByNumber(number);
    if (domain === undefined || domain.digest === "off" || domain.digestDueAtMs === null) return;
    const { digest: period, digestDueAtMs, mode, recipients } = domain;
    domains.update(tx, number, { digestDueAtMs: nextDigestMs(period, nowMs) });
    if (mode === "test") return;
    const range = digestDays(period, latestDueMs(period, digestDueAtMs, nowMs));
    // There is nothing to say about days before the enrolment without any report.
    if (range.toDay < dayOfTime(domain.createdAtMs) && domain.lastReportAtMs === null) return;
    for (const recipient of recipients)
      this.#queue.insert(tx, recipient, { createdAtMs: nowMs, domain: number, period, range });
  }

  /** A digest that fails must not be read again and again in one run. */
  async #postpone(number: number, error: unknown): Promise<void> {
    const { db, clock, log } = this.runtime;
    log.error("DMARC digest of a domain failed, will be retried in an hour", { number, error });
    await db.commit((tx) => this.options.domains.update(tx, number, { digestDueAtMs: clock.nowMs() + POSTPONED_MS }));
  }

  async #compose(rows: readonly QueuedDigest[], recipient: string): Promise<MailContent | null> {
    const { domains, read } = this.options;
    const found = rows.flatMap((row) => {
      const domain = domains.findByNumber(row.domain);
      // Recipients and digests may have been removed since it was queued.
      return domain?.recipients.includes(recipient) && domain.digest !== "off" ? [{ domain, row }] : [];
    });
    if (found.length === 0) return null;
    const digests: DomainDigestFacts[] = [];
    for (const { domain, row } of found.slice(0, SECTIONS_MAX)) digests.push(await read(domain, row));
    return dmarcDigestMail(digests, found.length - digests.length);
  }
}
