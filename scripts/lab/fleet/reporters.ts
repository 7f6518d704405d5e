/** How a reporter packs its reports. */
type Packing = "zip" | "gz" | "gz-with-newline" | "plain";

/** How a reporter writes, as seen in the wild. */
export interface Style {
  readonly packing: Packing;
  readonly hasVersion: boolean;
  readonly namespace: string | null;
  readonly isIndented: boolean;
  readonly hasSelectors: boolean;
  /** `none`: an empty `auth_results`. */
  readonly results: "all" | "spf" | "none";
  readonly hasEnvelopes: boolean;
  readonly hasScope: boolean;
  readonly identifiers: "identifiers" | "identities";
  /** One record a message instead of counts. */
  readonly isOneByOne: boolean;
  readonly isUpperCase: boolean;
  /** The report's period in seconds, and how many there are of a day. */
  readonly periods: 1 | 4;
  /** What it says of mail that was passed on. */
  readonly overrides: Readonly<Partial<Record<"arc" | "list" | "forwarder", readonly [type: string, comment: string]>>>;
}

export interface Reporter {
  readonly org: string;
  /** The domain its report mails come from. */
  readonly domain: string;
  readonly local: string;
  /** How its mails are authenticated. */
  readonly proof: "dkim" | "spf" | "nothing";
  readonly ip: string;
  /** Part of all mail that it receives, beside the others. */
  readonly weight: number;
  /** Hours after the end of the day at which its reports come. */
  readonly hour: number;
  /** How often it comes two days late, and twice. */
  readonly late: number;
  readonly twice: number;
  readonly style: Style;
}

const STYLE: Style = {
  packing: "gz",
  hasVersion: true,
  namespace: null,
  isIndented: true,
  hasSelectors: true,
  results: "all",
  hasEnvelopes: false,
  hasScope: false,
  identifiers: "identifiers",
  isOneByOne: false,
  isUpperCase: false,
  periods: 1,
  overrides: {},
};

const USUAL = { local: "noreply-dmarc", late: 0.02, twice: 0.01, proof: "dkim" } as const;

export const REPORTERS: Readonly<Partial<Record<string, Reporter>>> = {
  google: {
    ...USUAL,
    org: "google.com",
    domain: "google.com",
    local: "noreply-dmarc-support",
    ip: "209.85.219.201",
    weight: 45,
    hour: 9,
    style: { ...STYLE, packing: "zip", hasVersion: false, overrides: { arc: ["local_policy", "arc=pass"] } },
  },
  microsoft: {
    ...USUAL,
    org: "Enterprise Outlook",
    domain: "microsoft.com",
    local: "dmarcreport",
    ip: "40.107.223.89",
    weight: 25,
    hour: 8,
    style: {
      ...STYLE,
      isIndented: false,
      hasEnvelopes: true,
      hasScope: true,
      overrides: { arc: ["local_policy", "arc=pass oda=1"] },
    },
  },
  yahoo: {
    ...USUAL,
    org: "Yahoo",
    domain: "dmarc.yahoo.com",
    local: "noreply",
    ip: "74.6.131.40",
    weight: 9,
    hour: 6,
    style: { ...STYLE, hasVersion: false, isIndented: false },
  },
  gmx: {
    ...USUAL,
    org: "GMX",
    domain: "gmx.net",
    local: "noreply-dmarc",
    ip: "212.227.17.20",
    weight: 7,
    hour: 5,
    style: {
      ...STYLE,
      hasScope: true,
      overrides: { list: ["mailing_list", "Known list"], arc: ["mailing_list", ""] },
    },
  },
  fastmail: {
    ...USUAL,
    org: "Fastmail Pty Ltd",
    domain: "fastmaildmarc.com",
    local: "reports",
    ip: "103.168.172.130",
    weight: 3,
    hour: 4,
    style: {
      ...STYLE,
      packing: "gz-with-newline",
      hasScope: true,
      overrides: { arc: ["local_policy", "arc=pass"], forwarder: ["trusted_forwarder", ""] },
    },
  },
  mailru: {
    ...USUAL,
    org: "Mail.Ru",
    domain: "corp.mail.ru",
    local: "dmarc_support",
    ip: "94.100.180.90",
    weight: 3,
    hour: 3,
    style: { ...STYLE, isIndented: false, hasEnvelopes: true },
  },
  opendmarc: {
    ...USUAL,
    org: "mx.kleinstadt-verein.de",
    domain: "kleinstadt-verein.de",
    local: "postmaster",
    proof: "spf",
    ip: "85.214.77.10",
    weight: 2,
    hour: 1,
    style: {
      ...STYLE,
      packing: "zip",
      hasVersion: false,
      hasSelectors: false,
      overrides: { forwarder: ["forwarded", ""] },
    },
  },
  bare: {
    ...USUAL,
    org: "emailsrv-north.net",
    domain: "emailsrv-north.net",
    local: "dmarc",
    proof: "spf",
    ip: "146.20.161.5",
    weight: 2,
    hour: 12,
    style: { ...STYLE, packing: "plain", results: "none" },
  },
  hourly: {
    ...USUAL,
    org: "Comcast Business Post",
    domain: "dmarc.comcastpost.net",
    local: "reporter",
    ip: "96.114.154.200",
    weight: 3,
    hour: 2,
    style: { ...STYLE, namespace: "urn:ietf:params:xml:ns:dmarc-2.0", hasScope: true, periods: 4 },
  },
  single: {
    ...USUAL,
    org: "AMAZON-SES",
    domain: "amazonses.com",
    local: "postmaster",
    ip: "54.240.8.88",
    weight: 1,
    hour: 15,
    style: { ...STYLE, isOneByOne: true, isUpperCase: true, hasEnvelopes: true, identifiers: "identities" },
  },
  unsigned: {
    ...USUAL,
    org: "Sysadmin Werkstatt",
    domain: "werkstatt-mail.net",
    local: "root",
    proof: "nothing",
    ip: "185.26.156.40",
    weight: 1,
    hour: 18,
    style: { ...STYLE, packing: "plain", results: "spf", hasSelectors: false },
  },
};

export const ALL_REPORTERS: readonly Reporter[] = Object.values(REPORTERS).flatMap((reporter) => reporter ?? []);
/** Reporters that every domain with mail meets. */
export const MANY = Object.keys(REPORTERS);
export const FEW = ["google", "microsoft", "yahoo", "gmx", "opendmarc"] as const;
