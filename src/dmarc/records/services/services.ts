import table from "../../../../fixtures/dmarc/services.json" with { type: "json" };
import { z } from "zod";
import { cached } from "../../../foundation/base/bounded-map.ts";
import { once } from "../../../foundation/base/load-once.ts";

export const SERVICE_KINDS = ["mailbox provider", "bulk sender", "business", "gateway", "hosting"] as const;
export type ServiceKind = (typeof SERVICE_KINDS)[number];

const address = z.url({ protocol: /^https$/ });

/** What to publish so that mail from the service is aligned. A field that is absent is unknown. */
const configureSchema = z.strictObject({
  /** The service's documentation of DKIM for a customer's domain, and the type of the records to publish. */
  dkim: z
    .strictObject({ url: address, how: z.enum(["cname", "txt", "ns"]).optional(), note: z.string().min(10).optional() })
    .optional(),
  /** The SPF include; null if the service uses an envelope that needs none. */
  spf: z
    .strictObject({ include: z.string().min(4) })
    .nullable()
    .optional(),
  /** Whether the envelope can have the customer's domain. */
  return_path: z.strictObject({ supported: z.boolean(), url: address.optional() }).optional(),
});

const entrySchema = z.strictObject({
  /** Stable; in kebab case. */
  id: z.string().regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/),
  name: z.string().min(1),
  kind: z.enum(SERVICE_KINDS),
  /** What people use it for, in a few words. */
  purpose: z.string().min(2).max(60),
  /** Domains of its SPF records, signatures and envelopes, and those that the reverse names of its hosts are in. */
  domains: z.array(z.string()).min(1),
  /** Patterns of reverse names, for hosts whose domain another service shares; see `matchesHostPattern`. */
  hosts: z.array(z.string()).min(1).optional(),
  /** DKIM selectors that are typical of this service only; `*` stands for any characters. */
  selectors: z.array(z.string()).min(1).optional(),
  /** Autonomous systems in which nobody else rents hosts. */
  asn: z.array(z.int().positive()).min(1).optional(),
  /** A mailbox provider that also sells web hosting: forms of websites send through the same servers. */
  websites: z.literal(true).optional(),
  /** The service forwards mail of others: there is nothing to configure. */
  forwards: z.literal(true).optional(),
  configure: configureSchema.optional(),
});

/** An entry of the table. */
export interface KnownService extends Readonly<z.infer<typeof entrySchema>> {}

const pairs = <Key>(all: readonly KnownService[], keysOf: (service: KnownService) => readonly Key[] | undefined) =>
  all.flatMap((service) => (keysOf(service) ?? []).map((key) => [key, service] as const));

/** The table, read once. Throws if it breaks the schema. */
const index = once(() => {
  const all: readonly KnownService[] = z.array(entrySchema).parse(table);
  const selectors = pairs(all, (service) => service.selectors);
  return {
    all,
    byId: new Map(pairs(all, ({ id }) => [id])),
    byDomain: new Map(pairs(all, ({ domains }) => domains)),
    byHost: pairs(all, ({ hosts }) => hosts),
    bySelector: new Map(selectors),
    bySelectorPattern: selectors.filter(([selector]) => selector.includes("*")),
    byAsn: new Map(pairs(all, ({ asn }) => asn)),
  };
});

/** Every known service, in the order of the table. */
export const knownServices = (): readonly KnownService[] => index().all;

export const serviceById = (id: string): KnownService | null => index().byId.get(id) ?? null;

/** Whether an id is that of a service that sends mail itself: anybody rents hosts from a hosting provider. */
export const isSendingService = (id: string | null): boolean => {
  const service = id === null ? null : serviceById(id);
  return service !== null && service.kind !== "hosting";
};

/** No name in the DNS is longer (RFC 1035 section 3.1). */
const NAME_MAX = 253;

const CACHED_MAX = 20_000;

const searchService = cached(CACHED_MAX, (name: string): KnownService | null => {
  const { byDomain, byHost } = index();
  const host = byHost.find(([pattern]) => matchesHostPattern(pattern, name));
  if (host !== undefined) return host[1];
  for (let rest = name; ;) {
    const found = byDomain.get(rest);
    if (found !== undefined) return found;
    const dot = rest.indexOf(".");
    if (dot === -1) return null;
    rest = rest.slice(dot + 1);
  }
});

/**
 * The service that a name belongs to: an SPF or DKIM domain, or a reverse name, in lower case. A host pattern comes
 * first, then the longest domain that the name equals or lies below.
 */
