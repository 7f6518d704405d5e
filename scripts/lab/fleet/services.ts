import type { Addresses } from "./addresses.ts";
import type { Host, Kind, Signed, Stream } from "./plan.ts";

/** A sending service, as its mail really looks. */
interface ServiceFacts {
  readonly who: string;
  readonly networks: readonly string[];
  readonly asn: number;
  readonly owner: string;
  readonly country: string;
  readonly nameOf: (ip: string) => string;
  /** The domain of its envelopes, where the customer has none of its own. */
  readonly envelope: (ip: string, nameOf: (ip: string) => string) => string;
  /** What it signs with beside, or instead of, the customer's domain. */
  readonly signs: readonly (readonly [domain: string, selector: string])[];
}

const octets = (ip: string): number[] => ip.split(".").map(Number);
/** Of IPv6 addresses, which have none, numbers that are as good. */
const third = (ip: string): number => octets(ip)[2] ?? Bun.hash.crc32(ip) % 200;
const fourth = (ip: string): number => octets(ip)[3] ?? Bun.hash.crc32(`${ip} host`) % 5000;
const code = (ip: string): string => Bun.hash.crc32(ip).toString(36).slice(0, 6);
const ofHost = (ip: string, nameOf: (ip: string) => string): string => nameOf(ip);

