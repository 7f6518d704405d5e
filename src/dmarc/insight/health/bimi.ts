import { type HealthDns, quoteText, SectionReport, readTags } from "./section-report.ts";
import type { BimiSection, DmarcSection } from "./health-schema.ts";

interface BimiRecord {
  readonly host: string;
  readonly location: string | null;
  readonly authority: string | null;
}

/** Checks the BIMI record at the selector `default` and the DMARC policy that it needs. The logo and the certificate are not fetched. */
export const checkBimi = async (dns: HealthDns, domain: string, dmarc: DmarcSection): Promise<BimiSection> => {
  const host = `default._bimi.${domain}`;
  const response = await dns.resolve(host, "TXT");
  const records = response.records.filter((text) => /^v=BIMI1\s*(?:;|$)/i.test(text));
  const record = records.length === 1 ? (records[0] ?? null) : null;
  const tags = record === null ? new Map<string, string>() : readTags(record);
  const [location, authority] = [tags.get("l") ?? null, tags.get("a") ?? null];
  const report = new SectionReport();
  if (report.isAnswered(response)) {
    const isInUse = reportRecords(report, domain, records, { host, location, authority });
    if (isInUse) reportPolicy(report, domain, dmarc);
  }
  const orNull = (uri: string | null) => (uri === "" ? null : uri);
  return { code: "bimi", ...report.result(), record, location: orNull(location), authority: orNull(authority) };
};

/** False when no record asks for a logo. */
const reportRecords = (
  report: SectionReport,
  domain: string,
  records: readonly string[],
  found: BimiRecord,
): boolean => {
  const { host, location, authority } = found;
  const [record] = records;
  if (record === undefined) {
    report.info({
      code: "bimi_missing",
      message: `${domain} does not publish BIMI, so mailbox providers show no logo for it.`,
    });
  } else if (records.length > 1) {
    report.warning({
      code: "bimi_several",
      message: `${host} has ${records.length} BIMI records; receivers then use none.`,
      observed: records.join("\n"),
      fix: `Keep one TXT record at ${host}.`,
    });
  } else if (location === null) {
    report.warning({
      code: "bimi_syntax",
      message: `The BIMI record at ${host} has no l tag, so receivers ignore it.`,
      observed: record,
      fix: `Publish it with the address of the logo, such as "v=BIMI1; l=https://${domain}/logo.svg;".`,
    });
  } else if (location === "" && (authority ?? "") === "") {
    report.info({
      code: "bimi_declined",
      message: `${domain} declines BIMI: its record names no logo.`,
      observed: record,
    });
  } else {
    reportLocations(report, found);
    return true;
  }
  return false;
};

const reportLocations = (report: SectionReport, { host, location, authority }: BimiRecord): void => {
  for (const [tag, uri] of Object.entries({ l: location, a: authority })) {
    if (uri === null || uri === "" || uri === "self" || isHttps(uri)) continue;
    report.warning({
      code: "bimi_location",
      message: `The BIMI record at ${host} has ${tag}=${quoteText(uri)}, which is not an https: URI; receivers ignore it.`,
      observed: uri,
      fix: `Serve the file over HTTPS and write its https: address into ${tag}.`,
    });
  }
  if ((authority ?? "") !== "") return;
  report.info({
    code: "bimi_no_certificate",
    message: `The BIMI record at ${host} names no certificate in a; Gmail and Apple Mail show the logo only with one (VMC or CMC).`,
    fix: "Obtain a mark certificate and write its https: address into a, if you want the logo to show there.",
  });
};

const isHttps = (uri: string): boolean => /^https:\/\//i.test(uri) && URL.canParse(uri);

/** What receivers of BIMI require of the policy; nothing where the DNS did not say which one applies. */
const reportPolicy = (report: SectionReport, domain: string, dmarc: DmarcSection): void => {
  const problem = dmarc.unchecked.length > 0 ? null : policyProblem(dmarc.policy);
  if (problem === null) return;
  report.warning({
    code: "bimi_policy",
    message: `BIMI of ${domain} has no effect because ${problem}.`,
    observed: dmarc.record,
    fix: "Publish p=quarantine or p=reject for all mail (no sp=none, pct=100, no t=y) when your mail passes DMARC.",
  });
};

const policyProblem = (policy: DmarcSection["policy"]): string | null => {
  if (policy === null) return "no DMARC policy applies";
  const { p, sp, pct, t } = policy;
  if (p === "none") return "the DMARC policy is p=none";
  if (sp === "none") return "the DMARC policy for subdomains is sp=none";
  if (p === "quarantine" && pct < 100) return `the DMARC policy applies to only ${pct} % of the mail`;
  return t === "y" ? "the DMARC policy is in test mode (t=y)" : null;
};