export const findService = (name: string): KnownService | null => (name.length > NAME_MAX ? null : searchService(name));

/** Whether websites of customers send mail through the servers of a service. */
export const hostsWebsites = ({ kind, websites }: KnownService): boolean => kind === "hosting" || websites === true;

/** The service that alone uses an autonomous system; null for one in which others rent hosts. */
export const serviceOfAsn = (asn: number): KnownService | null => index().byAsn.get(asn) ?? null;

/**
 * The service that a DKIM selector is typical of; null for one that several use, such as `s1`, `k1` or `default`. A
 * selector is only a hint: the owner of a domain may choose any.
 */
export const serviceOfSelector = (selector: string): KnownService | null => {
  const wanted = selector.toLowerCase();
  if (wanted.length > NAME_MAX) return null;
  const { bySelector, bySelectorPattern } = index();
  return bySelector.get(wanted) ?? bySelectorPattern.find(([pattern]) => matchesWildcard(pattern, wanted))?.[1] ?? null;
};

/** Whether a text matches a pattern in which `*` stands for any characters, also none. Takes linear time. */
export const matchesWildcard = (pattern: string, text: string): boolean => {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
};

/**
 * Whether a host name in lower case matches a pattern. `*` stands for any characters of one label, also none; a label
 * that is only `*` matches any label, and at the start of the pattern one label or more.
 */
export const matchesHostPattern = (pattern: string, name: string): boolean => {
  // Nearly all names differ here already.
  if (!name.endsWith(pattern.slice(pattern.lastIndexOf("*") + 1))) return false;
  const wanted = pattern.split(".");
  const labels = name.split(".");
  const isOpen = wanted[0] === "*";
  if (isOpen ? labels.length < wanted.length : labels.length !== wanted.length) return false;
  const tail = isOpen ? labels.slice(labels.length - wanted.length) : labels;
  return labels.every((label) => label !== "") && wanted.every((part, at) => matchesWildcard(part, tail[at] ?? ""));
};

const RECORDS = {
  cname: "publish the CNAME records that it shows",
  txt: "publish the TXT record that it shows",
  ns: "publish the NS records that it shows",
};

/** How to configure a service so that mail from a domain is aligned: one sentence per step, in their order. */
export const configureAdvice = (service: KnownService, domain: string): readonly string[] => {
  const { name, kind, forwards, configure } = service;
  if (forwards === true) return [`Nothing to configure at ${name} for ${domain}: it forwards mail.`];
  if (kind === "hosting" && configure?.dkim === undefined) return hostingAdvice(service, domain);
  return [...dkimAdvice(service, domain), spfAdvice(service, domain)];
};

const hostingAdvice = ({ configure }: KnownService, domain: string) => [
  `Sign mail from ${domain} with DKIM on the server itself, or send it through a mail service that signs it.`,
  configure?.spf
    ? `Add include:${configure.spf.include} to the SPF record of ${domain}, or the address of the server if it sends directly.`
    : `Add the address of the server to the SPF record of ${domain}.`,
];

const dkimAdvice = ({ name, configure }: KnownService, domain: string): readonly string[] => {
  const dkim = configure?.dkim;
  if (dkim === undefined) {
    return [
      `Set up DKIM for ${domain} at ${name} and publish the records that it shows. Look for domain authentication in its settings, or ask its support.`,
    ];
  }
  const records = dkim.how === undefined ? "publish the records that it shows" : RECORDS[dkim.how];
  const step = `Set up DKIM for ${domain} at ${name} (${dkim.url}) and ${records}.`;
  return dkim.note === undefined ? [step] : [step, dkim.note];
};

const spfAdvice = ({ name, configure }: KnownService, domain: string) => {
  const { spf, return_path: path } = configure ?? {};
  if (spf) return `Add include:${spf.include} to the SPF record of ${domain}.`;
  if (path?.supported === true) {
    // Unless the DKIM step names the same page.
    const page = path.url === undefined || path.url === configure?.dkim?.url ? "" : ` (${path.url})`;
    return `To align SPF as well, set a custom return path below ${domain} at ${name}${page}.`;
  }
  if (path?.supported === false) {
    return "SPF cannot be aligned: this service uses its own return path. DKIM is enough.";
  }
  return spf === null
    ? "Do not add this service to the SPF record: it uses its own return path. DKIM is enough."
    : `No SPF include of ${name} is known; aligned DKIM is enough.`;
};
