/**
 * The whole public suffix list, its private section included. DMARC software reads the list so (RFC 7489 §3.2 makes no
 * difference between the sections), and it is the safe side: the customers of `github.io` are strangers to each other.
 * The host-name checks of tldts are off because the domain is already parsed.
 */
const WHOLE_LIST = {
  allowPrivateDomains: true,
  detectIp: false,
  extractHostname: false,
  validateHostname: false,
} as const;

/**
 * The organisational domain of a parsed domain (lower case A-labels, no trailing dot): the public suffix and one label more
 * (RFC 7489 §3.2). Null for a public suffix, a single label and an address literal.
 */
export const organisationalDomain = (domain: string): string | null =>
  domain.startsWith("[") ? null : suffixList().getDomain(domain, WHOLE_LIST);

/** Whether two parsed domains are the same or have the same organizational domain: relaxed alignment (RFC 9989 §4.10.1). */
export const isSameOrganisation = (one: string, other: string): boolean => {
  if (one === other) return true;
  const organisation = organisationalDomain(one);
  return organisation !== null && organisation === organisationalDomain(other);
};

/** Whether a parsed domain is itself a public suffix (`com`, `co.uk`, `github.io`), below which strangers register. */
export const isPublicSuffix = (domain: string): boolean => suffixList().getPublicSuffix(domain, WHOLE_LIST) === domain;

/**
 * Packages with large tables, loaded when the first name needs them: a service that starts should neither wait for them
 * nor carry them while it idles. `require`, because the parsers that use them are synchronous.
 */
let tldts: typeof import("tldts") | null = null;
let tr46: typeof import("tr46") | null = null;

/** The public suffix list. */
export const suffixList = (): typeof import("tldts") => {
  tldts ??= require("tldts") as typeof import("tldts");
  return tldts;
};

/** The tables of UTS 46. */
export const uts46 = (): typeof import("tr46") => {
  tr46 ??= require("tr46") as typeof import("tr46");
  return tr46;
};
