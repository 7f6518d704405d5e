import { findingOf, type HealthFinding, quoteText, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { TlsRptSection } from "./health-sections.ts";
import { readTags } from "./txt-tags.ts";

/** Checks the TLS reporting record of a domain (RFC 8460 §3). */
export const checkTlsRpt = async (dns: HealthDns, domain: string): Promise<TlsRptSection> => {
  const host = `_smtp._tls.${domain}`;
  const reply = await dns.resolve(host, "TXT");
  const failure = uncheckedSentence(reply);
  const unchecked = failure === null ? [] : [failure];
  const records = reply.records.filter((text) => /^v=TLSRPTv1\s*(?:;|$)/.test(text));
  const record = records.length === 1 ? (records[0] ?? null) : null;
  const rua = record === null ? [] : destinationsOf(record);
  const findings = failure === null ? findingsOf(host, records, rua) : [];
  return { code: "tls_rpt", status: statusOfFindings(findings, unchecked), findings, unchecked, record, rua };
};

const destinationsOf = (record: string): readonly string[] =>
  (readTags(record).get("rua") ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");

const findingsOf = (host: string, records: readonly string[], rua: readonly string[]): readonly HealthFinding[] => {
  const [record] = records;
  if (record === undefined) {
    return [
      findingOf(
        "info",
        "tls_rpt_missing",
        `${host} has no TLS reporting record, so nobody reports failed TLS connections to your mail servers.`,
        {
          fix: `Publish a TXT record at ${host} with the address that the reports go to, such as "v=TLSRPTv1; rua=mailto:tls@example.com".`,
        },
      ),
    ];
  }
  if (records.length > 1) {
    return [
      findingOf(
        "warning",
        "tls_rpt_several",
        `${host} has ${records.length} TLS reporting records; senders then use none.`,
        {
          observed: records.join("\n"),
          fix: `Keep one TXT record at ${host}.`,
        },
      ),
    ];
  }
  const bad = rua.find((uri) => !/^(?:mailto:[^@\s]+@[^@\s]+|https:\/\/[^\s/]+.*)$/i.test(uri));
  if (rua.length > 0 && bad === undefined) return [];
  const what =
    bad === undefined
      ? "names no destination in rua"
      : `names ${quoteText(bad)} in rua, which is no mailto: or https: URI`;
  return [
    findingOf("warning", "tls_rpt_syntax", `The TLS reporting record at ${host} ${what}.`, {
      observed: record,
      fix: `Publish the record with a destination, such as "v=TLSRPTv1; rua=mailto:tls@example.com".`,
    }),
  ];
};
