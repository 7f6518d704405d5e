import { findingOf, type HealthFinding, quoteText, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { BimiSection, DmarcSection } from "./health-sections.ts";
import { readTags } from "./txt-tags.ts";

/**
 * Checks the BIMI record at the selector `default` and the DMARC policy that it needs. The logo and the certificate are not
 * fetched.
 */
export const checkBimi = async (dns: HealthDns, domain: string, dmarc: DmarcSection): Promise<BimiSection> => {
  const host = `default._bimi.${domain}`;
  const reply = await dns.resolve(host, "TXT");
  const failure = uncheckedSentence(reply);
  const unchecked = failure === null ? [] : [failure];
  const records = reply.records.filter((text) => /^v=BIMI1\s*(?:;|$)/i.test(text));
  const record = records.length === 1 ? (records[0] ?? null) : null;
  const tags = record === null ? new Map<string, string>() : readTags(record);
  const location = tags.get("l") ?? null;
  const authority = tags.get("a") ?? null;
  const found = { host, domain, records, location, authority, dmarc };
  const findings = failure === null ? findingsOf(found) : [];
  return {
    code: "bimi",
    status: statusOfFindings(findings, unchecked),
    findings,
    unchecked,
    record,
    location: location === "" ? null : location,
    authority: authority === "" ? null : authority,
  };
};

interface BimiFound {
  readonly host: string;
  readonly domain: string;
  readonly records: readonly string[];
  readonly location: string | null;
  readonly authority: string | null;
  readonly dmarc: DmarcSection;
}

const findingsOf = (found: BimiFound): readonly HealthFinding[] => {
  const { host, domain, records, location, authority } = found;
  const [record] = records;
  if (record === undefined) {
    return [
      findingOf("info", "bimi_missing", `${domain} does not publish BIMI, so mailbox providers show no logo for it.`),
    ];
  }
  if (records.length > 1) {
    return [
      findingOf("warning", "bimi_several", `${host} has ${records.length} BIMI records; receivers then use none.`, {
        observed: records.join("\n"),
        fix: `Keep one TXT record at ${host}.`,
      }),
    ];
  }
  if (location === null) {
    return [
      findingOf("warning", "bimi_syntax", `The BIMI record at ${host} has no l tag, so receivers ignore it.`, {
        observed: record,
        fix: `Publish it with the address of the logo, such as "v=BIMI1; l=https://${domain}/logo.svg;".`,
      }),
    ];
  }
  if (location === "" && (authority ?? "") === "") {
    return [
      findingOf("info", "bimi_declined", `${domain} declines BIMI: its record names no logo.`, { observed: record }),
    ];
  }
  return [...locationFindings(found), ...policyFindings(found)];
};

const locationFindings = ({ host, location, authority }: BimiFound): readonly HealthFinding[] => {
  const findings: HealthFinding[] = [];
  for (const [tag, uri] of [
    ["l", location],
    ["a", authority],
  ] as const) {
    if (uri === null || uri === "" || uri === "self" || isHttps(uri)) continue;
    findings.push(
      findingOf(
        "warning",
        "bimi_location",
        `The BIMI record at ${host} has ${tag}=${quoteText(uri)}, which is not an https: URI; receivers ignore it.`,
        {
          observed: uri,
          fix: `Serve the file over HTTPS and write its https: address into ${tag}.`,
        },
      ),
    );
  }
  if ((authority ?? "") === "") {
    findings.push(
      findingOf(
        "info",
        "bimi_no_certificate",
        `The BIMI record at ${host} names no certificate in a; Gmail and Apple Mail show the logo only with one (VMC or CMC).`,
        {
          fix: "Obtain a mark certificate and write its https: address into a, if you want the logo to show there.",
        },
      ),
    );
  }
  return findings;
};

const isHttps = (uri: string): boolean => /^https:\/\//i.test(uri) && URL.canParse(uri);

/** What receivers of BIMI ask of the policy; nothing where the DNS did not say which one applies. */
const policyFindings = ({ domain, dmarc }: BimiFound): readonly HealthFinding[] => {
  if (dmarc.unchecked.length > 0) return [];
  const problem = policyProblem(dmarc.policy);
  if (problem === null) return [];
  return [
    findingOf("warning", "bimi_policy", `BIMI of ${domain} has no effect because ${problem}.`, {
      observed: dmarc.record,
      fix: "Publish p=quarantine or p=reject for all mail (no sp=none, pct=100, no t=y) when your mail passes DMARC.",
    }),
  ];
};

const policyProblem = (policy: DmarcSection["policy"]): string | null => {
  if (policy === null) return "no DMARC policy applies";
  const { p, sp, pct, t } = policy;
  if (p === "none") return "the DMARC policy is p=none";
  if (sp === "none") return "the DMARC policy for subdomains is sp=none";
  if (p === "quarantine" && pct < 100) return `the DMARC policy applies to ${pct} % of the mail only`;
  return t === "y" ? "the DMARC policy is in test mode (t=y)" : null;
};
