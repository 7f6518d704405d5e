import { isoDay } from "../../../foundation/base/days.ts";
import { reportKey, reportMissingKey, reportSeveralKeys } from "./dkim-findings.ts";
import { isDkimKeyText, parseDkimKey } from "./dkim-key.ts";
import type { HealthDns } from "./health-dns.ts";
import { SectionReport } from "./health-finding.ts";
import type { DkimKeySummary, DkimSection } from "./health-sections.ts";
import { SELECTORS_MAX, type SelectorToCheck } from "./selectors.ts";

export interface DkimCheckOptions {
  readonly selectors: readonly SelectorToCheck[];
  /** The day of the check, in days since 1970 (UTC). */
  readonly today: number;
}

/**
 * Checks the published DKIM keys of selectors (RFC 6376 §3.6). Of common selectors, which nobody says are in use, only those with a key
 * are listed.
 */
export const checkDkim = async (
  dns: HealthDns,
  domain: string,
  { selectors, today }: DkimCheckOptions,
): Promise<DkimSection> => {
  const checked = await Promise.all(selectors.slice(0, SELECTORS_MAX).map((wanted) => checkKey(dns, wanted, today)));
  const listed = checked.filter(
    ({ summary: { origin, state } }) => origin !== "common" || state === "valid" || state === "invalid",
  );
  const keys = listed.map(({ summary }) => summary);
  const report = new SectionReport();
  for (const each of listed) report.include(each.report);
  reportKeys(report, domain, keys);
  return { code: "dkim", ...report.result(), keys };
};

const checkKey = async (
  dns: HealthDns,
  wanted: SelectorToCheck,
  today: number,
): Promise<{ readonly summary: DkimKeySummary; readonly report: SectionReport }> => {
  const { selector, signer, origin, seen } = wanted;
  const host = `${selector}._domainkey.${signer}`;
  const response = await dns.resolve(host, "TXT");
  const report = new SectionReport();
  const cname = response.cnames[0] ?? null;
  const at = { host, wanted, cname, today };
  const summaryOf = (key: Pick<DkimKeySummary, "state"> & Partial<DkimKeySummary>) => ({
    summary: {
      ...{ selector, domain: signer, origin, type: null, bits: null, testing: false, cname, ...key },
      messages: seen === null ? null : { passed: seen.passed, failed: seen.failed },
      last_seen: seen === null ? null : isoDay(seen.lastDay),
    },
    report,
  });
  if (!report.isAnswered(response)) return summaryOf({ state: "unknown" });
  const texts = response.records.filter(isDkimKeyText);
  const [text] = texts;
  if (text === undefined) {
    reportMissingKey(report, at, response.records[0] ?? null);
    return summaryOf({ state: "missing" });
  }
  if (texts.length > 1) {
    reportSeveralKeys(report, at, texts);
    return summaryOf({ state: "invalid" });
  }
  const key = parseDkimKey(text);
  const { state, type, bits, isTesting: testing } = key;
  reportKey(report, at, key, text);
  return summaryOf({ state, type, bits, testing });
};

/** What all keys together show. */
const reportKeys = (report: SectionReport, domain: string, keys: readonly DkimKeySummary[]): void => {
  if (keys.length === 0) {
    report.info({
      code: "dkim_no_selector",
      message: `No DKIM selector of ${domain} is known: none was named or seen in reports, and no common selector has a key.`,
      fix: "Name the selectors that your servers sign with (s= in the DKIM-Signature header of a message).",
    });
  }
  const valid = keys.filter(({ state }) => state === "valid");
  if (valid.length === 0 || valid.some(({ type }) => type === "rsa")) return;
  report.warning({
    code: "dkim_ed25519_only",
    message: `All known DKIM keys of ${domain} are Ed25519, which many receivers do not verify yet.`,
    fix: "Sign with an RSA key of 2048 bits as well.",
  });
};
