import type { Clock } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import { type Log, RepeatedError } from "../../../foundation/base/log.ts";
import { parseAddress } from "../../../foundation/mail/address.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";
import type {
  AcceptOutcome,
  ReceivedMail,
  ReceiverRules,
  RecipientVerdict,
} from "../../../foundation/net/smtp-receiver-rules.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { isToken } from "../../records/domains/enrolments.ts";
import type { DiskReserve, ReportQueue } from "./ingestion-store.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { ReportAuthorStore } from "../../records/domains/reporter-store.ts";

/** Domains for which the log is not repeated. */
const LOGGED_MAX = 10_000;

/**
 * What the SMTP receiver does with report mail. A recipient is known when it is the reporting address of a domain that is
 * enrolled with a live key. A mail is accepted when it is stored durably, once for each of its domains. Errors of the database
 * are `later`, never `unknown`; a low disk and a used-up quota are `full`.
 */
export class ReportMailRules implements ReceiverRules {
  readonly #storeFailures: RepeatedError;
  readonly #host: string;
  /** The day on which the log said that a domain has used up its quota. */
  readonly #loggedOn = new Map<number, number>();

  constructor(
    private readonly runtime: { clock: Clock; log: Log },
    private readonly deps: {
      domains: Pick<DomainStore, "findByToken">;
      quota: ReportQuota;
      queue: Pick<ReportQueue, "add">;
      /** The domain of the reporting addresses. */
      reportHost: string;
      reserve: Pick<DiskReserve, "isLow">;
    },
  ) {
    this.#storeFailures = new RepeatedError("storing a report mail failed", runtime);
    const host = parseDomain(deps.reportHost);
    this.#host = host.ok ? host.value.ascii : deps.reportHost.toLowerCase();
  }

  isFull(): boolean {
    return this.deps.reserve.isLow();
  }

  judgeRecipient(address: string): RecipientVerdict {
    try {
      const domain = this.#findDomain(address);
      if (domain === undefined) return "unknown";
      return this.#isQuotaUsedUp(domain) && this.deps.quota.isClosed(domain) ? "full" : "known";
    } catch (error) {
      this.runtime.log.error("looking up the recipient of a report mail failed", { error });
      return "later";
    }
  }

  async acceptMail(mail: ReceivedMail): Promise<AcceptOutcome> {
    try {
      const domains = this.#findDomains(mail.recipients);
      // All of them were deleted after RCPT.
      if (domains.length === 0) return "refused";
      if (this.deps.reserve.isLow(mail.bytes.byteLength * domains.length)) return "full";
      const admission = await this.#checkQuota(domains, mail);
      if (admission !== "free") return admission;
      await Promise.all(domains.map((domain) => this.#store(domain, mail)));
      return "accepted";
    } catch (error) {
      const { client, bytes } = mail;
      this.#storeFailures.log({ error, client, bytes: bytes.length });
      return "later";
    }
  }

  #findDomains(recipients: readonly string[]): readonly DomainRow[] {
    const found = recipients.flatMap((recipient) => this.#findDomain(recipient) ?? []);
    return [...new Map(found.map((domain) => [domain.number, domain])).values()];
  }

  #findDomain(address: string): DomainRow | undefined {
    const token = tokenIn(address, this.#host);
    const domain = token === null ? undefined : this.deps.domains.findByToken(token);
    // Domains of test keys get their reports by upload only.
    return domain?.mode === "live" ? domain : undefined;
  }

  async #checkQuota(domains: readonly DomainRow[], mail: ReceivedMail) {
    const { quota } = this.deps;
    const usedUp = domains.filter((domain) => this.#isQuotaUsedUp(domain));
    if (usedUp.some((domain) => quota.isClosed(domain))) return "full";
    return usedUp.length === 0 ? "free" : quota.checkReporter(usedUp, mail);
  }

  /** Whether a domain has used up what all senders share, which is logged once a day. */
  #isQuotaUsedUp({ number, domain, ...row }: DomainRow) {
    if (!this.deps.quota.isUsedUp(row)) return false;
    const today = dayOfTime(this.runtime.clock.nowMs());
    if (this.#loggedOn.get(number) !== today) {
      if (this.#loggedOn.size >= LOGGED_MAX) this.#loggedOn.clear();
      this.#loggedOn.set(number, today);
      this.runtime.log.warn(
        "daily quota of report mail used up; until tomorrow (UTC) only mail of known reporters is accepted",
        { domain },
      );
    }
    return true;
  }

  #store(domain: DomainRow, { bytes, client, helo, mailFrom }: ReceivedMail): Promise<string> {
    const { accountId, mode, number } = domain;
    const mail = { via: "smtp", name: null, bytes, client, helo, mailFrom } as const;
    return this.deps.queue.add({ accountId, mode, domain: number, ...mail });
  }
}

/**
 * The token in `<token>@<host>`, null for any other address. Senders rewrite addresses, so case, quotes around the local
 * part, a `+suffix` (RFC 5233) and a trailing dot are ignored.
 */
export const tokenIn = (address: string, host: string): string | null => {
  const parsed = parseAddress(address.replace(/\.$/, ""));
  if (!parsed.ok || parsed.value.domain !== host) return null;
  const localPart = parsed.value.localPart.replace(/^"(.*)"$/s, "$1");
  const [token = ""] = localPart.split("+", 1);
  return isToken(token) ? token : null;
};

/** The disk space of a domain's report mail of one day, unpacked reports included. The largest senders need some 50 MB. */
export const DOMAIN_DAY_BYTES_MAX = 256 * 1024 * 1024;
/** The additional space of each known reporter, and of everything together. */
export const AUTHOR_DAY_BYTES_MAX = 64 * 1024 * 1024;
export const DOMAIN_DAY_BYTES_CEILING = 1024 * 1024 * 1024;
/** A larger mail is not authenticated before it is accepted. */
export const AUTHENTICATED_BYTES_MAX = 8 * 1024 * 1024;
/** Mails authenticated at a time before they are accepted. */
export const AUTHENTICATED_AT_ONCE = 4;

type Usage = Pick<DomainRow, "usageDay" | "usageBytes">;

/**
 * The daily quota of report mail of a domain. All senders share `DOMAIN_DAY_BYTES_MAX`. When that is used up, which anybody
 * can cause, only known reporters are accepted: those whose authenticated reports arrived on an earlier day, each with
 * a separate quota. Their mail is authenticated before it is accepted.
 */
export class ReportQuota {
  #authenticating = 0;

