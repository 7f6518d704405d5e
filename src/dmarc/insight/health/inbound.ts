import { type HealthDns, SectionReport, quoteText, readTags } from "./section-report.ts";
import type { Getter } from "../../../foundation/net/fetch-url.ts";
import type { CheckedMx } from "./mx.ts";
import {
  coversMxHost,
  isPolicyId,
  type MtaStsPolicy,
  parseMtaStsPolicy,
  policyHostOf,
  policyIdIn,
  policyIdOf,
  policyRecordHostOf,
  policyRecordOf,
  policyRecordsIn,
} from "../../records/sts/policy-text.ts";

const DOWNGRADE =
  "Without an enforced policy, somebody on the way can make senders deliver mail to you unencrypted or to another server.";
const BLIND = "Without TLS reports, you do not notice when senders cannot deliver to you over TLS.";

/** The findings about MTA-STS and TLS reporting, with why each matters. */
export const INBOUND_FINDINGS = {
  mta_sts_missing: DOWNGRADE,
  mta_sts_not_needed: "There is no mail to protect on its way.",
  mta_sts_several: DOWNGRADE,
  mta_sts_syntax: DOWNGRADE,
  mta_sts_host_missing: DOWNGRADE,
  mta_sts_certificate: DOWNGRADE,
  mta_sts_response: DOWNGRADE,
  mta_sts_content_type: DOWNGRADE,
  mta_sts_policy: DOWNGRADE,
  mta_sts_mode: DOWNGRADE,
  mta_sts_mx: "Under an enforced policy, senders do not deliver to mail hosts that the policy does not name.",
  mta_sts_id: "Senders fetch the policy again only when the id in the TXT record changes (RFC 8461 §3.1).",
  mta_sts_not_served_here: "Senders use the policy that they find at the host, not the one of this service.",
  mta_sts_max_age: "Senders forget the policy before the next mail, and are unprotected again.",
  tls_rpt_missing: BLIND,
  tls_rpt_several: BLIND,
  tls_rpt_syntax: BLIND,
};

type InboundReport = SectionReport<keyof typeof INBOUND_FINDINGS>;

const EXAMPLE = '"v=TLSRPTv1; rua=mailto:tls@example.com"';

/** Checks the TLS reporting record of a domain (RFC 8460 §3). */
export const checkTlsRpt = async (dns: HealthDns, domain: string) => {
  const host = `_smtp._tls.${domain}`;
  const response = await dns.resolve(host, "TXT");
  const records = response.records.filter((text) => /^v=TLSRPTv1\s*(?:;|$)/.test(text));
  const record = records.length === 1 ? (records[0] ?? null) : null;
  const rua = record === null ? [] : destinationsOf(record);
  const report = new SectionReport<keyof typeof INBOUND_FINDINGS>();
  if (report.isAnswered(response)) reportRecords(report, host, records, rua);
  return { code: "tls_rpt" as const, ...report.result(), record, rua };
};

const destinationsOf = (record: string) =>
  (readTags(record).get("rua") ?? "")
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");

