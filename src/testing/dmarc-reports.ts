import { gzipSync } from "node:zlib";

/** One record of a sample report. By default an ordinary, aligned one. */
export interface SampleRow {
  readonly ip?: string;
  readonly count?: number;
  readonly disposition?: string;
  /** The aligned results. */
  readonly dkim?: "pass" | "fail";
  readonly spf?: "pass" | "fail";
  readonly headerFrom?: string;
  /** `domain result [selector]`; none when empty. */
  readonly dkimResults?: readonly string[];
  /** `domain result`; none when empty. */
  readonly spfResults?: readonly string[];
  /** `type [comment]`. */
  readonly reasons?: readonly string[];
}

export interface SampleReport {
  readonly domain?: string;
  readonly org?: string;
  readonly email?: string;
  readonly reportId?: string;
  /** Seconds since 1970. */
  readonly begin?: number;
  readonly end?: number;
  readonly policy?: string;
  readonly rows?: readonly SampleRow[];
}

/** 2026-01-01: the default day of a sample report. */
export const SAMPLE_DAY_S = 1_767_225_600;
const DAY_S = 86_400;

const words = (text: string): readonly [string, string, string] => {
  const [first = "", second = "", ...rest] = text.split(" ");
  return [first, second, rest.join(" ")];
};

const rowXml = (row: SampleRow, domain: string): string => {
  const { ip = "192.0.2.1", count = 1, disposition = "none", dkim = "pass", spf = "pass", headerFrom = domain } = row;
  const { dkimResults = [`${domain} ${dkim} s1`], spfResults = [`${domain} ${spf}`], reasons = [] } = row;
  const reasonXml = reasons.map((text) => {
    const at = text.indexOf(" ");
    const [type, comment] = at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
    return `<reason><type>${type}</type><comment>${comment}</comment></reason>`;
  });
  const dkimXml = dkimResults.map((text) => {
    const [name, result, selector] = words(text);
    return `<dkim><domain>${name}</domain><selector>${selector}</selector><result>${result}</result></dkim>`;
  });
  const spfXml = spfResults.map((text) => {
    const [name, result] = words(text);
    return `<spf><domain>${name}</domain><scope>mfrom</scope><result>${result}</result></spf>`;
  });
  return `<record><row><source_ip>${ip}</source_ip><count>${count}</count><policy_evaluated><disposition>${disposition}</disposition><dkim>${dkim}</dkim><spf>${spf}</spf>${reasonXml.join("")}</policy_evaluated></row><identifiers><header_from>${headerFrom}</header_from></identifiers><auth_results>${dkimXml.join("")}${spfXml.join("")}</auth_results></record>`;
};

/** The XML of an aggregate report. */
export const sampleReportXml = (report: SampleReport = {}): string => {
  const { domain = "example.com", org = "receiver.example", email = "dmarc@receiver.example" } = report;
  const { reportId = "1", begin = SAMPLE_DAY_S, end = begin + DAY_S - 1, rows = [{}] } = report;
  const { policy = "<adkim>r</adkim><aspf>r</aspf><p>none</p><sp>none</sp><pct>100</pct>" } = report;
  return `<?xml version="1.0" encoding="UTF-8"?>
<feedback><version>1.0</version><report_metadata><org_name>${org}</org_name><email>${email}</email><report_id>${reportId}</report_id><date_range><begin>${begin}</begin><end>${end}</end></date_range></report_metadata><policy_published><domain>${domain}</domain>${policy}</policy_published>${rows.map((row) => rowXml(row, domain)).join("\n")}</feedback>
`;
};

/** A mail with a report as a gzip file, as most reporters send it. */
export const sampleReportMail = (report: SampleReport = {}, to = "token@reports.example"): Buffer => {
  const { domain = "example.com", org = "receiver.example", email = "dmarc@receiver.example", reportId = "1" } = report;
  const lines = gzipSync(sampleReportXml(report))
    .toString("base64")
    .match(/.{1,76}/g);
  return Buffer.from(
    [
      `From: ${org} <${email}>`,
      `To: ${to}`,
      `Subject: Report Domain: ${domain} Submitter: ${org} Report-ID: <${reportId}>`,
      `Message-ID: <${reportId}@${org}>`,
      "MIME-Version: 1.0",
      `Content-Type: application/gzip; name="${org}!${domain}!1!2.xml.gz"`,
      `Content-Disposition: attachment; filename="${org}!${domain}!1!2.xml.gz"`,
      "Content-Transfer-Encoding: base64",
      "",
      ...(lines ?? []),
      "",
    ].join("\r\n"),
  );
};