/** Real names and networks, so that a table of services is put to use. */
export const SERVICES = {
  google: {
    who: "Google Workspace",
    networks: ["209.85.128", "209.85.160", "209.85.208", "209.85.218", "2a00:1450"],
    ...{ asn: 15169, owner: "GOOGLE, US", country: "US" },
    nameOf: (ip) => `mail-${code(ip).slice(0, 2)}${third(ip)}-f${fourth(ip)}.google.com`,
    envelope: () => "gmail.com",
    signs: [],
  },
  microsoft: {
    who: "Microsoft 365",
    networks: ["40.107.20", "40.107.22", "52.101.64", "52.101.70"],
    ...{ asn: 8075, owner: "MICROSOFT-CORP-MSN-AS-BLOCK, US", country: "US" },
    nameOf: (ip) => `mail-${code(ip)}${fourth(ip)}.outbound.protection.outlook.com`,
    envelope: () => "outlook.com",
    signs: [],
  },
  sendgrid: {
    who: "SendGrid",
    networks: ["149.72.40", "149.72.120", "167.89.10"],
    ...{ asn: 11377, owner: "SENDGRID, US", country: "US" },
    nameOf: (ip) => `${code(ip)}${fourth(ip)}.outbound-mail.sendgrid.net`,
    envelope: () => "sendgrid.net",
    signs: [["sendgrid.info", "smtpapi"]],
  },
  mailchimp: {
    who: "Mailchimp",
    networks: ["198.2.130", "198.2.180", "205.201.130"],
    ...{ asn: 14782, owner: "THEROCKETSCIENCEGROUP, US", country: "US" },
    nameOf: (ip) => `mail${fourth(ip)}.atl${(third(ip) % 80) + 11}.rsgsv.net`,
    envelope: ofHost,
    signs: [["mailchimpapp.net", "k2"]],
  },
  mandrill: {
    who: "Mandrill",
    networks: ["198.2.136", "198.2.186"],
    ...{ asn: 14782, owner: "THEROCKETSCIENCEGROUP, US", country: "US" },
    nameOf: (ip) => `mail${third(ip)}-${fourth(ip)}.suw31.mandrillapp.com`,
    envelope: () => "mandrillapp.com",
    signs: [["mandrillapp.com", "mandrill"]],
  },
  zendesk: {
    who: "Zendesk",
    networks: ["192.161.148", "192.161.150"],
    ...{ asn: 21880, owner: "ZENDESK, US", country: "US" },
    nameOf: (ip) => `outbyoip${fourth(ip)}.pod${third(ip)}.use1.zdsys.com`,
    envelope: () => "zendesk.com",
    signs: [["zendesk.com", "zendesk1"]],
  },
  brevo: {
    who: "Brevo",
    networks: ["77.32.148", "185.41.28"],
    ...{ asn: 200484, owner: "SENDINBLUE, FR", country: "FR" },
    nameOf: (ip) => `${code(ip).slice(0, 2)}.d.sender-sib.com`,
    envelope: ofHost,
    signs: [],
  },
  hubspot: {
    who: "HubSpot",
    networks: ["158.247.16", "158.247.18"],
    ...{ asn: 16509, owner: "AMAZON-02, US", country: "US" },
    nameOf: (ip) => `${code(ip)}${fourth(ip)}.bf02.hubspotemail.net`,
    envelope: (ip) => `bf${(fourth(ip) % 8) + 1}x.hubspotemail.net`,
    signs: [["bf02.hubspotemail.net", "hs1"]],
  },
  freshdesk: {
    who: "Freshdesk",
    networks: ["3.65.20"],
    ...{ asn: 16509, owner: "AMAZON-02, US", country: "US" },
    nameOf: (ip) => `mail-${fourth(ip)}.freshemail.io`,
    envelope: () => "bounce.freshdesk.com",
    signs: [["freshdesk.com", "s1"]],
  },
  ses: {
    who: "Amazon SES",
    networks: ["54.240.8", "54.240.11", "54.240.27"],
    ...{ asn: 16509, owner: "AMAZON-02, US", country: "US" },
    nameOf: (ip) => `a${third(ip)}-${fourth(ip)}.smtp-out.eu-west-1.amazonses.com`,
    envelope: () => "eu-west-1.amazonses.com",
    signs: [["amazonses.com", "ihchhvubuqgjsxyuhssfvqohv7z3u4hn"]],
  },
  mailgun: {
    who: "Mailgun",
    networks: ["69.72.40", "159.135.228"],
    ...{ asn: 396479, owner: "MAILGUN, US", country: "US" },
    nameOf: (ip) => `m${third(ip)}-${fourth(ip)}.mailgun.net`,
    envelope: () => "mailgun.org",
    signs: [],
  },
  postmark: {
    who: "Postmark",
    networks: ["50.31.156", "104.245.209"],
    ...{ asn: 23352, owner: "POSTMARK, US", country: "US" },
    nameOf: (ip) => `mta${fourth(ip)}.pmta.mtasv.net`,
    envelope: () => "pm.mtasv.net",
    signs: [["pm.mtasv.net", "pm20"]],
  },
  mailjet: {
    who: "Mailjet",
    networks: ["87.253.233", "185.189.236"],
    ...{ asn: 59604, owner: "MAILJET, FR", country: "FR" },
    nameOf: (ip) => `o${fourth(ip)}.p${(third(ip) % 20) + 1}.mailjet.com`,
    envelope: () => "bnc3.mailjet.com",
    signs: [["mailjet.com", "mailjet"]],
  },
  proofpoint: {
    who: "Proofpoint",
    networks: ["148.163.135", "67.231.144"],
    ...{ asn: 22843, owner: "PROOFPOINT, US", country: "US" },
    nameOf: (ip) => `mx0${fourth(ip) % 2 === 0 ? "a" : "b"}-00${third(ip)}${fourth(ip)}01.pphosted.com`,
    envelope: () => "pphosted.com",
    signs: [],
  },
  fastmail: {
    who: "Fastmail",
    networks: ["103.168.172"],
    ...{ asn: 151847, owner: "FASTMAIL, AU", country: "AU" },
    nameOf: (ip) => `fhigh-a${fourth(ip)}-smtp.messagingengine.com`,
    envelope: () => "fastmail.com",
    signs: [["messagingengine.com", "fm3"]],
  },
} as const satisfies Readonly<Record<string, ServiceFacts>>;

export type ServiceName = keyof typeof SERVICES;

/** How a customer set a service up. */
export interface Setup {
  readonly domain: string;
  readonly volume: Stream["volume"];
  readonly hosts: number;
  /** The selector with which it signs for the customer; null: it does not. */
  readonly selector: string | null;
  /** A return path of the customer's own, which passes SPF. */
  readonly returnPath?: string;
  readonly accept?: Stream["accept"];
  /** Days on which its signature fails for the customer's domain. */
  readonly isBroken?: (day: number) => boolean;
  readonly headerFrom?: string;
  /** Another selector on some days: keys are renewed. */
  readonly selectorOn?: (day: number) => string;
  /** The reverse name of addresses of the customer's own, which the service lets the customer choose. */
  readonly dedicated?: (n: number) => string;
}

