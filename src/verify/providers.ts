import { organisationalDomain } from "../foundation/mail/organisational-domain.ts";

interface Provider {
  /** The mail hosts' names end in it. */
  readonly suffix: string;
  readonly name: string;
  /** The servers of the provider give the same reply for every recipient: no reply to RCPT is conclusive. */
  readonly unverifiable?: true;
  /** Connections to all its hosts together that it is known to tolerate. */
  readonly connectionsMax?: number;
}

/** Providers that many domains share, by the suffix of their mail hosts' names. */
const PROVIDERS: readonly Provider[] = [
  { suffix: "google.com", name: "Google", connectionsMax: 10 },
  { suffix: "googlemail.com", name: "Google", connectionsMax: 10 },
  { suffix: "protection.outlook.com", name: "Microsoft 365", connectionsMax: 10 },
  { suffix: "olc.protection.outlook.com", name: "Outlook.com", connectionsMax: 4 },
  { suffix: "mx.microsoft", name: "Microsoft 365", connectionsMax: 10 },
  { suffix: "yahoodns.net", name: "Yahoo", unverifiable: true, connectionsMax: 4 },
  { suffix: "icloud.com", name: "Apple", connectionsMax: 4 },
  { suffix: "mimecast.com", name: "Mimecast", connectionsMax: 6 },
  { suffix: "pphosted.com", name: "Proofpoint", connectionsMax: 6 },
  { suffix: "ppe-hosted.com", name: "Proofpoint Essentials", connectionsMax: 6 },
  { suffix: "barracudanetworks.com", name: "Barracuda", connectionsMax: 6 },
  { suffix: "iphmx.com", name: "Cisco", connectionsMax: 6 },
  { suffix: "messagelabs.com", name: "Symantec", connectionsMax: 4 },
  { suffix: "gmx.net", name: "GMX", connectionsMax: 3 },
  { suffix: "web.de", name: "web.de", connectionsMax: 3 },
  { suffix: "kundenserver.de", name: "IONOS", connectionsMax: 4 },
  { suffix: "ionos.com", name: "IONOS", connectionsMax: 4 },
  { suffix: "t-online.de", name: "T-Online", connectionsMax: 2 },
  { suffix: "orange.fr", name: "Orange", connectionsMax: 2 },
  { suffix: "laposte.net", name: "La Poste", connectionsMax: 2 },
  { suffix: "free.fr", name: "Free", connectionsMax: 2 },
  { suffix: "ovh.net", name: "OVH", connectionsMax: 6 },
  { suffix: "mail.ru", name: "Mail.ru", connectionsMax: 4 },
  { suffix: "yandex.ru", name: "Yandex", connectionsMax: 4 },
  { suffix: "yandex.net", name: "Yandex", connectionsMax: 4 },
  { suffix: "qq.com", name: "QQ", connectionsMax: 3 },
  { suffix: "netease.com", name: "163", connectionsMax: 3 },
  { suffix: "naver.com", name: "Naver", connectionsMax: 3 },
  { suffix: "zoho.com", name: "Zoho", connectionsMax: 4 },
  { suffix: "secureserver.net", name: "GoDaddy", connectionsMax: 4 },
  { suffix: "emailsrvr.com", name: "Rackspace", connectionsMax: 4 },
  { suffix: "comcast.net", name: "Comcast", connectionsMax: 3 },
  { suffix: "prodigy.net", name: "AT&T", connectionsMax: 2 },
];

const BY_SUFFIX: ReadonlyMap<string, Provider> = new Map(PROVIDERS.map((provider) => [provider.suffix, provider]));

/** The longest suffix counts: `olc.protection.outlook.com` is not `protection.outlook.com`. */
const find = (mailHost: string): Provider | undefined => {
  let rest = mailHost.toLowerCase();
  for (;;) {
    const provider = BY_SUFFIX.get(rest);
    const dot = rest.indexOf(".");
    if (provider !== undefined || dot === -1) return provider;
    rest = rest.slice(dot + 1);
  }
};

/** The name of the unverifiable provider that a mail host belongs to, or null. */
export const unverifiableProvider = (mailHost: string): string | null => {
  const provider = find(mailHost);
  return provider?.unverifiable ? provider.name : null;
};

/** Whose host it is: a known provider's name, else the organisational domain of the host's name. */
export const providerOf = (mailHost: string): string =>
  find(mailHost)?.name ?? organisationalDomain(mailHost) ?? mailHost;

const CONNECTIONS_MAX: ReadonlyMap<string, number> = new Map(
  PROVIDERS.flatMap(({ name, connectionsMax }) =>
    connectionsMax === undefined ? [] : [[name, connectionsMax] as const],
  ),
);

/** How many connections all hosts of a provider tolerate together; infinite for an unknown provider. */
export const connectionsPerProviderMax = (provider: string): number =>
  CONNECTIONS_MAX.get(provider) ?? Number.POSITIVE_INFINITY;
