import { forEachIsolated } from "../../../foundation/base/in-steps.ts";
import { dayOfTime, latestDueMs, nextDigestMs } from "../../../foundation/base/days.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { MailBatcher, type Mailing, type MailRuntime } from "../../../notifications/mail/mail-batcher.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import type { TagDigest, TagDigestStore } from "../../records/domains/tag-digest-store.ts";
import { digestDays, dmarcDigestMail, type DomainDigestFacts } from "./digest-mail.ts";
import { DigestQueue, type QueuedDigest } from "./mail-queue-store.ts";

const DOMAINS_AT_ONCE = 200;
/** Domains in one mail; the rest are counted. */
const SECTIONS_MAX = 100;
const POSTPONED_MS = 60 * 60_000;
/** Domains in the digest of a tag, those that were enrolled last. */
const TAG_DOMAINS_MAX = 1_000;

interface NewDigest extends Omit<QueuedDigest, "id" | "domain"> {
  readonly recipients: readonly string[];
}

/** The scheduled job for digests: queues those that are due, then mails what is queued, one mail about all domains of an account. */
export class DigestJob {
  readonly #queue: DigestQueue;
  readonly #batcher: MailBatcher<QueuedDigest>;

  constructor(
    private readonly runtime: MailRuntime,
    private readonly deps: {
      readonly domains: Pick<DomainStore, "findByNumber" | "update" | "list">;
      /** Reads what a digest says about a domain. */
      readonly read: (domain: DomainRow, queued: Pick<QueuedDigest, "period" | "range">) => Promise<DomainDigestFacts>;
      readonly mailing: Mailing;
      readonly tags: TagDigestStore;
    },
  ) {
    const { domains, mailing } = deps;
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
    await this.#queueDueTags();
    await this.#batcher.send();
  }

  async #queueDue() {
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
  #queueOne(tx: Tx, number: number, nowMs: number) {
    const { domains } = this.deps;
    const domain = domains.findByNumber(number);
    if (domain === undefined || domain.digest === "off" || domain.digestDueAtMs === null) return;
    const { digest: period, digestDueAtMs, mode, recipients } = domain;
    domains.update(tx, number, { digestDueAtMs: nextDigestMs(period, nowMs) });
    if (mode === "test") return;
    const range = digestDays(period, latestDueMs(period, digestDueAtMs, nowMs));
    this.#insert(tx, domain, { recipients, createdAtMs: nowMs, period, range });
  }

  #insert(tx: Tx, domain: DomainRow, { recipients, ...queued }: NewDigest) {
    // There is nothing to say about days before the enrolment without any report.
    if (queued.range.toDay < dayOfTime(domain.createdAtMs) && domain.lastReportAtMs === null) return;
    for (const recipient of recipients) this.#queue.insert(tx, recipient, { ...queued, domain: domain.number });
  }

  async #queueDueTags() {
    const { db, clock, log } = this.runtime;
    const { tags } = this.deps;
    const nowMs = clock.nowMs();
    for (;;) {
      const due = tags.due(nowMs, DOMAINS_AT_ONCE);
      await forEachIsolated(due, (digest) => db.commit((tx) => this.#queueTag(tx, digest, nowMs)), {
        onFailure: async ({ tag, ...digest }, error) => {
          log.error("DMARC digest of a tag failed, will be retried in an hour", { tag, error });
          await db.commit((tx) => tags.save(tx, { ...digest, tag, dueAtMs: nowMs + POSTPONED_MS }));
        },
      });
      if (due.length < DOMAINS_AT_ONCE) return;
    }
  }

  /** Queues the digest of a tag about each of its domains, and sets its next time, in one transaction. */
  #queueTag(tx: Tx, digest: TagDigest, nowMs: number) {
    const { tags, domains } = this.deps;
    const { tag, digest: period, dueAtMs, recipients } = digest;
    if (period === "off" || dueAtMs === null) return;
    tags.save(tx, { ...digest, dueAtMs: nextDigestMs(period, nowMs) });
    const range = digestDays(period, latestDueMs(period, dueAtMs, nowMs));
    const found = domains.list(digest, { tag }, { before: null, limit: TAG_DOMAINS_MAX });
    const inOrder = found.toSorted((a, b) => (a.domain < b.domain ? -1 : 1));
    for (const domain of inOrder) this.#insert(tx, domain, { recipients, createdAtMs: nowMs, period, range });
  }

  /** A digest that fails must not be read again and again in one run. */
  async #postpone(number: number, error: unknown) {
    const { db, clock, log } = this.runtime;
    log.error("DMARC digest of a domain failed, will be retried in an hour", { number, error });
    await db.commit((tx) => this.deps.domains.update(tx, number, { digestDueAtMs: clock.nowMs() + POSTPONED_MS }));
  }

  async #compose(rows: readonly QueuedDigest[], recipient: string) {
    const { domains, read } = this.deps;
    const queued = new Map(rows.map((row) => [`${row.domain} ${row.range.fromDay} ${row.range.toDay}`, row]));
    const found = [...queued.values()].flatMap((row) => {
      const domain = domains.findByNumber(row.domain);
      // Recipients and digests may have been removed since it was queued.
      return domain !== undefined && this.#isWanted(domain, recipient) ? [{ domain, row }] : [];
    });
    if (found.length === 0) return null;
    const digests: DomainDigestFacts[] = [];
    for (const { domain, row } of found.slice(0, SECTIONS_MAX)) digests.push(await read(domain, row));
    return dmarcDigestMail(digests, found.length - digests.length);
  }

  /** Whether an address is a recipient of the domain's digest or of that of one of its tags. */
  #isWanted(domain: DomainRow, recipient: string): boolean {
    if (domain.recipients.includes(recipient) && domain.digest !== "off") return true;
    return domain.tags.some((tag) => {
      const digest = this.deps.tags.find(domain, tag);
      return digest !== undefined && digest.digest !== "off" && digest.recipients.includes(recipient);
    });
  }
}
