/** Addresses of resolvers that everybody may use, by operator. Most blocklists refuse the queries that come from them. */
const PUBLIC_RESOLVERS: Readonly<Record<string, readonly string[]>> = {
  "Google Public DNS": ["8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844"],
  Cloudflare: [
    ...["1.1.1.1", "1.0.0.1", "1.1.1.2", "1.0.0.2", "1.1.1.3", "1.0.0.3"],
    ...["2606:4700:4700::1111", "2606:4700:4700::1001"],
  ],
  Quad9: ["9.9.9.9", "9.9.9.10", "9.9.9.11", "149.112.112.112", "149.112.112.10", "2620:fe::fe", "2620:fe::9"],
  OpenDNS: ["208.67.222.222", "208.67.220.220", "2620:119:35::35", "2620:119:53::53"],
  Level3: ["4.2.2.1", "4.2.2.2", "4.2.2.3", "4.2.2.4", "4.2.2.5", "4.2.2.6"],
  AdGuard: ["94.140.14.14", "94.140.15.15", "94.140.14.140", "94.140.14.141"],
  Verisign: ["64.6.64.6", "64.6.65.6"],
  CleanBrowsing: ["185.228.168.9", "185.228.169.9"],
  Yandex: ["77.88.8.8", "77.88.8.1"],
  "DNS.SB": ["185.222.222.222", "45.11.45.11"],
  DNS4EU: ["86.54.11.100", "86.54.11.200"],
  Mullvad: ["194.242.2.2"],
  AliDNS: ["223.5.5.5", "223.6.6.6"],
  "114DNS": ["114.114.114.114", "114.114.115.115"],
};

/** Who operates the public resolver at an address (IPv6 in the form of RFC 5952); null when it is not known as one. */
export const publicResolverOf = (address: string): string | null =>
  Object.entries(PUBLIC_RESOLVERS).find(([, addresses]) => addresses.includes(address.toLowerCase()))?.[0] ?? null;
