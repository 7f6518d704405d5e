import { mapConcurrently } from "../../../foundation/base/wait.ts";
import { type HealthDns, SectionReport, quoteText, readTags } from "./section-report.ts";
import type { RecordWarningCode } from "../../records/record/record-values.ts";
import { dmarcRecordsIn, recordHost, type ValidRecord } from "../../records/record/record.ts";
import { checkAuthorisation, discoverPolicy, type PolicyDiscovery } from "../../records/record/discovery.ts";

const NO_POLICY = "Receivers accept forged mail in your name as if you had no objection, and send you no reports.";

/** The findings about the DMARC record, with why each matters. */
export const DMARC_FINDINGS = {
  dmarc_missing: NO_POLICY,
  dmarc_several: NO_POLICY,
  dmarc_inherited:
    "Reports are about the other domain, and its owner decides what happens to forged mail in this name.",
  dmarc_policy_invalid: "Receivers treat a record with an invalid policy as p=none, or ignore it.",
  dmarc_syntax: "Receivers differ in how they read a record with faults; some ignore the tag, some the record.",
  dmarc_policy_none: "Forged mail in your name is still delivered. p=none is for learning who sends for you.",
  dmarc_not_reported: "Without reports, you see neither your own failing mail nor forged mail in your name.",
  dmarc_partial: "Forged mail gets through at receivers that apply the percentage.",
  dmarc_test_mode: "Receivers are asked to apply one step less than the policy says.",
  dmarc_reports_not_authorized:
    "Receivers send no reports to an address of another organization unless its domain allows it (RFC 7489 §7.1, RFC 9990 §4).",
  dmarc_wrong_name: "Receivers look for the record at the name _dmarc below the domain only.",
};

type DmarcReport = SectionReport<keyof typeof DMARC_FINDINGS>;

/** What breaks a policy or its reports; everything else in a record is a matter of style. */
const FAULTS: ReadonlySet<RecordWarningCode> = new Set(["p_invalid", "p_missing", "policy_void"]);
const STYLE: ReadonlySet<RecordWarningCode> = new Set([
  "historic_tag",
  "over_255_octets",
  "size_suffix",
  "fo_without_ruf",
  "unknown_tag",
  "empty_tag",
  "too_many_uris",
  "uri_duplicate",
]);

/** Checks the DMARC record that applies to a domain (RFC 9989 §4.10), and its text. */
export const checkDmarcRecord = async (dns: HealthDns, domain: string) => {
  const discovery = await discoverPolicy(dns, domain);
  const report = new SectionReport<keyof typeof DMARC_FINDINGS>();
  const isAnswered =
    discovery.kind !== "indefinite" ||
    report.isAnswered({ name: discovery.host, type: "TXT", outcome: discovery.outcome });
  if (isAnswered) reportDiscovery(report, domain, discovery);
  await Promise.all([
    reportDestinations(report, dns, { domain, discovery }),
    reportWrongNames(report, dns, { domain, hasOwn: discovery.kind === "own" }),
  ]);
  const section = { code: "dmarc" as const, ...report.result() };
  if (discovery.kind !== "own" && discovery.kind !== "inherited") {
    return { ...section, record: null, inherited_from: null, policy: null };
  }
  const { record, policy } = discovery;
  const { p, sp, np, t } = policy;
  return {
    ...section,
    record: record.text,
    inherited_from: policy.inheritedFrom,
    policy: { p, sp, np, pct: record.values.pct, t },
  };
};

