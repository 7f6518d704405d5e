import type { Clock } from "../../../foundation/base/clock.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import type { Log } from "../../../foundation/base/log.ts";
import { RepeatedError } from "../../../foundation/base/repeated-error.ts";
import { parseAddress } from "../../../foundation/mail/address.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";
import type {
  AcceptOutcome,
  ReceivedMail,
  ReceiverRules,
  RecipientVerdict,
} from "../../../foundation/net/smtp-receiver-rules.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { isToken } from "../../records/domains/token.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import type { ReportIntake } from "./report-intake.ts";
import type { ReportQuota } from "./report-quota.ts";

/** What the rules use beside clock and log. */
export interface ReportMailParts {
  readonly domains: Pick<DomainStore, "findByToken">;
  readonly quota: ReportQuota;
  readonly intake: Pick<ReportIntake, "take">;
  /** The domain of the reporting addresses. */
  readonly reportHost: string;
  readonly reserve: Pick<DiskReserve, "isLow">;
}

/** Domains for which the log is not repeated. */
const LOGGED_MAX = 10_000;

/**
 * What the SMTP receiver does with report mail. A recipient is known when it is the reporting address of a domain that is
 * enrolled with a live key. A mail is accepted when it is stored durably, once for each of its domains. Errors of the database
 * are `later`, never `unknown`; a low disk and a used-up quota are `full`.
 */
export class ReportMailRules implements ReceiverRules {
  readonly #runtime: { readonly clock: Clock; readonly log: Log };
  readonly #parts: ReportMailParts;
  readonly #storeFailures: RepeatedError;
  readonly #host: string;
  /** The day on which the log said that a domain has used up its quota. */
  readonly #loggedOn = new Map<number, number>();

  constructor(runtime: { readonly clock: Clock; readonly log: Log }, parts: ReportMailParts) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#storeFailures = new RepeatedError("storing a report mail failed", runtime);
    const host = parseDomain(parts.reportHost);
    this.#host = host.ok ? host.value.ascii : parts.reportHost.toLowerCase();
  }

  isFull(): boolean {
    return this.#parts.reserve.isLow();
  }

  judgeRecipient(address: string): RecipientVerdict {
    try {
      const domain = this.#findDomain(address);
      if (domain === undefined) return "unknown";
      return this.#isQuotaUsedUp(domain) && this.#parts.quota.isClosed(domain) ? "full" : "known";
    } catch (error) {
      this.#runtime.log.error("looking up the recipient of a report mail failed", { error });
      return "later";
    }
  }

  async acceptMail(mail: ReceivedMail): Promise<AcceptOutcome> {
    try {
      const domains = this.#findDomains(mail.recipients);
      // All of them were deleted after RCPT.
      if (domains.length === 0) return "refused";
      if (this.#parts.reserve.isLow(mail.bytes.byteLength * domains.length)) return "full";
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
    const domain = token === null ? undefined : this.#parts.domains.findByToken(token);
    // Domains of test keys get their reports by upload only.
    return domain?.mode === "live" ? domain : undefined;
  }

  async #checkQuota(domains: readonly DomainRow[], mail: ReceivedMail) {
    const { quota } = this.#parts;
    const usedUp = domains.filter((domain) => this.#isQuotaUsedUp(domain));
    if (usedUp.some((domain) => quota.isClosed(domain))) return "full";
    return usedUp.length === 0 ? "free" : quota.checkReporter(usedUp, mail);
  }

  /** Whether a domain has used up what all senders share, which is logged once a day. */
  #isQuotaUsedUp({ number, domain, ...row }: DomainRow): boolean {
    if (!this.#parts.quota.isUsedUp(row)) return false;
    const today = dayOfTime(this.#runtime.clock.nowMs());
    if (this.#loggedOn.get(number) !== today) {
      if (this.#loggedOn.size >= LOGGED_MAX) this.#loggedOn.clear();
      this.#loggedOn.set(number, today);
      this.#runtime.log.warn(
        "daily quota of report mail used up; until tomorrow (UTC) only mail of known reporters is accepted",
        { domain },
      );
    }
    return true;
  }

  #store(domain: DomainRow, { bytes, client, helo, mailFrom }: ReceivedMail): Promise<string> {
    const { accountId, mode, number } = domain;
    const mail = { via: "smtp", name: null, bytes, client, helo, mailFrom } as const;
    return this.#parts.intake.take({ accountId, mode, domain: number, ...mail });
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
