import type { Getter } from "../../net/fetch.ts";
import { findingOf, type HealthFinding, quoteText, statusOfFindings } from "./health-finding.ts";
import { type HealthDns, uncheckedSentence } from "./health-dns.ts";
import type { MtaStsSection, MxSection } from "./health-sections.ts";
import { coversMxHost, type MtaStsPolicy, parseMtaStsPolicy } from "./mta-sts-policy.ts";
import { readTags } from "./txt-tags.ts";

export interface MtaStsDeps {
  readonly dns: HealthDns;
  readonly get: Getter;
  readonly signal: AbortSignal;
}

/** What is found about the policy file. */
interface PolicyFound {
  readonly policy: MtaStsPolicy | null;
  readonly findings: readonly HealthFinding[];
  readonly unchecked: readonly string[];
}

const DAY_S = 86_400;
const POLICY_BYTES_MAX = "64 KiB";

/**
 * Checks MTA-STS (RFC 8461): the record, the policy file over HTTPS, and whether its patterns cover the MX hosts. The file is
 * fetched from checked addresses, without redirects (§3.3). A connection that fails is unknown: this machine may not be allowed
 * to connect; an invalid certificate, a status other than 200 or an invalid policy are findings, because senders ignore them.
 */
export const checkMtaSts = async (deps: MtaStsDeps, domain: string, mx: MxSection): Promise<MtaStsSection> => {
  const host = `_mta-sts.${domain}`;
  const reply = await deps.dns.resolve(host, "TXT");
  const failure = uncheckedSentence(reply);
  if (failure !== null) return sectionOf({ record: null, policy: null, findings: [], unchecked: [failure] });
  const records = reply.records.filter((text) => /^v=STSv1\s*(?:;|$)/.test(text));
  const [record] = records;
  if (record === undefined || records.length > 1) {
    return sectionOf({
      record: null,
      policy: null,
      findings: [withoutRecord(domain, host, records, mx)],
      unchecked: [],
    });
  }
  const findings = recordFindings(host, record);
  const found = await fetchPolicy(deps, domain);
  const policy = found.policy === null ? [] : policyFindings(domain, found.policy, mx);
  return sectionOf({
    record,
    policy: found.policy,
    findings: [...findings, ...found.findings, ...policy],
    unchecked: found.unchecked,
  });
};

const sectionOf = ({
  record,
  policy,
  findings,
  unchecked,
}: PolicyFound & { record: string | null }): MtaStsSection => ({
  code: "mta_sts",
  status: statusOfFindings(findings, unchecked),
  findings,
  unchecked,
  record,
  policy: policy === null ? null : { mode: policy.mode, max_age_s: policy.maxAgeS, mx: policy.mx },
});

const withoutRecord = (domain: string, host: string, records: readonly string[], mx: MxSection): HealthFinding => {
  if (records.length > 1) {
    return findingOf(
      "error",
      "mta_sts_several",
      `${host} has ${records.length} MTA-STS records; senders then use none.`,
      {
        observed: records.join("\n"),
        fix: `Keep one TXT record at ${host}.`,
      },
    );
  }
  if (mx.null_mx) {
    return findingOf("info", "mta_sts_not_needed", `${domain} receives no mail (null MX), so it needs no MTA-STS.`);
  }
  return findingOf(
    "info",
    "mta_sts_missing",
    `${domain} does not publish MTA-STS, so mail to it can be downgraded to unencrypted SMTP.`,
    {
      fix: `Serve a policy with "mode: testing" at https://mta-sts.${domain}/.well-known/mta-sts.txt and publish the TXT record.`,
      record: { host, value: "v=STSv1; id=1;" },
    },
  );
};

const recordFindings = (host: string, record: string): readonly HealthFinding[] => {
  const id = readTags(record).get("id") ?? "";
  if (/^[A-Za-z0-9]{1,32}$/.test(id)) return [];
  return [
    findingOf(
      "error",
      "mta_sts_syntax",
      `${host} has id=${quoteText(id)}; senders ignore the record unless id is 1 to 32 letters and digits.`,
      {
        observed: record,
        fix: `Publish the record with a valid id, and a new one at each change of the policy.`,
        record: { host, value: "v=STSv1; id=1;" },
      },
    ),
  ];
};

