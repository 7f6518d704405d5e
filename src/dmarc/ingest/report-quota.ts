import type { Clock } from "../../base/clock.ts";
import { dayOfTime } from "../../base/days.ts";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import type { ReceivedMail } from "../../net/smtp-receiver-rules.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { ReportAuthorStore } from "../domains/report-author-store.ts";

/** What report mail may take of the disk for one domain on one day, unpacked reports included. The largest senders need some 50 MB. */
export const DOMAIN_DAY_BYTES_MAX = 256 * 1024 * 1024;
/** What each known reporter may take beyond that, and all of it together. */
export const AUTHOR_DAY_BYTES_MAX = 64 * 1024 * 1024;
export const DOMAIN_DAY_BYTES_CEILING = 1024 * 1024 * 1024;
/** A larger mail is not judged to find out whether it is a known reporter's. */
export const JUDGED_BYTES_MAX = 8 * 1024 * 1024;
/** Mails judged at a time. */
export const JUDGED_AT_ONCE = 4;

/** Whether there is room for a mail: `full` until tomorrow, `later` while that cannot be said. */
export type QuotaDecision = "free" | "full" | "later";

export interface ReportQuotaDeps {
  readonly authors: Pick<ReportAuthorStore, "find" | "hasKnown">;
  /** Never rejects; null where no mail is judged. */
  readonly authenticate: AuthenticateMail | null;
  readonly clock: Clock;
}

/**
 * Who may still send report mail for a domain today. All share `DOMAIN_DAY_BYTES_MAX`. Once that is used up, which anybody can do,
 * only known reporters are heard: those whose authenticated reports came on an earlier day, each with a share of its own. Their
 * mail is judged for that before it is accepted.
 */
export const createReportQuota = ({ authors, authenticate, clock }: ReportQuotaDeps) => {
  let judging = 0;
  const today = (): number => dayOfTime(clock.nowMs());
  const usedToday = ({ usageDay, usageBytes }: { readonly usageDay: number; readonly usageBytes: number }): number =>
    usageDay === today() ? usageBytes : 0;

  /** Whether the share of all is used up. */
  const isSpent = (domain: DomainRow): boolean => usedToday(domain) >= DOMAIN_DAY_BYTES_MAX;

  const hasRoomFor = (author: string, { number }: DomainRow): boolean => {
    const found = authors.find(number, author);
    return found !== null && found.firstDay < today() && usedToday(found) < AUTHOR_DAY_BYTES_MAX;
  };

  return {
    isSpent,
    /** Whether nobody's mail has room any more: then it need not be sent. */
    isClosed: (domain: DomainRow): boolean =>
      isSpent(domain) &&
      (authenticate === null ||
        usedToday(domain) >= DOMAIN_DAY_BYTES_CEILING ||
        !authors.hasKnown(domain.number, today())),
    /** Whether a mail has room in each of some domains whose share is used up. */
    async roomBeyond(domains: readonly DomainRow[], mail: ReceivedMail): Promise<QuotaDecision> {
      if (authenticate === null || mail.bytes.byteLength > JUDGED_BYTES_MAX) return "full";
      if (judging >= JUDGED_AT_ONCE) return "later";
      judging += 1;
      try {
        const { bytes, client, helo, mailFrom } = mail;
        const { authenticity, from, temporary } = await authenticate({ bytes, client, helo, mailFrom });
        if (authenticity !== "pass" || from === null) return temporary === true ? "later" : "full";
        const author = organisationalDomain(from) ?? from;
        return domains.every((domain) => hasRoomFor(author, domain)) ? "free" : "full";
      } finally {
        judging -= 1;
      }
    },
  };
};
