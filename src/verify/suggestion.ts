import commonProviders from "email-providers/common.json" with { type: "json" };
import { editDistance } from "../foundation/base/nearest.ts";
import { suffixList } from "../foundation/mail/large-tables.ts";
import type { Address } from "../foundation/mail/address.ts";

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
const cached = new Map<string, string | null>();
const CACHED_MAX = 10_000;

/** The well-known provider that a domain (A-labels in lower case) looks like a typo of; null when it does not. */
export const suggestDomain = (domain: string): string | null => {
  if (domain.startsWith("[") || domain.length > DOMAIN_LENGTH_MAX || providers.has(domain)) return null;
  const known = cached.get(domain);
  if (known !== undefined) return known;
  const suggested = findDomain(domain);
  if (cached.size >= CACHED_MAX) cached.clear();
  cached.set(domain, suggested);
  return suggested;
};

const findDomain = (domain: string): string | null => {
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
};

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
