import type { SelectorOrigin } from "./health-schema.ts";
import { nextTurn } from "../../../foundation/base/clock.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import type { DkimAuthResult } from "../../reports/report/report-row.ts";
import type { HealthStore } from "./health-store.ts";

/** A selector whose key is to be checked. */
export interface SelectorToCheck {
  readonly selector: string;
  /** The domain of `d=`, lower-case A-labels. */
  readonly signer: string;
  readonly origin: SelectorOrigin;
  /** The use of the selector by the reports; null where none names it. */
  readonly seen: SelectorUse | null;
}

/** The signatures with a selector in reports. Days are days since 1970 (UTC). */
export interface SelectorUse {
  readonly passed: number;
  readonly failed: number;
  readonly lastDay: number;
  /** Null when none ever passed. */
  readonly lastPassedDay: number | null;
}

/** Selectors checked in one run. */
export const SELECTORS_MAX = 30;
const COMMON =
  "google selector1 selector2 k1 k2 k3 s1 s2 default mail dkim smtp mandrill mailjet pm fm1 fm2 fm3 protonmail zoho cm";

/** The selectors that well-known services and mail servers use, at a domain. */
export const commonSelectors = (domain: string): readonly SelectorToCheck[] =>
  COMMON.split(" ").map((selector) => ({ selector, signer: domain, origin: "common", seen: null }));

/** Whether a text can be a selector: labels of letters, digits, hyphens and underscores (RFC 6376 §3.1). */
export const isSelector = (text: string): boolean =>
  text.length <= 127 && /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*$/i.test(text);

/** Days of reports that are read. */
export const SELECTOR_DAYS = 90;
/** Pairs counted; spoofers can make up any number of them. */
const PAIRS_MAX = 2_000;
/** Selectors without a passing signature that are checked: they may be forged. */
const UNPROVEN_MAX = 8;

type SelectorSum = { -readonly [K in keyof SelectorUse]: SelectorUse[K] } & { signer: string; selector: string };

/**
 * The selectors that sign for a domain by its reports of the last 90 days: those of signatures whose `d=` shares the domain's
 * organizational domain, in the largest records of each day. Those that passed come first, the most messages first. Reads a day in
 * a step (a millisecond), so that other work goes on meanwhile.
 */
export const findSeenSelectors = async (
  store: Pick<HealthStore, "signedRecords">,
  { number, domain }: { readonly number: number; readonly domain: string },
  today: number,
): Promise<readonly SelectorToCheck[]> => {
  const isAligned = alignment(domain);
  const sums = new Map<string, SelectorSum>();
  const add = (day: number, count: number, { domain: signer, selector, result }: DkimAuthResult): void => {
    if (signer === null || selector === null || result === "none" || !isSelector(selector) || !isAligned(signer))
      return;
    const key = `${selector.toLowerCase()} ${signer}`;
    const found = sums.get(key);
    if (found === undefined && sums.size >= PAIRS_MAX) return;
    const sum = found ?? {
      signer,
      selector: selector.toLowerCase(),
      passed: 0,
      failed: 0,
      lastDay: day,
      lastPassedDay: null,
    };
    sums.set(key, sum);
    if (result !== "pass") {
      sum.failed += count;
      return;
    }
    sum.passed += count;
    sum.lastPassedDay ??= day;
  };
  for (let day = today; day > today - SELECTOR_DAYS; day -= 1) {
    await nextTurn();
    for (const { count, dkimResults } of store.signedRecords(number, day)) {
      for (const result of dkimResults) add(day, count, result);
    }
  }
  return mostUsed([...sums.values()]);
};

const mostUsed = (sums: readonly SelectorSum[]): readonly SelectorToCheck[] => {
  const proven = sums.filter(({ passed }) => passed > 0).sort((one, other) => other.passed - one.passed);
  const unproven = sums.filter(({ passed }) => passed === 0).sort((one, other) => other.failed - one.failed);
  return [...proven.slice(0, SELECTORS_MAX - UNPROVEN_MAX), ...unproven.slice(0, UNPROVEN_MAX)].map(
    ({ signer, selector, ...seen }) => ({ signer, selector, origin: "reports", seen }),
  );
};

/** Relaxed alignment (RFC 9989 §4.10.1) with one domain; each signer is judged once. */
const alignment = (domain: string): ((signer: string) => boolean) => {
  const own = organisationalDomain(domain);
  const judged = new Map<string, boolean>();
  return (signer) => {
    const known = judged.get(signer) ?? (signer === domain || (own !== null && organisationalDomain(signer) === own));
    judged.set(signer, known);
    return known;
  };
};
