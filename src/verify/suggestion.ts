import commonProviders from "email-providers/common.json" with { type: "json" };
import { suffixList } from "../mail/large-tables.ts";
import type { Address } from "../mail/address.ts";

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

/** Names nobody but the provider uses: with them a real but unlikely top-level domain is a typo as well. */
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
/** From here on a wrong or missing first letter is more likely a slip than another name (`jotmail`, but `hmail`, `cloud`). */
const FIRST_LETTER_LENGTH_MIN = 7;
const UNREAL_TLD_DISTANCE_MAX = 2;
/** Longer domains are no typo of any target; bounds the work. */
const DOMAIN_LENGTH_MAX = 32;

const providers: ReadonlySet<string> = new Set([...commonProviders, ...TARGETS]);
const targets = TARGETS.map((domain) => ({ domain, ...splitName(domain) }));

/**
 * Did you mean …? The address with a well-known provider in place of a domain that looks like a slip of the finger, or
 * null. The local part keeps its submitted case.
 *
 * A hint for people, never a correction. Known providers are left alone, and so is any domain that differs only in a
 * top-level domain which exists, because `outlook.co` may well be somebody's.
 */
export const suggestAddress = ({ domain, mailbox }: Address): string | null => {
  const best = suggestDomain(domain);
  return best === null ? null : `${mailbox.slice(0, mailbox.lastIndexOf("@"))}@${best}`;
};

/** The well-known provider whose name a domain (A-labels in lower case) looks like a slip of; null when it does not. */
export const suggestDomain = (domain: string): string | null => {
  if (domain.startsWith("[") || domain.length > DOMAIN_LENGTH_MAX || providers.has(domain)) return null;
  const typed = { domain, ...splitName(domain) };
  const tldExists = suffixList().parse(domain, { extractHostname: false }).isIcann === true;
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const target of targets) {
    const distance = tldExists ? slipInName(typed, target) : slipAnywhere(typed, target);
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

/** The typed domain can exist, so only its name may be wrong. The distance, or null when it is no likely slip. */
const slipInName = (typed: SplitDomain, target: SplitDomain): number | null => {
  if (typed.name === target.name) {
    const isSlip = target.suffix === "com" && COINED_NAMES.has(target.name) && UNLIKELY_TLDS.has(typed.suffix);
    return isSlip ? 1 : null;
  }
  if (typed.suffix !== target.suffix) return null;
  return slipOfName(typed.name, target.name);
};

/** The typed top-level domain does not exist: the domain is wrong in any case, and the question is only what was meant. */
const slipAnywhere = (typed: SplitDomain, target: SplitDomain): number | null => {
  if (typed.suffix === "") return typed.name === target.domain.replaceAll(".", "") ? 1 : null;
  if (Math.abs(typed.suffix.length - target.suffix.length) > UNREAL_TLD_DISTANCE_MAX) return null;
  const inName = typed.name === target.name ? 0 : slipOfName(typed.name, target.name);
  if (inName === null) return null;
  const inSuffix = damerauLevenshtein(typed.suffix, target.suffix, UNREAL_TLD_DISTANCE_MAX);
  return inSuffix <= UNREAL_TLD_DISTANCE_MAX && inSuffix < target.suffix.length ? inName + inSuffix : null;
};

const slipOfName = (typed: string, target: string): number | null => {
  if (target.length < NAME_LENGTH_MIN || WORDS.has(target)) return null;
  const distanceMax = target.length >= LONG_NAME_LENGTH ? 2 : 1;
  if (Math.abs(typed.length - target.length) > distanceMax) return null;
  const sameStart = typed[0] === target[0] || (typed[0] === target[1] && typed[1] === target[0]);
  if (!sameStart && target.length < FIRST_LETTER_LENGTH_MIN) return null;
  const distance = damerauLevenshtein(typed, target, distanceMax);
  return distance <= distanceMax ? distance : null;
};

/**
 * Insertions, deletions, substitutions and swaps of neighbours, no letter touched twice (optimal string alignment).
 * Infinity as soon as it is sure to be more than `distanceMax`.
 */
const damerauLevenshtein = (from: string, to: string, distanceMax: number): number => {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    let least = row;
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let distance = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (isSwap) distance = Math.min(distance, (beforeLast[column - 2] ?? 0) + 1);
      current.push(distance);
      if (distance < least) least = distance;
    }
    // A swap reaches back two rows, but costs one: a row that is too far by one already cannot come back.
    if (least > distanceMax) return Number.POSITIVE_INFINITY;
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
};