const reportDiscovery = (report: DmarcReport, domain: string, discovery: PolicyDiscovery) => {
  const host = recordHost(domain);
  const { published } = discovery;
  const own = published.kind === "failure" ? [] : dmarcRecordsIn(published.texts);
  if (own.length > 1) {
    report.error("dmarc_several", `${host} has ${own.length} DMARC records; receivers then use none.`, {
      observed: own.map(({ text }) => text).join("\n"),
      fix: `Keep one TXT record at ${host}.`,
    });
    return;
  }
  if (discovery.kind === "inherited") {
    const { from, record, policy } = discovery;
    report.info(
      "dmarc_inherited",
      `${domain} has no DMARC record of its own; the record of ${from} applies with p=${policy.p}.`,
      { observed: record.text },
    );
    reportText(report, recordHost(from), record);
    return;
  }
  if (discovery.kind === "own") {
    reportText(report, host, discovery.record);
    reportPolicy(report, host, discovery.record);
    return;
  }
  report.error("dmarc_missing", `${host} has no DMARC record, so receivers apply no policy and send no reports.`, {
    fix: `Publish a TXT record at ${host}, with an address in rua that the reports go to.`,
    record: { host, value: "v=DMARC1; p=none" },
  });
};

const reportPolicy = (report: DmarcReport, host: string, { text, values }: ValidRecord) => {
  const { p, pct, t } = values;
  if (p === "none") {
    report.info(
      "dmarc_policy_none",
      `The DMARC record at ${host} has p=none: receivers report, but deliver forged mail.`,
      { observed: text, fix: "Move to p=quarantine, then p=reject, when the mail of your own senders passes." },
    );
  }
  if (p !== "none" && pct < 100) {
    report.warning(
      "dmarc_partial",
      `The DMARC record at ${host} has pct=${pct}, so older receivers apply p=${p} to only a part of the mail.`,
      { observed: text, fix: `Remove pct=${pct}; to test a policy use t=y.` },
    );
  }
  if (t === "y") {
    report.info(
      "dmarc_test_mode",
      `The DMARC record at ${host} is in test mode (t=y): receivers apply the policy one step softer.`,
      { observed: text, fix: "Remove t=y when the reports show that your own mail passes." },
    );
  }
};

const reportText = (report: DmarcReport, host: string, { text: observed, warnings }: ValidRecord) => {
  for (const warning of warnings) {
    const message = `The DMARC record at ${host}: ${warning.message}`;
    if (FAULTS.has(warning.code)) {
      const fix = "Set p (and sp, np where present) to none, quarantine or reject.";
      report.error("dmarc_policy_invalid", message, { observed, fix });
    } else if (warning.code === "rua_missing") {
      const fix = "Add rua=mailto: with the address that aggregate reports go to.";
      report.warning("dmarc_not_reported", message, { observed, fix });
    } else {
      const severity = STYLE.has(warning.code) ? "info" : "warning";
      const fix =
        warning.code === "too_many_uris"
          ? "Name the two destinations that need the reports first, and remove the others."
          : "Correct the text of the record.";
      report.add(severity, "dmarc_syntax", message, { observed, fix });
    }
  }
};

/** Destinations of other organizations that are looked up. */
const DESTINATIONS_MAX = 10;

/** Whether the domains of other organizations that `rua` and `ruf` name accept the reports. */
const reportDestinations = async (
  report: DmarcReport,
  dns: HealthDns,
  { domain, discovery }: { readonly domain: string; readonly discovery: PolicyDiscovery },
) => {
  if (discovery.kind !== "own" && discovery.kind !== "inherited") return;
  const owner = discovery.kind === "own" ? domain : discovery.from;
  const { text, values } = discovery.record;
  const destinations = [...values.rua, ...values.ruf].flatMap(({ address }) => address?.split("@").at(-1) ?? []);
  await mapConcurrently([...new Set(destinations)].slice(0, DESTINATIONS_MAX), DESTINATIONS_MAX, async (reportHost) => {
    const found = await checkAuthorisation(dns, { domain: owner, reportHost });
    // A name that is too long for the DNS cannot have a record.
    const status = found.ok ? found.value.status : "missing";
    if (found.ok && found.value.status === "indefinite" && found.value.outcome !== null) {
      report.isAnswered({ name: found.value.name, type: "TXT", outcome: found.value.outcome });
    }
    if (status !== "missing") return;
    const host = `${owner}._report._dmarc.${reportHost}`;
    report.warning(
      "dmarc_reports_not_authorized",
      `The DMARC record of ${owner} sends reports to ${reportHost}, which does not accept them: ${host} has no DMARC record.`,
      {
        observed: text,
        fix: `Have the owner of ${reportHost} publish the TXT record, or remove the address from the record.`,
        record: { host, value: "v=DMARC1;" },
      },
    );
  });
};

