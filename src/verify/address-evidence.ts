import { cached } from "../foundation/base/bounded-map.ts";
import commonProviders from "email-providers/common.json" with { type: "json" };
import { type Address, normalizeLoosely, parseAddress } from "../foundation/mail/address.ts";
import { readAddressCell } from "../foundation/mail/address-in-cell.ts";
import { type AddressProblem, describeProblem } from "../foundation/mail/address-problem.ts";
import type { Evidence } from "./evidence.ts";
import { disposableEmailBlocklistSet } from "disposable-email-domains-js";
import { MARKETING, MEETING, NOTIFICATION, OTHER } from "role-based-email-addresses/src/index.js";
import { organisationalDomain, suffixList } from "../foundation/mail/organisational-domain.ts";
import { editDistance } from "../foundation/base/nearest.ts";

/** What lists say about a well-formed address. `problem` is set only with test keys, whose trigger may be a bad address. */
export type AddressClassifier = (
  address: Address,
) => Pick<Evidence["address"], "problem" | "role_account" | "disposable">;

/** Classifies an address by the lists of role accounts and disposable domains. */
export const classifyAddress: AddressClassifier = ({ localPart, domain, literal }) => ({
  problem: null,
  role_account: isRoleAccount(localPart),
  disposable: literal === null ? isDisposable(domain) : null,
});

const NO_NETWORK_EVIDENCE = {
  domain: null,
  toxic: null,
  bounce: null,
  dnsbl: null,
  random_recipient: null,
  conclusion: null,
  attempts: [],
  retries: [],
};

const invalidAddress = (submitted: string, error: AddressProblem, suggestion: string | null): Evidence => {
  const [normalized_email, problem] = [normalizeLoosely(submitted), describeProblem(error)];
  const unlisted = { suggestion, role_account: null, disposable: null };
  return { address: { submitted, normalized_email, read_as: null, problem, ...unlisted }, ...NO_NETWORK_EVIDENCE };
};

const validAddress = (
  submitted: string,
  address: Address,
  { readAs, classify }: { readonly readAs: string | null; readonly classify: AddressClassifier },
): Evidence => ({
  address: {
    submitted,
    normalized_email: address.normalized,
    read_as: readAs,
    suggestion: suggestAddress(address),
    ...classify(address),
  },
  ...NO_NETWORK_EVIDENCE,
});

/**
 * The evidence that needs no network: syntax and lists. Only white space may surround the address; what else can be read
 * as one (`Anna <anna@example.com>`) is suggested.
 */
export const beginEvidence = (submitted: string, classify = classifyAddress): Evidence => {
  const parsed = parseAddress(submitted);
  if (parsed.ok) return validAddress(submitted, parsed.value, { readAs: null, classify });
  const read = readAddressCell(submitted);
  return invalidAddress(submitted, parsed.error, read.ok ? read.value.text : null);
};

/** `beginEvidence` for a cell of a list, from which the address is extracted. */
export const beginCellEvidence = (submitted: string, classify = classifyAddress): Evidence => {
  const read = readAddressCell(submitted);
  if (!read.ok) return invalidAddress(submitted, read.error, null);
  const { text, address } = read.value;
  return validAddress(submitted, address, { readAs: text === submitted.trim() ? null : text, classify });
};

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

/**
 * Mailbox providers worth suggesting, the most used first. Only names that a typo rarely turns into another real name:
 * the list of common providers also holds names such as `law.com` and `pe.hu`, which would "correct" honest domains.
 */
const TARGETS = `
  gmail.com yahoo.com hotmail.com outlook.com icloud.com aol.com live.com msn.com me.com
  protonmail.com proton.me gmx.de gmx.net gmx.com gmx.at web.de t-online.de freenet.de
  googlemail.com yahoo.co.uk yahoo.fr yahoo.de yahoo.co.jp yahoo.com.br yahoo.ca hotmail.co.uk
  hotmail.fr orange.fr wanadoo.fr laposte.net free.fr sfr.fr libero.it virgilio.it alice.it
  comcast.net verizon.net sbcglobal.net bellsouth.net earthlink.net charter.net att.net cox.net
  btinternet.com virginmedia.com bigpond.com optusnet.com.au rogers.com mail.ru yandex.ru
  rambler.ru seznam.cz bluewin.ch telenet.be skynet.be terra.com.br uol.com.br naver.com
  foxmail.com 163.com 126.com qq.com fastmail.com mailbox.org zoho.com rediffmail.com
`
  .trim()
  .split(/\s+/);

/** Names that only the provider uses: with them a real but unlikely top-level domain is a typo as well. */
const COINED_NAMES: ReadonlySet<string> = new Set(["gmail", "googlemail", "hotmail", "yahoo", "icloud", "protonmail"]);
const UNLIKELY_TLDS: ReadonlySet<string> = new Set(["co", "cm", "om"]);

