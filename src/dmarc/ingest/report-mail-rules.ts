import type { Clock } from "../../base/clock.ts";
import { dayOfTime } from "../../base/days.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { ReportAuthorStore } from "../domains/report-author-store.ts";
import { createReportQuota } from "./report-quota.ts";
import type { Log } from "../../base/log.ts";
import { parseAddress } from "../../mail/address.ts";
import { parseDomain } from "../../mail/domain.ts";
import type { ReceivedMail, ReceiverRules } from "../../net/smtp-receiver-rules.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import type { ReportIntake } from "./report-intake.ts";
import { isToken } from "../domains/token.ts";

export interface ReportMailRulesDeps {
  readonly domains: Pick<DomainStore, "findByToken">;
  readonly authors: Pick<ReportAuthorStore, "find" | "hasKnown">;
  readonly authenticate: AuthenticateMail | null;
  readonly intake: Pick<ReportIntake, "take">;
  /** The domain of the reporting addresses. */
  readonly reportHost: string;
  readonly reserve: Pick<DiskReserve, "isLow">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Domains of which it is remembered that the log was told. */
const TOLD_MAX = 10_000;

/**
 * What the mail receiver does with report mail: a recipient is known when it is the reporting address of a domain that
 * is enrolled with a live key; a mail is taken when it is durably on the list of what is to be read, once for each of
 * its domains. Trouble with the database is `later`, never `unknown`; without space on the disk, or in what a domain may take
 * of it on a day (`createReportQuota`), mail is refused for now (`full`) before anything is acknowledged.
 */
export const createReportMailRules = (deps: ReportMailRulesDeps): ReceiverRules => {
  const { domains, authors, authenticate, intake, reportHost, reserve, clock, log } = deps;
  const share = createReportQuota({ authors, authenticate, clock });
  const host = asHost(reportHost);
  /** Domains by the day on which the log was told that they had their share. */
  const told = new Map<number, number>();

  const hasHadShare = (row: DomainRow): boolean => {
    if (!share.isSpent(row)) return false;
    const today = dayOfTime(clock.nowMs());
    if (told.get(row.number) !== today) {
      if (told.size >= TOLD_MAX) told.clear();
      told.set(row.number, today);
      log.warn(
        "report mail of a domain took its share of the disk; until tomorrow (UTC) only mail of known reporters is accepted",
        { domain: row.domain },
      );
    }
    return true;
  };

  const findDomain = (address: string): DomainRow | undefined => {
    const token = tokenIn(address, host);
    const domain = token === null ? undefined : domains.findByToken(token);
    // Nobody reports to the made-up addresses of test keys: their data comes by upload.
    return domain?.mode === "live" ? domain : undefined;
  };

  const takeFor = (domain: DomainRow, { bytes, client, helo, mailFrom }: ReceivedMail): Promise<string> =>
    intake.take({
      accountId: domain.accountId,
      mode: domain.mode,
      domain: domain.number,
      via: "smtp",
      name: null,
      bytes,
      client,
      helo,
      mailFrom,
    });

  return {
    isFull: () => reserve.isLow(),

    judgeRecipient(address) {
      try {
        const domain = findDomain(address);
        if (domain === undefined) return "unknown";
        return hasHadShare(domain) && share.isClosed(domain) ? "full" : "known";
      } catch (error) {
        log.error("the recipient of a report mail could not be looked up", { error });
        return "later";
      }
    },

    async acceptMail(mail) {
      try {
        const found = new Map<number, DomainRow>();
        for (const recipient of mail.recipients) {
          const domain = findDomain(recipient);
          if (domain !== undefined) found.set(domain.number, domain);
        }
        // Every domain was deleted after RCPT was accepted.
        if (found.size === 0) return "refused";
        if (reserve.isLow(mail.bytes.byteLength * found.size)) return "full";
        const spent = [...found.values()].filter(hasHadShare);
        if (spent.some(share.isClosed)) return "full";
        const room = spent.length === 0 ? "free" : await share.roomBeyond(spent, mail);
        if (room !== "free") return room;
        await Promise.all([...found.values()].map((domain) => takeFor(domain, mail)));
        return "accepted";
      } catch (error) {
        log.error("a report mail could not be stored", { error, client: mail.client, bytes: mail.bytes.length });
        return "later";
      }
    },
  };
};

/**
 * The token in `<token>@<host>`, null for any other address. Case does not matter, nor do quotes around the local part,
 * `+anything` behind the token (RFC 5233) and a dot at the end: senders rewrite addresses in such ways.
 */
export const tokenIn = (address: string, host: string): string | null => {
  const parsed = parseAddress(address.replace(/\.$/, ""));
  if (!parsed.ok || parsed.value.domain !== host) return null;
  const localPart = parsed.value.localPart.replace(/^"(.*)"$/s, "$1");
  const [token = ""] = localPart.split("+", 1);
  return isToken(token) ? token : null;
};

const asHost = (reportHost: string): string => {
  const parsed = parseDomain(reportHost);
  return parsed.ok ? parsed.value.ascii : reportHost.toLowerCase();
};
