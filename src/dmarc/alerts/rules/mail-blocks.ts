import {
  action,
  list,
  type MailBlock,
  type MailItem,
  type MailPageLink,
  pageLink,
  cutLine,
  plural,
  shortName,
} from "../../../notifications/mail/mail-content.ts";

/** The blocks of a section; null for one that is not needed. */
export type Blocks = readonly (MailBlock | null)[];

const ITEMS_MAX = 10;
const ITEM_CHARACTERS_MAX = 500;

/** A list; `total` counts items that are left out. */
export const items = (texts: readonly MailItem[], total = texts.length): MailBlock | null =>
  list(
    null,
    texts.map(({ text, lines = [] }) => ({
      text: cutLine(text, ITEM_CHARACTERS_MAX),
      lines: lines.map((each) => cutLine(each, ITEM_CHARACTERS_MAX)),
    })),
    { max: ITEMS_MAX, total },
  );

export const texts = (...all: readonly string[]): MailBlock | null => items(all.map((text) => ({ text })));

/** `412 messages, 410 passed DMARC`. */
export const passed = ({ messages, aligned }: { readonly messages: number; readonly aligned: number }): string =>
  `${plural(messages, "message")}, ${aligned} passed DMARC`;

/** A domain whose pages a mail leads to. */
export interface LinkedDomain {
  readonly id: string;
  readonly domain: string;
}

/** The pages of a domain by the names that they have in the dashboard. */
const PAGES = {
  overview: { path: "", name: null },
  record: { path: "/record", name: "Record" },
  advice: { path: "/advice", name: "Advice" },
  sources: { path: "/sources", name: "Sources" },
  reports: { path: "/reports", name: "Reports" },
  tls: { path: "/tls", name: "TLS reports" },
} as const;

const KEY_CHARACTERS_MAX = 500;

/** A link to a page of a domain; `text` says what is there. */
export const domainLink = ({ id, domain }: LinkedDomain, page: keyof typeof PAGES, text: string): MailPageLink => {
  const { path, name } = PAGES[page];
  return pageLink(text, `/dmarc/${id}${path}`, ["DMARC", domain, ...(name === null ? [] : [name])].join(" › "));
};

/** A link to one source of a domain; null for a key that is too long for a URL in a mail. */
export const sourceLink = (
  { id, domain }: LinkedDomain,
  { key, name }: { readonly key: string; readonly name: string },
  text: string,
): MailPageLink | null => {
  const path = encodeURIComponent(key.toWellFormed()).replaceAll("'", "%27");
  if (path.length > KEY_CHARACTERS_MAX) return null;
  return pageLink(text, `/dmarc/${id}/sources/${path}`, `DMARC › ${domain} › Sources › ${shortName(name)}`);
};

/** A link to the list of all domains. */
export const allDomainsLink = (): MailPageLink => pageLink("All domains", "/dmarc", "DMARC");

/**
 * The record that the owner of a domain is to publish, by the checks of the last DNS check. Null when it is published already, only
 * the owner can decide, the DNS did not respond, or the record was too long to be stored whole.
 */
export const recordToPublish = (
  checks: ReadonlyArray<{ readonly code: string; readonly observed: string | null; readonly expected: string | null }>,
): string | null => {
  const { observed = null, expected = null } = checks.find(({ code }) => code === "record") ?? {};
  return expected === null || expected === observed || expected.endsWith("…") ? null : expected;
};

/** What the owner of a domain has to publish so that reports arrive: the record itself where it is known. */
export const publishActions = (domain: LinkedDomain, record: string | null): readonly MailBlock[] =>
  record === null
    ? [domainLink(domain, "record", "Show the records to publish")]
    : [
        action(`Publish this TXT record at _dmarc.${domain.domain}:`, record),
        domainLink(domain, "record", "Check the published record"),
      ];