const reportRecords = (report: InboundReport, host: string, records: readonly string[], rua: readonly string[]) => {
  const [record] = records;
  if (record === undefined) {
    report.info(
      "tls_rpt_missing",
      `${host} has no TLS reporting record, so nobody reports failed TLS connections to your mail servers.`,
      { fix: `Publish a TXT record at ${host} with the address that the reports go to, such as ${EXAMPLE}.` },
    );
    return;
  }
  if (records.length > 1) {
    report.warning("tls_rpt_several", `${host} has ${records.length} TLS reporting records; senders then use none.`, {
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
  report.warning("tls_rpt_syntax", `The TLS reporting record at ${host} ${problem}.`, {
    observed: record,
    fix: `Publish the record with a destination, such as ${EXAMPLE}.`,
  });
};

interface MtaStsOptions {
  readonly dns: HealthDns;
  readonly get: Getter;
  readonly signal: AbortSignal;
  /** The text of the policy that this service serves for the domain; absent or null for none. */
  readonly hosted?: string | null;
}

const DAY_S = 86_400;
const POLICY_BYTES_MAX = "64 KiB";
const RECORD = policyRecordOf("1");

/**
 * Checks MTA-STS (RFC 8461): the record, the policy file over HTTPS, and whether its patterns cover the MX hosts. The file is
 * fetched from public addresses only, without redirects (§3.3). A failed connection is unknown: this machine may not be allowed to
 * connect. An invalid certificate, a status other than 200 and an invalid policy are findings, because senders ignore them.
 */
export const checkMtaSts = async (options: MtaStsOptions, domain: string, mx: CheckedMx) => {
  const host = policyRecordHostOf(domain);
  const { hosted = null } = options;
  const report = new SectionReport<keyof typeof INBOUND_FINDINGS>();
  const response = await options.dns.resolve(host, "TXT");
  const records = policyRecordsIn(response.records);
  const [only] = records;
  const record = records.length === 1 && only !== undefined ? only : null;
  let policy: MtaStsPolicy | null = null;
  if (record !== null) {
    reportRecord(report, host, record);
    policy = await fetchPolicy(report, options, domain);
    if (policy !== null) reportPolicy(report, domain, policy, mx);
    if (hosted !== null) reportHosted(report, domain, { hosted, record, policy });
  } else if (report.isAnswered(response)) reportNoRecord(report, domain, { records, mx, hosted });
  return {
    code: "mta_sts" as const,
    ...report.result(),
    record,
    policy: policy === null ? null : { mode: policy.mode, max_age_s: policy.maxAgeS, mx: [...policy.mx] },
  };
};

interface HostedFacts {
  readonly hosted: string;
  readonly record: string;
  /** What is served at the host; null while unknown or invalid. */
  readonly policy: MtaStsPolicy | null;
}

/** Compares the record and the policy as seen from outside with those of this service. */
const reportHosted = (report: InboundReport, domain: string, { hosted, record, policy }: HostedFacts) => {
  const own = parseMtaStsPolicy(hosted);
  const [host, id] = [policyRecordHostOf(domain), policyIdOf(hosted)];
  const published = policyIdIn([record]);
  if (published !== id) {
    report.add(
      own.mode === "enforce" ? "error" : "warning",
      "mta_sts_id",
      `${host} has id=${quoteText(published)}, but the policy that this service serves has id="${id}", so senders may keep an old policy.`,
      {
        observed: record,
        fix: "Publish the record with the id of the policy.",
        record: { host, value: policyRecordOf(id) },
      },
    );
  }
  const hosts = (of: MtaStsPolicy) => of.mx.toSorted().join(", ");
  if (policy === null || (policy.mode === own.mode && hosts(policy) === hosts(own))) return;
  report.warning(
    "mta_sts_not_served_here",
    `${policyHostOf(domain)} serves another policy than this service has for ${domain}.`,
    {
      observed: `mode: ${policy.mode ?? "none"}; mx: ${hosts(policy)}`,
      fix: `Let ${policyHostOf(domain)} point to this service, or stop hosting the policy here.`,
    },
  );
};

interface NoRecordFacts extends Pick<MtaStsOptions, "hosted"> {
  readonly records: readonly string[];
  readonly mx: CheckedMx;
}

const reportNoRecord = (report: InboundReport, domain: string, { records, mx, hosted = null }: NoRecordFacts) => {
  const host = policyRecordHostOf(domain);
  if (records.length > 1) {
    report.error("mta_sts_several", `${host} has ${records.length} MTA-STS records; senders then use none.`, {
      observed: records.join("\n"),
      fix: `Keep one TXT record at ${host}.`,
    });
    return;
  }
  if (mx.null_mx) {
    report.info("mta_sts_not_needed", `${domain} receives no mail (null MX), so it needs no MTA-STS.`);
    return;
  }
  if (hosted !== null) {
    const problem = `${host} has no MTA-STS record, so senders do not look for the policy that this service serves.`;
    const record = { host, value: policyRecordOf(policyIdOf(hosted)) };
    report.warning("mta_sts_missing", problem, { fix: `Publish the TXT record at ${host}.`, record });
    return;
  }
  report.info(
    "mta_sts_missing",
    `${domain} does not publish MTA-STS, so mail to it can be downgraded to unencrypted SMTP.`,
    {
      fix: `Serve a policy with "mode: testing" at https://mta-sts.${domain}/.well-known/mta-sts.txt and publish the TXT record.`,
      record: { host, value: RECORD },
    },
  );
};

const reportRecord = (report: InboundReport, host: string, record: string) => {
  const id = readTags(record).get("id") ?? "";
  if (isPolicyId(id)) return;
  report.error(
    "mta_sts_syntax",
    `${host} has id=${quoteText(id)}; senders ignore the record unless id is 1 to 32 letters and digits.`,
    {
      observed: record,
      fix: "Publish the record with a valid id, and a new one at each change of the policy.",
      record: { host, value: RECORD },
    },
  );
};

/** The policy file; null when senders would ignore it or it could not be fetched, which the report then says. */
const fetchPolicy = async (
  report: InboundReport,
  { dns, get, signal }: MtaStsOptions,
  domain: string,
): Promise<MtaStsPolicy | null> => {
  const host = policyHostOf(domain);
  const url = `https://${host}/.well-known/mta-sts.txt`;
  const [a, aaaa] = await Promise.all([dns.resolve(host, "A"), dns.resolve(host, "AAAA")]);
  if (a.records.length + aaaa.records.length === 0) {
    if (report.isAnswered(a) && report.isAnswered(aaaa)) {
      report.error("mta_sts_host_missing", `${host} has no address, so senders find no MTA-STS policy.`, {
        fix: `Publish the address of a web server at ${host} that serves the policy, or remove the TXT record at _mta-sts.${domain}.`,
      });
    }
    return null;
  }
  const fetched = await get({ url, headers: { accept: "text/plain" }, signal });
  if (!fetched.ok) {
    const { kind, problem } = fetched.error;
    if (kind === "certificate") {
      report.error(
        "mta_sts_certificate",
        `The certificate of ${host} is not valid, so senders ignore the policy: ${problem}`,
        {
          observed: problem,
          fix: `Install a certificate for ${host} from a public certificate authority, with its whole chain.`,
        },
      );
    } else report.leaveUnchecked(`Could not be checked: ${url}: ${problem}`);
    return null;
  }
  const { status, body, isWhole, contentType } = fetched.value;
  if (status !== 200 || !isWhole) {
    const problem =
      status === 200
        ? `The policy at ${url} is longer than ${POLICY_BYTES_MAX} or incomplete, so senders ignore it.`
        : `${url} returns HTTP status ${status}; senders accept only 200 and follow no redirects.`;
    report.error("mta_sts_response", problem, {
      observed: status === 200 ? null : String(status),
      fix: status === 200 ? `Serve a policy of a few lines at ${url}.` : `Serve the policy at ${url} with status 200.`,
    });
    return null;
  }
  if (contentType !== "text/plain") {
    report.warning(
      "mta_sts_content_type",
      `${url} is served as ${contentType ?? "no content type"}; RFC 8461 requires text/plain, and some senders ignore anything else.`,
      { observed: contentType, fix: "Serve the policy with the header Content-Type: text/plain." },
    );
  }
  return parseMtaStsPolicy(body);
};

const reportPolicy = (report: InboundReport, domain: string, policy: MtaStsPolicy, mx: CheckedMx) => {
  if (policy.faults.length > 0) {
    report.error(
      "mta_sts_policy",
      `The MTA-STS policy of ${domain} is invalid, so senders ignore it: ${policy.faults.join(" ")}`,
      { observed: policy.faults.join(" "), fix: "Correct the policy file, and change the id in the TXT record." },
    );
    return;
  }
  const { mode, maxAgeS } = policy;
  if (mode === "testing" || mode === "none") {
    const effect = mode === "testing" ? "senders report failures but deliver without TLS" : "senders ignore it";
    report.info("mta_sts_mode", `The MTA-STS policy of ${domain} has mode: ${mode}, so ${effect}.`, {
      observed: mode,
      fix: mode === "testing" ? "Change it to mode: enforce when TLS reports show no failures." : null,
    });
  }
  if (mode === "none") return;
  if (maxAgeS !== null && maxAgeS < DAY_S) {
    report.warning(
      "mta_sts_max_age",
      `The MTA-STS policy of ${domain} has max_age: ${maxAgeS}, less than a day, so it protects little.`,
      { observed: String(maxAgeS), fix: "Set max_age to some weeks, such as 1209600." },
    );
  }
  reportUncovered(report, domain, policy, mx);
};

const reportUncovered = (
  report: InboundReport,
  domain: string,
  { mode, mx: patterns }: MtaStsPolicy,
  { hosts }: CheckedMx,
) => {
  const uncovered = hosts
    .map(({ exchange }) => exchange)
    .filter((exchange) => exchange !== "." && !patterns.some((pattern) => coversMxHost(pattern, exchange)));
  if (uncovered.length === 0) return;
  const names = uncovered.join(", ");
  const isEnforced = mode === "enforce";
  const effect = isEnforced
    ? "senders refuse to deliver there"
    : "senders would refuse to deliver there in enforce mode";
  report.add(
    isEnforced ? "error" : "warning",
    "mta_sts_mx",
    `The MTA-STS policy of ${domain} does not cover the MX hosts ${names}; ${effect}.`,
    {
      observed: names,
      fix: `Add ${uncovered.map((exchange) => `"mx: ${exchange}"`).join(", ")} to the policy, and change the id in the TXT record.`,
    },
  );
};
