import type { KnownService } from "./services.ts";

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

const hostingAdvice = ({ configure }: KnownService, domain: string): readonly string[] => [
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

const spfAdvice = ({ name, configure }: KnownService, domain: string): string => {
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
