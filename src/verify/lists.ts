import { disposableEmailBlocklistSet } from "disposable-email-domains-js";
import { MARKETING, MEETING, NOTIFICATION, OTHER } from "role-based-email-addresses/src/index.js";
import { organisationalDomain } from "../foundation/mail/organisational-domain.ts";

const wordsOf = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/**
 * Services that forward to a real mailbox: permanent addresses of a person. They are never disposable, whatever a list says. In order: DuckDuckGo, Firefox Relay and Apple; SimpleLogin; Proton Pass; addy.io (once
 * AnonAddy); IronVest (once Blur), 33Mail, erine.email and Fastmail.
 */
const RELAY_DOMAINS = wordsOf(`
  duck.com mozmail.com relay.firefox.com privaterelay.appleid.com icloud.com
  simplelogin.com simplelogin.co simplelogin.io simplelogin.fr slmail.me slmails.com aleeas.com silomails.com 8alias.com
  8shield.net dralias.com
  passmail.com passmail.net passinbox.com passfwd.com
  addy.io anonaddy.com anonaddy.me addymail.com
  opayq.com 33mail.com erine.email fastmail.com
`);

/**
 * Entries of the role list that name no function, team or machine: keyboard walks, places, brands, given names, and words
 * or initials that people pick for their own mailbox. A person behind them must not be called a role account.
 */
const NOT_ROLES = wordsOf(`
  aaa abc asd asdasd asdf random
  berlin boston ca caltrain chicago china denver europe france india la latam montreal newyork northamerica ny nyc paris
  sanfrancisco seattle sf sfo singapore stockholm sydney uk us usa
  android apple facebook ifttt instagram ios iphone itunes lifesum myplex namecheap paypal plex plex.tv prime shopify
  stripe twitter wordpress digsitesvalue
  alexa alla angels captain chef coach gardner geeks master pastor professor
  alpha alphas beta express family food football friends fun hackers home homes house ladies lunch music no per smile
  sport stay stories study time travel tribe women work rockstars dreamteam
  cm com hi hola lt md mt se ta
`);
/** The list's years and `123`. */
const DIGITS_ONLY = /^\d+$/;

interface Lists {
  readonly disposableDomains: ReadonlySet<string>;
  readonly roles: ReadonlySet<string>;
}

let built: Lists | null = null;

/** The lists, built when the first address comes: a service that starts should not wait for them. */
const lists = (): Lists => {
  built ??= {
    disposableDomains: disposableEmailBlocklistSet(),
    roles: new Set(
      [...MARKETING, ...NOTIFICATION, ...MEETING, ...OTHER].filter(
        (entry) => !NOT_ROLES.has(entry) && !DIGITS_ONLY.test(entry),
      ),
    ),
  };
  return built;
};

/**
 * The entry of the disposable-domain list that covers a parsed domain (lower case A-labels), or null. An entry covers
 * itself and its subdomains, but a parent is only looked up as far as the organisational domain: below a public suffix
 * strangers register. Relay services are never disposable.
 */
export const isDisposable = (domain: string): string | null => {
  const parents = parentsWithinOrganisation(domain);
  if (parents.some((parent) => RELAY_DOMAINS.has(parent))) return null;
  const { disposableDomains } = lists();
  return parents.find((parent) => disposableDomains.has(parent)) ?? null;
};

/**
 * The entry of the role list that equals a normalised local part, or its part before the first `+`; null when there is
 * none. Parts of a name never match: `salesman` is not a sales desk.
 */
export const isRoleAccount = (localPart: string): string | null => {
  const [base = ""] = localPart.split("+", 1);
  return lists().roles.has(base) ? base : null;
};

/** The domain itself and its parents up to the organisational domain, the longest first. */
const parentsWithinOrganisation = (domain: string): readonly string[] => {
  const organisation = organisationalDomain(domain);
  if (organisation === null || organisation === domain) return [domain];
  const depth = domain.split(".").length - organisation.split(".").length;
  return Array.from({ length: depth + 1 }, (_, dropped) => domain.split(".").slice(dropped).join("."));
};
