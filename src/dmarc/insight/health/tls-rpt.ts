import { type HealthDns, quoteText, SectionReport, readTags } from "./section-report.ts";
import type { TlsRptSection } from "./health-schema.ts";

const EXAMPLE = '"v=TLSRPTv1; rua=mailto:tls@example.com"';

/** Checks the TLS reporting record of a domain (RFC 8460 §3). */
export const checkTlsRpt = async (dns: HealthDns, domain: string): Promise<TlsRptSection> => {
  const host = `_smtp._tls.${domain}`;
  const response = await dns.resolve(host, "TXT");
  const records = response.records.filter((text) => /^v=TLSRPTv1\s*(?:;|$)/.test(text));
  const record = records.length === 1 ? (records[0] ?? null) : null;
  const rua = record === null ? [] : destinationsOf(record);
  const report = new SectionReport();
  if (report.isAnswered(response)) reportRecords(report, host, records, rua);
  return { code: "tls_rpt", ...report.result(), record, rua };
};

const destinationsOf = (record: string): string[] =>
  (readTags(record).get("rua") ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");

const reportRecords = (
  report: SectionReport,
  host: string,
  records: readonly string[],
  rua: readonly string[],
): void => {
  const [record] = records;
  if (record === undefined) {
    report.info({
      code: "tls_rpt_missing",
      message: `${host} has no TLS reporting record, so nobody reports failed TLS connections to your mail servers.`,
      fix: `Publish a TXT record at ${host} with the address that the reports go to, such as ${EXAMPLE}.`,
    });
    return;
  }
  if (records.length > 1) {
    report.warning({
      code: "tls_rpt_several",
      message: `${host} has ${records.length} TLS reporting records; senders then use none.`,
      observed: records.join("\n"),
      fix: `Keep one TXT record at ${host}.`,
    });
    return;
  }
  const bad = rua.find((uri) => !/^(?:mailto:[^@\s]+@[^@\s]+|https:\/\/[^\s/]+.*)$/i.test(uri));
  if (rua.length > 0 && bad === undefined) return;
  const problem =
    bad === undefined
      ? "names no destination in rua"
      : `names ${quoteText(bad)} in rua, which is no mailto: or https: URI`;
  report.warning({
    code: "tls_rpt_syntax",
    message: `The TLS reporting record at ${host} ${problem}.`,
    observed: record,
    fix: `Publish the record with a destination, such as ${EXAMPLE}.`,
  });
};