  /** `authenticate` is null where no mail is authenticated. */
  constructor(
    private readonly clock: Clock,
    private readonly authors: Pick<ReportAuthorStore, "find" | "hasKnown">,
    private readonly authenticate: AuthenticateMail | null,
  ) {}

  /** Whether the space that all senders share is used up. */
  isUsedUp(usage: Usage): boolean {
    return this.#usedToday(usage) >= DOMAIN_DAY_BYTES_MAX;
  }

  /** Whether no mail can be accepted, from any sender. */
  isClosed(domain: DomainRow): boolean {
    if (!this.isUsedUp(domain)) return false;
    const isAtCeiling = this.#usedToday(domain) >= DOMAIN_DAY_BYTES_CEILING;
    return this.authenticate === null || isAtCeiling || !this.authors.hasKnown(domain.number, this.#today());
  }

  /**
   * Whether a mail is a known reporter's within its separate quota, for domains whose shared quota is used up.
   * `full`: no space until tomorrow (UTC). `later`: not known now.
   */
  async checkReporter(domains: readonly DomainRow[], mail: ReceivedMail) {
    if (this.authenticate === null || mail.bytes.byteLength > AUTHENTICATED_BYTES_MAX) return "full";
    if (this.#authenticating >= AUTHENTICATED_AT_ONCE) return "later";
    this.#authenticating += 1;
    try {
      const { bytes, client, helo, mailFrom } = mail;
      const { authenticity, from, temporary } = await this.authenticate({ bytes, client, helo, mailFrom });
      if (authenticity !== "pass" || from === null) return temporary === true ? "later" : "full";
      const author = organisationalDomain(from) ?? from;
      return domains.every(({ number }) => this.#hasSpaceFor(author, number)) ? "free" : "full";
    } finally {
      this.#authenticating -= 1;
    }
  }

  #hasSpaceFor(author: string, domain: number) {
    const found = this.authors.find(domain, author);
    return found !== null && found.firstDay < this.#today() && this.#usedToday(found) < AUTHOR_DAY_BYTES_MAX;
  }

  #usedToday({ usageDay, usageBytes }: Usage) {
    return usageDay === this.#today() ? usageBytes : 0;
  }

  #today() {
    return dayOfTime(this.clock.nowMs());
  }
}