/** DMARC records where no receiver looks, as far as the DNS responds: at the domain itself, and where a DNS panel added the domain to the name once more. */
const reportWrongNames = async (
  report: DmarcReport,
  dns: HealthDns,
  { domain, hasOwn }: { readonly domain: string; readonly hasOwn: boolean },
) => {
  const host = recordHost(domain);
  const recordsAt = async (name: string) => dmarcRecordsIn((await dns.resolve(name, "TXT")).records);
  const doubled = `${host}.${domain}`;
  const found = [
    { name: domain, records: await recordsAt(domain) },
    { name: doubled, records: await recordsAt(doubled) },
  ];
  for (const { name, records } of found) {
    const [record] = records;
    if (record === undefined || (name === doubled && (await recordsAt(`${UNUSED_LABEL}.${doubled}`)).length > 0))
      continue;
    report.add(
      hasOwn ? "info" : "warning",
      "dmarc_wrong_name",
      `A DMARC record is at ${name}, where receivers do not look.`,
      {
        observed: record.text,
        fix: hasOwn ? `Remove it: the record at ${host} applies.` : `Publish it at ${host} instead.`,
      },
    );
  }
};

/** A wildcard has records at every name, and so also at this one. */
const UNUSED_LABEL = "no-such-name";

const NO_LOGO = "Mailbox providers show no logo beside your mail. Delivery is not affected.";

/** The findings about BIMI, with why each matters. */
export const BIMI_FINDINGS = {
  bimi_missing: NO_LOGO,
  bimi_declined: NO_LOGO,
  bimi_several: NO_LOGO,
  bimi_syntax: NO_LOGO,
  bimi_location: NO_LOGO,
  bimi_file_type: NO_LOGO,
  bimi_policy: NO_LOGO,
  bimi_no_certificate: NO_LOGO,
};

type BimiReport = SectionReport<keyof typeof BIMI_FINDINGS>;

type CheckedDmarc = Awaited<ReturnType<typeof checkDmarcRecord>>;

interface BimiRecord {
  readonly host: string;
  readonly location: string | null;
  readonly authority: string | null;
}

/** Checks the BIMI record at the selector `default` and the DMARC policy that it needs. The logo and the certificate are not fetched. */
export const checkBimi = async (dns: HealthDns, domain: string, dmarc: CheckedDmarc) => {
  const host = `default._bimi.${domain}`;
  const response = await dns.resolve(host, "TXT");
  const records = response.records.filter((text) => /^v=BIMI1\s*(?:;|$)/i.test(text));
  const record = records.length === 1 ? (records[0] ?? null) : null;
  const tags = record === null ? new Map<string, string>() : readTags(record);
  const [location, authority] = [tags.get("l") ?? null, tags.get("a") ?? null];
  const report = new SectionReport<keyof typeof BIMI_FINDINGS>();
  if (report.isAnswered(response)) {
    const isInUse = reportBimiRecords(report, domain, records, { host, location, authority });
    if (isInUse) reportBimiPolicy(report, domain, dmarc);
  }
  const orNull = (uri: string | null) => (uri === "" ? null : uri);
  return {
    code: "bimi" as const,
    ...report.result(),
    record,
    location: orNull(location),
    authority: orNull(authority),
  };
};

