import type { Hint } from "./digest-page.ts";

/** Where readers of a mail find a domain: the base URL of the service has no `/` at its end. */
export interface Place {
  readonly baseUrl: string;
  readonly domainId: string;
}

/** A time for people, to the minute: `2026-11-20 08:58 UTC`. */
export const mailTime = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** The URL of a domain, or of something below it: `path` begins with `/` and needs no quotes in a shell. */
const urlOf = ({ baseUrl, domainId }: Place, path: string): string => `${baseUrl}/v1/dmarc/domains/${domainId}${path}`;

const AUTHORISED = '-H "Authorization: Bearer $KEY"';

/** A command that reads something of a domain. */
export const readCommand = (place: Place, path = ""): string => `curl -s '${urlOf(place, path)}' ${AUTHORISED}`;

/** A command that has a domain's DNS read again. */
export const verifyCommand = (place: Place): string => `curl -s -X POST '${urlOf(place, "/verify")}' ${AUTHORISED}`;

/** A command that changes something of a domain. `body` holds no quotation mark `'`. */
export const changeCommand = (place: Place, path: string, body: Readonly<Record<string, unknown>>): string =>
  `curl -s -X PATCH '${urlOf(place, path)}' ${AUTHORISED} -d '${JSON.stringify(body)}'`;

const KEY_CHARACTERS_MAX = 500;

/** The path of a source below its domain; what strangers wrote cannot leave its quotes. Null for one that is too long to copy. */
export const sourcePath = (key: string): string | null => {
  const path = encodeURIComponent(key.toWellFormed()).replaceAll("'", "%27");
  return path.length > KEY_CHARACTERS_MAX ? null : `/sources/${path}`;
};

/**
 * The record that the owner of a domain is to publish, by the checks of the last look at the DNS. Null when it stands there already,
 * only the owner can say, the DNS could not, or it is too long to have been kept whole.
 */
export const recordToPublish = (
  checks: ReadonlyArray<{ readonly code: string; readonly observed: string | null; readonly expected: string | null }>,
): string | null => {
  const { observed = null, expected = null } = checks.find(({ code }) => code === "record") ?? {};
  return expected === null || expected === observed || expected.endsWith("…") ? null : expected;
};

/** What the owner of a domain is to do so that reports come: the record itself where it is known. */
export const publishHints = (place: Place, domain: string, record: string | null): readonly Hint[] =>
  record === null
    ? [{ words: "What to publish:", code: readCommand(place, "/dns") }]
    : [
        { words: `This TXT record should stand at _dmarc.${domain}:`, code: record },
        { words: "Have it checked once it does:", code: verifyCommand(place) },
      ];

/** Why the reader gets a mail, and the command that ends it for a domain: `effect` says what it does. */
export const footerOf = (
  { what, effect }: { readonly what: string; readonly effect: string },
  place: Place,
  settings: Readonly<Record<string, unknown>>,
): string =>
  `You get this ${what} because you are a recipient of these domains. ${effect}: ${changeCommand(place, "", settings)}`;

/** How domains that a mail does not tell of are found. */
export const listCommand = (baseUrl: string): string => `curl -s '${baseUrl}/v1/dmarc/domains' ${AUTHORISED}`;