/** A stream through a service. It uses some of its hosts on each day. */
export const through = (addresses: Addresses, name: ServiceName, setup: Setup): Stream => {
  const facts: ServiceFacts = SERVICES[name];
  const { domain, volume, selector, returnPath, isBroken, headerFrom = domain } = setup;
  addresses.origin(facts.networks, { asn: facts.asn, country: facts.country, name: facts.owner });
  let n = 0;
  const { dedicated } = setup;
  const hosts =
    dedicated === undefined
      ? addresses.share(facts.networks, setup.hosts, facts.nameOf)
      : addresses.take(facts.networks, setup.hosts, () => dedicated(++n));
  const isAligned = selector !== null || returnPath !== undefined;
  const standard: Kind = isAligned ? "authorized" : "misconfigured";
  return {
    who: facts.who,
    accept: setup.accept ?? [standard],
    volume,
    hosts: (_day, chance) => hosts.filter((_, at) => hosts.length <= 4 || at < 2 || chance.hits(0.4)),
    mail: (day, { ip }) => {
      const envelope = returnPath ?? facts.envelope(ip, facts.nameOf);
      const own: Signed[] =
        selector === null
          ? []
          : [
              {
                domain,
                selector: setup.selectorOn?.(day) ?? selector,
                result: isBroken?.(day) === true ? "fail" : "pass",
              },
            ];
      const others = facts.signs.map(([signer, key]): Signed => ({ domain: signer, selector: key, result: "pass" }));
      return {
        headerFrom,
        envelope,
        spf: { domain: envelope, result: "pass" },
        dkim: [...own, ...others],
        passedOn: null,
      };
    },
  };
};

export interface OwnSetup {
  readonly domain: string;
  readonly who: string;
  readonly network: string;
  readonly hosts: number;
  readonly volume: Stream["volume"];
  /** The reverse name of host number `n`; null: without one. */
  readonly nameOf: (n: number) => string | null;
  readonly selector: string | null;
  /** What it signs with, where that is not the domain in `From`. */
  readonly signer?: string;
  readonly spf?: "pass" | "fail" | "softfail" | "neutral" | "none";
  readonly spfOn?: (day: number) => "pass" | "fail" | "softfail";
  readonly envelope?: string;
  readonly headerFrom?: string;
  readonly accept?: Stream["accept"];
  readonly isBroken?: (day: number) => boolean;
  readonly selectorOn?: (day: number) => string;
  readonly isPooled?: boolean;
  /** One server more from a day on, elsewhere. */
  readonly added?: { readonly day: number; readonly network: string };
}

const ASN_FIRST = 24_940;
const ASNS = 1_000;

/** A stream from servers of the domain's owner. */
export const ownServers = (addresses: Addresses, setup: OwnSetup): Stream => {
  const { domain, volume, selector, signer = domain, envelope = domain, headerFrom = domain } = setup;
  const asn = ASN_FIRST + (Bun.hash.crc32(setup.network) % ASNS);
  addresses.origin([setup.network], { asn, country: "DE", name: `HOSTING-${asn}` });
  let n = 0;
  const nameNext = () => setup.nameOf(++n);
  const hosts: readonly Host[] = addresses.take([setup.network], setup.hosts, nameNext);
  const { added } = setup;
  const later = added === undefined ? [] : addresses.take([added.network], 1, nameNext);
  return {
    who: setup.who,
    accept: setup.accept ?? ["authorized"],
    isPooled: setup.isPooled === true,
    volume,
    hosts: (day) => (added !== undefined && day >= added.day ? [...hosts, ...later] : hosts),
    mail: (day) => ({
      headerFrom,
      envelope,
      spf: { domain: envelope, result: setup.spfOn?.(day) ?? setup.spf ?? "pass" },
      dkim:
        selector === null
          ? []
          : [
              {
                domain: signer,
                selector: setup.selectorOn?.(day) ?? selector,
                result: setup.isBroken?.(day) === true ? "fail" : "pass",
              },
            ],
      passedOn: null,
    }),
  };
};
