import { type PolicyDiscovery, discoverPolicy } from "../record/discovery.ts";
import { dmarcRecordsIn, recordHost } from "../record/record-published.ts";
import type { ValidRecord } from "../record/record.ts";
import type { RecordWarning, RecordWarningCode } from "../record/record-warning.ts";
import { findingOf, type HealthFinding, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { DmarcSection } from "./health-sections.ts";

/** What breaks a policy or its reports; everything else in a record is a matter of style. */
const FAULTS: ReadonlySet<RecordWarningCode> = new Set(["p_invalid", "p_missing", "policy_void"]);
const NOTES: ReadonlySet<RecordWarningCode> = new Set([
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
  const failure = failureOf(discovery);
  const unchecked = failure === null ? [] : [failure];
  const findings = failure === null ? findingsOf(domain, discovery) : [];
  const status = statusOfFindings(findings, unchecked);
  const base = { code: "dmarc", status, findings, unchecked } as const;
  if (discovery.kind !== "own" && discovery.kind !== "inherited") {
    return { ...base, record: null, inherited_from: null, policy: null };
  }
  const { record, policy } = discovery;
  const { p, sp, np, t } = policy;
  return {
    ...base,
    record: record.text,
    inherited_from: policy.inheritedFrom,
    policy: { p, sp, np, pct: record.values.pct, t },
  };
};

const failureOf = (discovery: PolicyDiscovery): string | null => {
  if (discovery.kind !== "indefinite") return null;
  return uncheckedSentence({ name: discovery.host, type: "TXT", outcome: discovery.outcome });
};

const findingsOf = (domain: string, discovery: PolicyDiscovery): readonly HealthFinding[] => {
  const host = recordHost(domain);
  const { published } = discovery;
  const own = published.kind === "failure" ? [] : dmarcRecordsIn(published.texts);
  if (own.length > 1) {
    return [
      findingOf("error", "dmarc_several", `${host} has ${own.length} DMARC records; receivers then use none.`, {
        observed: own.map(({ text }) => text).join("\n"),
        fix: `Keep one TXT record at ${host}.`,
      }),
    ];
  }
  if (discovery.kind === "inherited") {
    const { from, record, policy } = discovery;
    return [
      findingOf(
        "info",
        "dmarc_inherited",
        `${domain} has no DMARC record of its own; the record of ${from} applies with p=${policy.p}.`,
        {
          observed: record.text,
        },
      ),
      ...textFindings(recordHost(from), record),
    ];
  }
  if (discovery.kind === "own") {
    return [...textFindings(host, discovery.record), ...policyFindings(host, discovery.record)];
  }
  const value = "v=DMARC1; p=none";
  return [
    findingOf(
      "error",
      "dmarc_missing",
      `${host} has no DMARC record, so receivers apply no policy and send no reports.`,
      {
        fix: `Publish a TXT record at ${host}, with an address in rua that the reports go to.`,
        record: { host, value },
      },
    ),
  ];
};

const policyFindings = (host: string, { text, values }: ValidRecord): readonly HealthFinding[] => {
  const findings: HealthFinding[] = [];
  const { p, pct, t } = values;
  if (p === "none") {
    findings.push(
      findingOf(
        "info",
        "dmarc_policy_none",
        `The DMARC record at ${host} has p=none: receivers report, but deliver forged mail.`,
        {
          observed: text,
          fix: "Move to p=quarantine, then p=reject, when the mail of your own senders passes.",
        },
      ),
    );
  }
  if (p !== "none" && pct < 100) {
    findings.push(
      findingOf(
        "warning",
        "dmarc_partial",
        `The DMARC record at ${host} has pct=${pct}, so older receivers apply p=${p} to a part of the mail only.`,
        {
          observed: text,
          fix: `Remove pct=${pct}; to rehearse a policy use t=y.`,
        },
      ),
    );
  }
  if (t === "y") {
    findings.push(
      findingOf(
        "info",
        "dmarc_test_mode",
        `The DMARC record at ${host} is in test mode (t=y): receivers apply the policy one step softer.`,
        {
          observed: text,
          fix: "Remove t=y when the reports show that your own mail passes.",
        },
      ),
    );
  }
  return findings;
};

const textFindings = (host: string, { text, warnings }: ValidRecord): readonly HealthFinding[] =>
  warnings.map(({ code, message }: RecordWarning) => {
    const said = `The DMARC record at ${host}: ${message}`;
    if (FAULTS.has(code))
      return findingOf("error", "dmarc_policy_invalid", said, {
        observed: text,
        fix: "Set p (and sp, np where present) to none, quarantine or reject.",
      });
    if (code === "rua_missing")
      return findingOf("warning", "dmarc_not_reported", said, {
        observed: text,
        fix: "Add rua=mailto: with the address that aggregate reports go to.",
      });
    const severity = NOTES.has(code) ? "info" : "warning";
    return findingOf(severity, "dmarc_syntax", said, { observed: text, fix: "Correct the text of the record." });
  });
