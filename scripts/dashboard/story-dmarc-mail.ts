/** Who sends mail in the name of the world's domains, day by day, as receivers report it. */
import type { SampleReport, SampleRow } from "../../src/testing/dmarc-reports.ts";
import { HOSTILE, inXml } from "./hostile.ts";
import { Dice } from "./story-addresses.ts";
import type { WorldZone } from "./zone.ts";

/** A sender: its addresses, and what receivers see of its mail. */
interface Sender {
  readonly ips: readonly string[];
  readonly daily: number;
  /** Days before now: from, until. */
  readonly from?: number;
  readonly until?: number;
  row(domain: string, daysAgo: number): SampleRow;
}

const HOSTS: ReadonlyArray<readonly [ip: string, name: string | null, asn: number, country: string, owner: string]> = [
  ["81.169.10.20", "mail.kaffeewerk-lab.com", 6724, "DE", "STRATO AG"],
  ["81.169.10.21", "mail2.kaffeewerk-lab.com", 6724, "DE", "STRATO AG"],
  ["85.13.130.8", "www.ticketo-lab.com", 34788, "DE", "NMM-AS Neue Medien"],
  ["198.2.128.10", "mail10.atl11.mcsv.net", 14782, "US", "THEROCKETSCIENCEGROUP"],
  ["198.2.128.11", "mail11.atl11.mcsv.net", 14782, "US", "THEROCKETSCIENCEGROUP"],
  ["205.201.128.4", "mail4.sea31.mcsv.net", 14782, "US", "THEROCKETSCIENCEGROUP"],
  ["209.85.220.41", "mail-sor-f41.google.com", 15169, "US", "GOOGLE"],
  ["209.85.220.65", "mail-sor-f65.google.com", 15169, "US", "GOOGLE"],
  ["167.89.50.12", "o12.ptr8012.sendgrid.net", 11377, "US", "SENDGRID"],
  ["54.174.60.3", "a3.bf02.hubspotemail.net", 14618, "US", "AMAZON-AES"],
  ["95.216.10.90", "lists.rust-forum.example", 24940, "FI", "HETZNER-AS"],
  ["188.172.128.20", "out20.pod18.euw1.zdsys.com", 21880, "IE", "ZENDESK"],
  ["62.210.16.5", `mail.${"partner"}.example`, 12876, "FR", `Online SAS ${HOSTILE.script}`],
];

const own: Sender = {
  ...{ ips: ["81.169.10.20", "81.169.10.21"], daily: 900 },
  row: (domain) => ({ dkimResults: [`${domain} pass mail`], spfResults: [`${domain} pass`] }),
};
const google: Sender = {
  ...{ ips: ["209.85.220.41", "209.85.220.65"], daily: 260 },
  row: (domain) => ({ dkimResults: [`${domain} pass google`], spfResults: [`${domain} pass`] }),
};
const mailchimp: Sender = {
  ...{ ips: ["198.2.128.10", "198.2.128.11", "205.201.128.4"], daily: 45 },
  row: () => ({
    dkim: "fail",
    spf: "fail",
    dkimResults: ["mcsv.net pass k2"],
    spfResults: ["mail10.atl11.mcsv.net pass"],
  }),
};
/** The signature of SendGrid stops passing three days before now. */
const sendgrid: Sender = {
  ...{ ips: ["167.89.50.12"], daily: 180 },
  row: (domain, daysAgo) =>
    daysAgo > 3
      ? { dkimResults: [`${domain} pass s1`], spf: "fail", spfResults: ["sendgrid.net pass"] }
      : { dkim: "fail", spf: "fail", dkimResults: [`${domain} fail s1`], spfResults: ["sendgrid.net pass"] },
};
const hubspot: Sender = {
  ...{ ips: ["54.174.60.3"], daily: 120, from: 4 },
  row: (domain) => ({ dkimResults: [`${domain} pass hs1-8012`], spf: "fail", spfResults: ["hubspotemail.net pass"] }),
};
const zendesk: Sender = {
  ...{ ips: ["188.172.128.20"], daily: 30 },
  row: (domain) => ({ dkimResults: [`${domain} pass zendesk1`], spf: "fail", spfResults: ["zdsys.com pass"] }),
};
const mailingList: Sender = {
  ...{ ips: ["95.216.10.90"], daily: 6 },
  row: (domain) => ({
    ...{
      dkim: "fail",
      spf: "fail",
      dkimResults: [`${domain} fail mail`],
      spfResults: ["lists.rust-forum.example pass"],
    },
    reasons: [`mailing_list ${inXml(HOSTILE.script)}`],
  }),
};
const partner: Sender = {
  ...{ ips: ["62.210.16.5"], daily: 14, from: 50 },
  row: () => ({ dkim: "fail", spf: "fail", dkimResults: [], spfResults: ["partner.example pass"] }),
};
const website: Sender = {
  ...{ ips: ["85.13.130.8"], daily: 40 },
  row: (domain) => ({ dkim: "fail", spf: "pass", dkimResults: [], spfResults: [`${domain} pass`] }),
};

const strangerIp = (n: number): string =>
  `${[45, 103, 177, 190, 201][n % 5]}.${(n * 37) % 220}.${(n * 13) % 250}.${1 + (n % 240)}`;
const forged = (disposition: string): SampleRow => ({
  dkim: "fail",
  spf: "fail",
  dkimResults: [],
  spfResults: ["spam-source.example none"],
  disposition,
});

