import type { Clock } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import type { ReceivedMail } from "../../../foundation/net/smtp-receiver-rules.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { ReportAuthorStore } from "../../records/domains/report-author-store.ts";

/** The disk space of a domain's report mail of one day, unpacked reports included. The largest senders need some 50 MB. */
export const DOMAIN_DAY_BYTES_MAX = 256 * 1024 * 1024;
/** The additional space of each known reporter, and of everything together. */
export const AUTHOR_DAY_BYTES_MAX = 64 * 1024 * 1024;
export const DOMAIN_DAY_BYTES_CEILING = 1024 * 1024 * 1024;
/** A larger mail is not authenticated before it is accepted. */
export const AUTHENTICATED_BYTES_MAX = 8 * 1024 * 1024;
/** Mails authenticated at a time before they are accepted. */
export const AUTHENTICATED_AT_ONCE = 4;

/** `full`: no space until tomorrow (UTC). `later`: not known now. */
export type QuotaDecision = "free" | "full" | "later";

type Usage = Pick<DomainRow, "usageDay" | "usageBytes">;

/**
 * The daily quota of report mail of a domain. All senders share `DOMAIN_DAY_BYTES_MAX`. When that is used up, which anybody
 * can cause, only known reporters are accepted: those whose authenticated reports arrived on an earlier day, each with
 * a separate quota. Their mail is authenticated before it is accepted.
 */
export class ReportQuota {
  readonly #clock: Clock;
  readonly #authors: Pick<ReportAuthorStore, "find" | "hasKnown">;
  readonly #authenticate: AuthenticateMail | null;
  #authenticating = 0;

  /** `authenticate` is null where no mail is authenticated. */
  constructor(
    clock: Clock,
    authors: Pick<ReportAuthorStore, "find" | "hasKnown">,
    authenticate: AuthenticateMail | null,
  ) {
    this.#clock = clock;
    this.#authors = authors;
    this.#authenticate = authenticate;
  }

  /** Whether the space that all senders share is used up. */
  isUsedUp(usage: Usage): boolean {
    return this.#usedToday(usage) >= DOMAIN_DAY_BYTES_MAX;
  }

  /** Whether no mail can be accepted, from any sender. */
  isClosed(domain: DomainRow): boolean {
    if (!this.isUsedUp(domain)) return false;
    const isAtCeiling = this.#usedToday(domain) >= DOMAIN_DAY_BYTES_CEILING;
    return this.#authenticate === null || isAtCeiling || !this.#authors.hasKnown(domain.number, this.#today());
  }

  /** Whether a mail is a known reporter's within its separate quota, for domains whose shared quota is used up. */
  async checkReporter(domains: readonly DomainRow[], mail: ReceivedMail): Promise<QuotaDecision> {
    if (this.#authenticate === null || mail.bytes.byteLength > AUTHENTICATED_BYTES_MAX) return "full";
    if (this.#authenticating >= AUTHENTICATED_AT_ONCE) return "later";
    this.#authenticating += 1;
    try {
      const { bytes, client, helo, mailFrom } = mail;
      const { authenticity, from, temporary } = await this.#authenticate({ bytes, client, helo, mailFrom });
      if (authenticity !== "pass" || from === null) return temporary === true ? "later" : "full";
      const author = organisationalDomain(from) ?? from;
      return domains.every(({ number }) => this.#hasSpaceFor(author, number)) ? "free" : "full";
    } finally {
      this.#authenticating -= 1;
    }
  }

  #hasSpaceFor(author: string, domain: number): boolean {
    const found = this.#authors.find(domain, author);
    return found !== null && found.firstDay < this.#today() && this.#usedToday(found) < AUTHOR_DAY_BYTES_MAX;
  }

  #usedToday({ usageDay, usageBytes }: Usage): number {
    return usageDay === this.#today() ? usageBytes : 0;
  }

  #today(): number {
    return dayOfTime(this.#clock.nowMs());
  }
}