const fetchPolicy = async ({ dns, get, signal }: MtaStsDeps, domain: string): Promise<PolicyFound> => {
  const host = `mta-sts.${domain}`;
  const url = `https://${host}/.well-known/mta-sts.txt`;
  const [a, aaaa] = await Promise.all([dns.resolve(host, "A"), dns.resolve(host, "AAAA")]);
  if (a.records.length + aaaa.records.length === 0) {
    const failure = uncheckedSentence(a) ?? uncheckedSentence(aaaa);
    if (failure !== null) return { policy: null, findings: [], unchecked: [failure] };
    const finding = findingOf(
      "error",
      "mta_sts_host_missing",
      `${host} has no address, so senders find no MTA-STS policy.`,
      {
        fix: `Publish the address of a web server at ${host} that serves the policy, or remove the TXT record at _mta-sts.${domain}.`,
      },
    );
    return { policy: null, findings: [finding], unchecked: [] };
  }
  const answered = await get({ url, headers: { accept: "text/plain" }, signal });
  if (!answered.ok) {
    const { kind, problem } = answered.error;
    if (kind !== "certificate")
      return { policy: null, findings: [], unchecked: [`Could not be checked: ${url}: ${problem}`] };
    const finding = findingOf(
      "error",
      "mta_sts_certificate",
      `The certificate of ${host} is not valid, so senders ignore the policy: ${problem}`,
      {
        observed: problem,
        fix: `Install a certificate for ${host} from a public certificate authority, with its whole chain.`,
      },
    );
    return { policy: null, findings: [finding], unchecked: [] };
  }
  const { status, body, isWhole, contentType } = answered.value;
  if (status !== 200) {
    const finding = findingOf(
      "error",
      "mta_sts_response",
      `${url} answers with the HTTP status ${status}; senders accept only 200 and follow no redirects.`,
      {
        observed: String(status),
        fix: `Serve the policy itself at ${url} with status 200.`,
      },
    );
    return { policy: null, findings: [finding], unchecked: [] };
  }
  if (!isWhole) {
    const finding = findingOf(
      "error",
      "mta_sts_response",
      `The policy at ${url} is longer than ${POLICY_BYTES_MAX} or was not sent to its end, so senders ignore it.`,
      {
        fix: `Serve a policy of a few lines at ${url}.`,
      },
    );
    return { policy: null, findings: [finding], unchecked: [] };
  }
  return { policy: parseMtaStsPolicy(body), findings: contentTypeFindings(url, contentType), unchecked: [] };
};

const contentTypeFindings = (url: string, contentType: string | null): readonly HealthFinding[] => {
  if (contentType === "text/plain") return [];
  return [
    findingOf(
      "warning",
      "mta_sts_content_type",
      `${url} is served as ${contentType ?? "no content type"}; RFC 8461 requires text/plain, and some senders ignore anything else.`,
      {
        observed: contentType,
        fix: "Serve the policy with the header Content-Type: text/plain.",
      },
    ),
  ];
};

const policyFindings = (domain: string, policy: MtaStsPolicy, mx: MxSection): readonly HealthFinding[] => {
  if (policy.faults.length > 0) {
    return [
      findingOf(
        "error",
        "mta_sts_policy",
        `The MTA-STS policy of ${domain} is invalid, so senders ignore it: ${policy.faults.join(" ")}`,
        {
          observed: policy.faults.join(" "),
          fix: "Correct the policy file, and change the id in the TXT record.",
        },
      ),
    ];
  }
  return [...modeFindings(domain, policy), ...mxFindings(domain, policy, mx)];
};

const modeFindings = (domain: string, { mode, maxAgeS }: MtaStsPolicy): readonly HealthFinding[] => {
  const findings: HealthFinding[] = [];
  if (mode === "testing" || mode === "none") {
    const what = mode === "testing" ? "senders report failures but deliver without TLS" : "senders ignore it";
    findings.push(
      findingOf("info", "mta_sts_mode", `The MTA-STS policy of ${domain} has mode: ${mode}, so ${what}.`, {
        observed: mode,
        fix: mode === "testing" ? "Change it to mode: enforce when TLS reports show no failures." : null,
      }),
    );
  }
  if (mode !== "none" && maxAgeS !== null && maxAgeS < DAY_S) {
    findings.push(
      findingOf(
        "warning",
        "mta_sts_max_age",
        `The MTA-STS policy of ${domain} has max_age: ${maxAgeS}, less than a day, so it protects little.`,
        {
          observed: String(maxAgeS),
          fix: "Set max_age to some weeks, such as 1209600.",
        },
      ),
    );
  }
  return findings;
};

const mxFindings = (
  domain: string,
  { mode, mx: patterns }: MtaStsPolicy,
  { hosts }: MxSection,
): readonly HealthFinding[] => {
  if (mode === "none") return [];
  const uncovered = hosts.filter(
    ({ exchange }) => exchange !== "." && !patterns.some((pattern) => coversMxHost(pattern, exchange)),
  );
  if (uncovered.length === 0) return [];
  const names = uncovered.map(({ exchange }) => exchange).join(", ");
  const effect =
    mode === "enforce" ? "senders refuse to deliver there" : "senders would refuse to deliver there in enforce mode";
  return [
    findingOf(
      mode === "enforce" ? "error" : "warning",
      "mta_sts_mx",
      `The MTA-STS policy of ${domain} does not cover the MX hosts ${names}; ${effect}.`,
      {
        observed: names,
        fix: `Add ${uncovered.map(({ exchange }) => `"mx: ${exchange}"`).join(", ")} to the policy, and change the id in the TXT record.`,
      },
    ),
  ];
};