/** Below this length the neighbours of a name are mostly real names (`aon.com`, `ma.com`). */
const NAME_LENGTH_MIN = 5;
/** Proper words: their neighbours are words as well. */
const WORDS: ReadonlySet<string> = new Set([
  "proton",
  "orange",
  "alice",
  "terra",
  "charter",
  "rogers",
  "mailbox",
  "naver",
]);
const LONG_NAME_LENGTH = 9;
/** From this length on, a wrong or missing first letter is more likely a typo than another name (`jotmail`, but `hmail`, `cloud`). */
const FIRST_LETTER_LENGTH_MIN = 7;
const UNREAL_TLD_DISTANCE_MAX = 2;
/** Longer domains are not a typo of any target; bounds the work. */
const DOMAIN_LENGTH_MAX = 32;

const providers: ReadonlySet<string> = new Set([...commonProviders, ...TARGETS]);
const targets = TARGETS.map((domain) => ({ domain, ...splitName(domain) }));

/**
 * The address with a well-known provider in place of a domain that looks like a typo of it; null when none does. The local
 * part keeps its submitted case.
 *
 * A hint for people, never a correction. There is none for known providers, nor for a domain that differs only in an
 * existing top-level domain: `outlook.co` may be registered.
 */
export const suggestAddress = ({ domain, mailbox }: Address): string | null => {
  const best = suggestDomain(domain);
  return best === null ? null : `${mailbox.slice(0, mailbox.lastIndexOf("@"))}@${best}`;
};

/** Suggestions of the latest domains: most addresses of a list share theirs with others. */
const CACHED_MAX = 10_000;

/** The well-known provider that a domain (A-labels in lower case) looks like a typo of; null when it does not. */
export const suggestDomain = (domain: string): string | null => {
  if (domain.startsWith("[") || domain.length > DOMAIN_LENGTH_MAX || providers.has(domain)) return null;
  return findDomain(domain);
};

const findDomain = cached(CACHED_MAX, (domain: string): string | null => {
  const typed = { domain, ...splitName(domain) };
  const tldExists = suffixList().parse(domain, { extractHostname: false }).isIcann === true;
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const target of targets) {
    const distance = tldExists ? typoInName(typed, target) : typoAnywhere(typed, target);
    if (distance === null || distance >= bestDistance) continue;
    best = target.domain;
    bestDistance = distance;
  }
  return best;
});

interface SplitDomain {
  readonly domain: string;
  /** Everything before the first dot. */
  readonly name: string;
  /** Everything after it; empty for a single label. */
  readonly suffix: string;
}

function splitName(domain: string): { readonly name: string; readonly suffix: string } {
  const dot = domain.indexOf(".");
  return dot === -1 ? { name: domain, suffix: "" } : { name: domain.slice(0, dot), suffix: domain.slice(dot + 1) };
}

/** The typed domain can exist, so only its name may be wrong. The distance; null when a typo is unlikely. */
const typoInName = (typed: SplitDomain, target: SplitDomain): number | null => {
  if (typed.name === target.name) {
    const isTypo = target.suffix === "com" && COINED_NAMES.has(target.name) && UNLIKELY_TLDS.has(typed.suffix);
    return isTypo ? 1 : null;
  }
  if (typed.suffix !== target.suffix) return null;
  return typoOfName(typed.name, target.name);
};

/** The typed top-level domain does not exist: the domain is wrong, whatever was meant. */
const typoAnywhere = (typed: SplitDomain, target: SplitDomain): number | null => {
  if (typed.suffix === "") return typed.name === target.domain.replaceAll(".", "") ? 1 : null;
  const inName = typed.name === target.name ? 0 : typoOfName(typed.name, target.name);
  if (inName === null) return null;
  const inSuffix = editDistance(typed.suffix, target.suffix, UNREAL_TLD_DISTANCE_MAX);
  return inSuffix <= UNREAL_TLD_DISTANCE_MAX && inSuffix < target.suffix.length ? inName + inSuffix : null;
};

const typoOfName = (typed: string, target: string): number | null => {
  if (target.length < NAME_LENGTH_MIN || WORDS.has(target)) return null;
  const distanceMax = target.length >= LONG_NAME_LENGTH ? 2 : 1;
  const sameStart = typed[0] === target[0] || (typed[0] === target[1] && typed[1] === target[0]);
  if (!sameStart && target.length < FIRST_LETTER_LENGTH_MIN) return null;
  const distance = editDistance(typed, target, distanceMax);
  return distance <= distanceMax ? distance : null;
};
