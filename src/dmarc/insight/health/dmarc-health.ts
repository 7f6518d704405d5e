import { discoverPolicy, type PolicyDiscovery } from "../../records/record/discovery.ts";
import { dmarcRecordsIn, recordHost, type ValidRecord } from "../../records/record/record.ts";
import type { RecordWarningCode } from "../../records/record/record-values.ts";
import { type HealthDns, SectionReport } from "./section-report.ts";
import type { DmarcSection } from "./health-schema.ts";

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
export const checkDmarcRecord = async (dns: HealthDns, domain: string): Promise<DmarcSection> => {
  const discovery = await discoverPolicy(dns, domain);
  const report = new SectionReport();
  const isAnswered =
    discovery.kind !== "indefinite" ||
    report.isAnswered({ name: discovery.host, type: "TXT", outcome: discovery.outcome });
  if (isAnswered) reportDiscovery(report, domain, discovery);
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

const reportDiscovery = (report: SectionReport, domain: string, discovery: PolicyDiscovery): void => {
  const host = recordHost(domain);
  const { published } = discovery;
  const own = published.kind === "failure" ? [] : dmarcRecordsIn(published.texts);
  if (own.length > 1) {
    report.error({
      code: "dmarc_several",
      message: `${host} has ${own.length} DMARC records; receivers then use none.`,
      observed: own.map(({ text }) => text).join("\n"),
      fix: `Keep one TXT record at ${host}.`,
    });
    return;
  }
  if (discovery.kind === "inherited") {
    const { from, record, policy } = discovery;
    report.info({
      code: "dmarc_inherited",
      message: `${domain} has no DMARC record of its own; the record of ${from} applies with p=${policy.p}.`,
      observed: record.text,
    });
    reportText(report, recordHost(from), record);
    return;
  }
  if (discovery.kind === "own") {
    reportText(report, host, discovery.record);
    reportPolicy(report, host, discovery.record);
    return;
  }
  report.error({
    code: "dmarc_missing",
    message: `${host} has no DMARC record, so receivers apply no policy and send no reports.`,
    fix: `Publish a TXT record at ${host}, with an address in rua that the reports go to.`,
    record: { host, value: "v=DMARC1; p=none" },
  });
};

const reportPolicy = (report: SectionReport, host: string, { text, values }: ValidRecord): void => {
  const { p, pct, t } = values;
  if (p === "none") {
    report.info({
      code: "dmarc_policy_none",
      message: `The DMARC record at ${host} has p=none: receivers report, but deliver forged mail.`,
      observed: text,
      fix: "Move to p=quarantine, then p=reject, when the mail of your own senders passes.",
    });
  }
  if (p !== "none" && pct < 100) {
    report.warning({
      code: "dmarc_partial",
      message: `The DMARC record at ${host} has pct=${pct}, so older receivers apply p=${p} to only a part of the mail.`,
      observed: text,
      fix: `Remove pct=${pct}; to test a policy use t=y.`,
    });
  }
  if (t === "y") {
    report.info({
      code: "dmarc_test_mode",
      message: `The DMARC record at ${host} is in test mode (t=y): receivers apply the policy one step softer.`,
      observed: text,
      fix: "Remove t=y when the reports show that your own mail passes.",
    });
  }
};

const reportText = (report: SectionReport, host: string, { text: observed, warnings }: ValidRecord): void => {
  for (const warning of warnings) {
    const message = `The DMARC record at ${host}: ${warning.message}`;
    if (FAULTS.has(warning.code)) {
      const fix = "Set p (and sp, np where present) to none, quarantine or reject.";
      report.error({ code: "dmarc_policy_invalid", message, observed, fix });
    } else if (warning.code === "rua_missing") {
      const fix = "Add rua=mailto: with the address that aggregate reports go to.";
      report.warning({ code: "dmarc_not_reported", message, observed, fix });
    } else {
      const finding = { code: "dmarc_syntax", message, observed, fix: "Correct the text of the record." } as const;
      if (STYLE.has(warning.code)) report.info(finding);
      else report.warning(finding);
    }
  }
};
