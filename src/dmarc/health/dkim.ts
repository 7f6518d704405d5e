import { isoDay } from "../../base/days.ts";
import { isDefinite } from "../../net/dns.ts";
import { keyFindings, missingFinding, unreadableFinding } from "./dkim-findings.ts";
import { isDkimKeyText, parseDkimKey } from "./dkim-key.ts";
import { findingOf, type HealthFinding, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { DkimKeySummary, DkimSection } from "./health-sections.ts";
import { SELECTORS_MAX, type WantedSelector } from "./selectors.ts";

interface CheckedKey {
  readonly summary: DkimKeySummary;
  readonly findings: readonly HealthFinding[];
  readonly unchecked: string | null;
}

/**
 * Checks the published DKIM keys of selectors (RFC 6376 §3.6). Of common selectors, which nobody says are in use, only those with a
 * key are listed. `today` is the day since 1970 (UTC) that uses are held against.
 */
export const checkDkim = async (
  dns: HealthDns,
  domain: string,
  { selectors, today }: { readonly selectors: readonly WantedSelector[]; readonly today: number },
): Promise<DkimSection> => {
  const wanted = selectors.slice(0, SELECTORS_MAX);
  const checked = await Promise.all(wanted.map((each) => checkSelector(dns, each, today)));
  const listed = checked.filter(
    ({ summary }) => summary.origin !== "common" || summary.state === "valid" || summary.state === "invalid",
  );
  const keys = listed.map(({ summary }) => summary);
  const unchecked = listed.flatMap((each) => (each.unchecked === null ? [] : [each.unchecked]));
  const findings = [...listed.flatMap((each) => each.findings), ...wholeFindings(domain, keys)];
  return { code: "dkim", status: statusOfFindings(findings, unchecked), findings, unchecked, keys };
};

const wholeFindings = (domain: string, keys: readonly DkimKeySummary[]): readonly HealthFinding[] => {
  if (keys.length === 0) {
    return [
      findingOf(
        "info",
        "dkim_no_selector",
        `No DKIM selector of ${domain} is known: none was named or seen in reports, and no common selector has a key.`,
        {
          fix: "Name the selectors that your servers sign with (s= in the DKIM-Signature header of a message).",
        },
      ),
    ];
  }
  const valid = keys.filter(({ state }) => state === "valid");
  if (valid.length === 0 || valid.some(({ type }) => type === "rsa")) return [];
  return [
    findingOf(
      "warning",
      "dkim_ed25519_only",
      `All known DKIM keys of ${domain} are Ed25519, which many receivers do not verify yet.`,
      {
        fix: "Sign with an RSA key of 2048 bits as well.",
      },
    ),
  ];
};

const checkSelector = async (dns: HealthDns, wanted: WantedSelector, today: number): Promise<CheckedKey> => {
  const { selector, signer, origin, seen } = wanted;
  const host = `${selector}._domainkey.${signer}`;
  const reply = await dns.resolve(host, "TXT");
  const cname = reply.cnames[0] ?? null;
  const base = {
    selector,
    domain: signer,
    origin,
    cname,
    messages: seen === null ? null : { passed: seen.passed, failed: seen.failed },
    last_seen: seen === null ? null : isoDay(seen.lastDay),
  };
  const without = { ...base, type: null, bits: null, testing: false };
  const unchecked = uncheckedSentence(reply);
  if (unchecked !== null) return { summary: { ...without, state: "unknown" }, findings: [], unchecked };
  const texts = reply.records.filter(isDkimKeyText);
  const [text] = texts;
  const at = { host, wanted, cname, today };
  if (text === undefined) {
    const isThere = isDefinite(reply.outcome) && reply.records.length > 0;
    const finding = missingFinding(at, isThere ? (reply.records[0] ?? null) : null);
    return { summary: { ...without, state: "missing" }, findings: [finding], unchecked: null };
  }
  if (texts.length > 1) {
    return { summary: { ...without, state: "invalid" }, findings: [unreadableFinding(at, texts)], unchecked: null };
  }
  const key = parseDkimKey(text);
  const { state, type, bits, isTesting: testing } = key;
  return { summary: { ...base, state, type, bits, testing }, findings: keyFindings(at, key, text), unchecked: null };
};