/** The domains of the world, the senders of each, and how much of the mail is forged on a usual day. */
export const MAIL: Readonly<
  Record<string, { senders: readonly Sender[]; scale: number; forgedDaily: number; from: number }>
> = {
  "kaffeewerk-lab.com": {
    ...{
      senders: [own, google, mailchimp, sendgrid, hubspot, zendesk, mailingList, partner],
      scale: 1,
      forgedDaily: 12,
      from: 90,
    },
  },
  "ticketo-lab.com": { senders: [website, google, mailchimp, mailingList], scale: 0.4, forgedDaily: 3, from: 25 },
  "hotelmar-lab.com": { senders: [own, google], scale: 0.5, forgedDaily: 2, from: 60 },
  "parked-lab.com": { senders: [], scale: 1, forgedDaily: 9, from: 80 },
};

/** Days before now on which someone forges mail of the first domain in bulk. */
const CAMPAIGN = { domain: "kaffeewerk-lab.com", days: [12, 11], messages: 1_150 };

const REPORTERS: ReadonlyArray<{ org: string; email: string; share: number; everyDays: number }> = [
  { org: "google.com", email: "noreply-dmarc-support@google.com", share: 0.46, everyDays: 1 },
  { org: "Enterprise Outlook", email: "dmarcreport@microsoft.com", share: 0.2, everyDays: 1 },
  { org: "Yahoo", email: "dmarchelp@yahooinc.com", share: 0.13, everyDays: 1 },
  { org: "GMX", email: "noreply-dmarc@sicher.gmx.net", share: 0.1, everyDays: 1 },
  { org: "FastMail Pty Ltd", email: "reports@fastmaildmarc.com", share: 0.06, everyDays: 2 },
  { org: inXml(`Comcast ${HOSTILE.attribute}`), email: "dmarc@comcast.example", share: 0.05, everyDays: 3 },
];

export const publishSenders = (zone: WorldZone): void => {
  for (const [ip, name, asn, country, owner] of HOSTS) zone.publishHost(ip, name, { asn, country, owner });
  // Two of three strangers have no reverse name; all have a network.
  for (let n = 0; n < 240; n++) {
    const ip = strangerIp(n);
    const name = n % 3 === 0 ? `host-${ip.replaceAll(".", "-")}.dynamic.isp.example` : null;
    zone.publishHost(ip, name, {
      asn: 64_500 + (n % 7),
      country: ["BR", "VN", "IN", "RU", "US"][n % 5] ?? "US",
      owner: `ISP ${n % 7}`,
    });
  }
};

const amount = (dice: Dice, base: number): number => Math.round(base * (0.75 + dice.roll(50) / 100));

const rowsOf = (domain: string, daysAgo: number, share: number, dice: Dice): SampleRow[] => {
  const mail = MAIL[domain];
  if (mail === undefined) return [];
  const weekday = new Date(Date.now() - daysAgo * 86_400_000).getUTCDay();
  const factor = share * mail.scale * (weekday === 0 || weekday === 6 ? 0.4 : 1);
  const known = mail.senders.flatMap((sender) => {
    if (daysAgo > (sender.from ?? 1e6) || daysAgo < (sender.until ?? 0)) return [];
    const count = amount(dice, (sender.daily * factor) / sender.ips.length);
    const row = sender.row(domain, daysAgo);
    return sender.ips.flatMap((ip) => (count < 1 ? [] : [{ ...row, ip, count }]));
  });
  const isCampaign = domain === CAMPAIGN.domain && CAMPAIGN.days.includes(daysAgo);
  const forgedCount = Math.round(share * (isCampaign ? CAMPAIGN.messages : mail.forgedDaily));
  const hosts = Math.max(1, Math.min(isCampaign ? 120 : 4, forgedCount));
  const strangers = Array.from({ length: forgedCount < 1 ? 0 : hosts }, (_, n) => ({
    ...forged(isCampaign ? "quarantine" : "none"),
    ...{
      ip: strangerIp(isCampaign ? n : (daysAgo * 7 + n) % 240),
      count: Math.max(1, Math.round(forgedCount / hosts)),
    },
  }));
  return [...known, ...strangers];
};

/** The aggregate reports of one day about all domains. `nowMs` is the end of the story. */
export const reportsOf = (
  daysAgo: number,
  nowMs: number,
  policies: Readonly<Record<string, string>>,
): SampleReport[] => {
  const begin = Math.floor(nowMs / 86_400_000 - daysAgo) * 86_400;
  return Object.entries(MAIL).flatMap(([domain, { from }]) => {
    if (daysAgo > from) return [];
    return REPORTERS.filter(({ everyDays }) => daysAgo % everyDays === 0).flatMap(
      ({ org, email, share }, at): SampleReport[] => {
        const rows = rowsOf(domain, daysAgo, share, new Dice(1 + daysAgo * 100 + at * 7 + domain.length));
        const reportId = `${domain}-${begin}-${at}`;
        return rows.length === 0
          ? []
          : [{ domain, org, email, reportId, begin, rows, policy: policyXml(policies[domain] ?? "none") }];
      },
    );
  });
};

const policyXml = (policy: string): string =>
  `<adkim>r</adkim><aspf>r</aspf><p>${policy}</p><sp>${policy}</sp><pct>100</pct>`;
