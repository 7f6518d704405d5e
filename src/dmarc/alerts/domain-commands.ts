import { action, type MailBlock } from "../../notify/mail-content.ts";

/** A domain as the commands in a mail address it; the base URL of the service has no `/` at its end. */
export interface DomainLink {
  readonly baseUrl: string;
  readonly domainId: string;
}

const AUTHORIZATION = '-H "Authorization: Bearer $KEY"';
const KEY_CHARACTERS_MAX = 500;

/** `path` begins with `/` and needs no quoting in a shell. */
const urlOf = ({ baseUrl, domainId }: DomainLink, path: string): string =>
  `${baseUrl}/v1/dmarc/domains/${domainId}${path}`;

/** A shell command that reads something of a domain. */
export const readDomainCommand = (link: DomainLink, path = ""): string =>
  `curl -s '${urlOf(link, path)}' ${AUTHORIZATION}`;

/** A shell command that lists all domains. */
export const listCommand = (baseUrl: string): string => `curl -s '${baseUrl}/v1/dmarc/domains' ${AUTHORIZATION}`;

/** A shell command that checks the DNS of a domain now. */
export const verifyCommand = (link: DomainLink): string =>
  `curl -s -X POST '${urlOf(link, "/verify")}' ${AUTHORIZATION}`;

/** A shell command that changes something of a domain. `body` holds no single quote. */
export const changeCommand = (link: DomainLink, path: string, body: Readonly<Record<string, unknown>>): string =>
  `curl -s -X PATCH '${urlOf(link, path)}' ${AUTHORIZATION} -d '${JSON.stringify(body)}'`;

/** The path of a source below its domain, safe inside single quotes; null for a key that is too long to copy. */
export const sourcePath = (key: string): string | null => {
  const path = encodeURIComponent(key.toWellFormed()).replaceAll("'", "%27");
  return path.length > KEY_CHARACTERS_MAX ? null : `/sources/${path}`;
};

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
export const publishActions = (link: DomainLink, domain: string, record: string | null): readonly MailBlock[] =>
  record === null
    ? [action("Publish the records that this command shows:", readDomainCommand(link, "/dns"))]
    : [
        action(`Publish this TXT record at _dmarc.${domain}:`, record),
        action("Then have it checked:", verifyCommand(link)),
      ];