/** False when no record asks for a logo. */
const reportBimiRecords = (
  report: BimiReport,
  domain: string,
  records: readonly string[],
  found: BimiRecord,
): boolean => {
  const { host, location, authority } = found;
  const [record] = records;
  if (record === undefined) {
    report.info("bimi_missing", `${domain} does not publish BIMI, so mailbox providers show no logo for it.`);
  } else if (records.length > 1) {
    report.warning("bimi_several", `${host} has ${records.length} BIMI records; receivers then use none.`, {
      observed: records.join("\n"),
      fix: `Keep one TXT record at ${host}.`,
    });
  } else if (location === null) {
    report.warning("bimi_syntax", `The BIMI record at ${host} has no l tag, so receivers ignore it.`, {
      observed: record,
      fix: `Publish it with the address of the logo, such as "v=BIMI1; l=https://${domain}/logo.svg;".`,
    });
  } else if (location === "" && (authority ?? "") === "") {
    report.info("bimi_declined", `${domain} declines BIMI: its record names no logo.`, { observed: record });
  } else {
    reportLocations(report, found);
    return true;
  }
  return false;
};

const reportLocations = (report: BimiReport, { host, location, authority }: BimiRecord) => {
  for (const [tag, uri] of Object.entries({ l: location, a: authority })) {
    if (uri === null || uri === "" || uri === "self" || isHttps(uri)) continue;
    report.warning(
      "bimi_location",
      `The BIMI record at ${host} has ${tag}=${quoteText(uri)}, which is not an https: URI; receivers ignore it.`,
      { observed: uri, fix: `Serve the file over HTTPS and write its https: address into ${tag}.` },
    );
  }
  reportFileTypes(report, { host, location, authority });
  if ((authority ?? "") !== "") return;
  report.info(
    "bimi_no_certificate",
    `The BIMI record at ${host} names no certificate in a; Gmail and Apple Mail show the logo only with one (VMC or CMC).`,
    { fix: "Obtain a mark certificate and write its https: address into a, if you want the logo to show there." },
  );
};

/** By the end of the path: the files are not fetched. A path without an extension says nothing. */
const reportFileTypes = (report: BimiReport, { host, location, authority }: BimiRecord) => {
  const wanted = [
    ["l", location, ["svg", "svgz"], "the logo must be an SVG file (profile SVG Tiny PS)"],
    ["a", authority, ["pem"], "the mark certificate (VMC or CMC) must be a PEM file with its whole chain"],
  ] as const;
  for (const [tag, uri, types, rule] of wanted) {
    const type = uri !== null && isHttps(uri) ? extensionOf(uri) : null;
    if (type === null || types.some((one) => one === type)) continue;
    report.warning("bimi_file_type", `The BIMI record at ${host} has a .${type} file in ${tag}; ${rule}.`, {
      observed: uri,
      fix: `Serve the file as .${types[0]} and write its https: address into ${tag}.`,
    });
  }
};

const extensionOf = (uri: string) => /\.([a-z0-9]{1,8})$/i.exec(new URL(uri).pathname)?.[1]?.toLowerCase() ?? null;

const isHttps = (uri: string) => /^https:\/\//i.test(uri) && URL.canParse(uri);

/** What receivers of BIMI require of the policy; nothing where the DNS did not say which one applies. */
const reportBimiPolicy = (report: BimiReport, domain: string, dmarc: CheckedDmarc) => {
  const problem = dmarc.unchecked.length > 0 ? null : policyProblem(dmarc.policy);
  if (problem === null) return;
  report.warning("bimi_policy", `BIMI of ${domain} has no effect because ${problem}.`, {
    observed: dmarc.record,
    fix: "Publish p=quarantine or p=reject for all mail (no sp=none, pct=100, no t=y) when your mail passes DMARC.",
  });
};

const policyProblem = (policy: CheckedDmarc["policy"]) => {
  if (policy === null) return "no DMARC policy applies";
  const { p, sp, pct, t } = policy;
  if (p === "none") return "the DMARC policy is p=none";
  if (sp === "none") return "the DMARC policy for subdomains is sp=none";
  if (p === "quarantine" && pct < 100) return `the DMARC policy applies to only ${pct} % of the mail`;
  return t === "y" ? "the DMARC policy is in test mode (t=y)" : null;
};
