import { manualHint } from "../foundation/base/manual-hint.ts";
import { parseAddress } from "../foundation/mail/address.ts";
import { type DnsOutcome, type DnsResponse, type DnsResolver, isDefinite } from "../foundation/net/dns.ts";
import { reverseQueryName } from "../foundation/net/dns-name.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const heloCheck = doctorFindings("helo", "HELO name", "sender-reputation#helo-name");
const mailFromCheck = doctorFindings("mail_from", "Sender of probes", "sender-reputation#envelope-sender");

/** Whether the HELO name is a host name with addresses, and one of them has it as its reverse name. */
export const checkHelo = async (
  { heloName }: Pick<DoctorSettings, "heloName">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  const advice = "Set POSTWARDEN_HELO_NAME to this machine's public host name, with matching A and PTR records.";
  if (heloName.startsWith("["))
    return heloCheck.warn(`The HELO name ${heloName} is an address literal, which many servers refuse. ${advice}`);
  if (!heloName.includes("."))
    return heloCheck.fail(`The HELO name "${heloName}" is not a fully qualified host name. ${advice}`);
  const [v4, v6] = await Promise.all([resolver.resolve(heloName, "A"), resolver.resolve(heloName, "AAAA")]);
  const addresses = [...v4.records, ...v6.records];
  if (addresses.length === 0) {
    const failed = failureOf([v4, v6]);
    return failed === null
      ? heloCheck.fail(`${heloName} has no A or AAAA record (${v4.outcome}). ${advice}`)
      : heloCheck.warn(`The address query for ${heloName} failed (${failed}). Check the DNS servers.`);
  }
  const reverse = await Promise.all(addresses.map((address) => resolver.resolve(reverseQueryName(address), "PTR")));
  if (reverse.some((reply) => reply.records.includes(heloName.toLowerCase())))
    return heloCheck.ok(`${heloName} resolves to ${addresses.join(", ")}, and a PTR record matches.`);
  const failed = failureOf(reverse);
  const found = `${heloName} resolves to ${addresses.join(", ")}`;
  return failed === null
    ? heloCheck.warn(`${found}, but no PTR record names it. ${advice}`)
    : heloCheck.warn(`${found}; the PTR query failed (${failed}). Check the DNS servers.`);
};

/** The first outcome that is not definite; null when all are. */
const failureOf = (replies: readonly DnsResponse[]): DnsOutcome | null =>
  replies.find(({ outcome }) => !isDefinite(outcome))?.outcome ?? null;

/** Whether the domain of the envelope sender accepts mail. */
export const checkSender = async (
  { mailFrom }: Pick<DoctorSettings, "mailFrom">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  if (mailFrom === "")
    return mailFromCheck.ok(
      `The null sender <>, as in bounces. A few servers refuse it; see ${manualHint("sender-reputation#envelope-sender")}.`,
    );
  const address = parseAddress(mailFrom);
  if (!address.ok) return mailFromCheck.fail(`${mailFrom} is not an email address.`);
  const { domain } = address.value;
  const types = ["MX", "A", "AAAA"] as const;
  const replies = await Promise.all(types.map((type) => resolver.resolve(domain, type)));
  if (replies.some(({ outcome }) => outcome === "response"))
    return mailFromCheck.ok(`The domain of ${mailFrom} accepts mail.`);
  const failed = failureOf(replies);
  return failed === null
    ? mailFromCheck.fail(
        `The domain of ${mailFrom} has no MX, A or AAAA record, so servers will refuse the sender. Set POSTWARDEN_MAIL_FROM to an address that accepts mail.`,
      )
    : mailFromCheck.warn(`The queries for the domain of ${mailFrom} failed (${failed}). Check the DNS servers.`);
};
