import type { SelectorOrigin } from "./health-sections.ts";

/** A selector whose key is to be checked. */
export interface SelectorToCheck {
  readonly selector: string;
  /** The domain of `d=`, lower-case A-labels. */
  readonly signer: string;
  readonly origin: SelectorOrigin;
  /** Its use by the reports; null where none names it. */
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
