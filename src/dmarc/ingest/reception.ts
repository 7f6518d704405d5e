import type { Log } from "../../base/log.ts";
import { parseAddress } from "../../mail/address.ts";
import { parseDomain } from "../../mail/domain.ts";
import type { ReceivedMail, ReceiverRules } from "../../net/smtp-receiver-rules.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import type { Intake } from "./intake.ts";
import { isToken } from "../domains/token.ts";

export interface ReceptionDeps {
  readonly domains: Pick<DomainStore, "findByToken">;
  readonly intake: Pick<Intake, "take">;
  /** The domain of the reporting addresses. */
  readonly reportHost: string;
  readonly log: Log;
}

/**
 * What the mail receiver does with report mail: a recipient is known when it is the reporting address of a domain that
 * is enrolled with a live key; a mail is taken when it is durably on the list of what is to be read, once for each of
 * its domains. Trouble with the database is `later`, never `unknown`.
 */
export const createReception = ({ domains, intake, reportHost, log }: ReceptionDeps): ReceiverRules => {
  const host = asHost(reportHost);

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
    judgeRecipient(address) {
      try {
        return findDomain(address) === undefined ? "unknown" : "known";
      } catch (error) {
        log.error("the recipient of a report mail could not be looked up", { error });
        return "later";
      }
    },

    async take(mail) {
      try {
        const found = new Map<number, DomainRow>();
        for (const recipient of mail.recipients) {
          const domain = findDomain(recipient);
          if (domain !== undefined) found.set(domain.number, domain);
        }
        // Every domain was deleted after RCPT was accepted.
        if (found.size === 0) return "refused";
        await Promise.all([...found.values()].map((domain) => takeFor(domain, mail)));
        return "taken";
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
