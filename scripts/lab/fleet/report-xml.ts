import type { Reporter, Style } from "./reporters.ts";
import type { Row, Tags } from "./traffic.ts";

export interface ReportFacts {
  readonly domain: string;
  readonly reporter: Reporter;
  readonly reportId: string;
  /** Seconds since 1970. */
  readonly beginS: number;
  readonly endS: number;
  readonly tags: Tags;
  readonly rows: readonly Row[];
}

/** More rows than this are not written one by one. */
const ONE_BY_ONE_MAX = 20;

const element = (name: string, value: string | number): string => `<${name}>${value}</${name}>`;

const resultsXml = (row: Row, style: Style): string => {
  if (style.results === "none") return "<auth_results></auth_results>";
  const signatures = style.results === "spf" ? [] : row.dkim;
  const dkim = signatures.map(
    ({ domain, selector, result }) =>
      `<dkim>${element("domain", domain)}${style.hasSelectors ? element("selector", selector) : ""}${element("result", result)}</dkim>`,
  );
  const scope = style.hasScope ? element("scope", "mfrom") : "";
  const spf = `<spf>${element("domain", row.spf.domain)}${scope}${element("result", row.spf.result)}</spf>`;
  return `<auth_results>${dkim.join("")}${spf}</auth_results>`;
};

const recordXml = (row: Row, { style }: Reporter): string => {
  const override = row.passedOn === null || row.isDkimAligned ? undefined : style.overrides[row.passedOn];
  const reason =
    override === undefined ? "" : `<reason>${element("type", override[0])}${element("comment", override[1])}</reason>`;
  const disposition = override === undefined ? row.disposition : "none";
  const from = style.isUpperCase ? row.headerFrom.toUpperCase() : row.headerFrom;
  const envelopes = style.hasEnvelopes
    ? `<envelope_to>mail.example</envelope_to>${element("envelope_from", row.envelope)}`
    : "";
  const evaluated = `<policy_evaluated>${element("disposition", disposition)}${element("dkim", row.isDkimAligned ? "pass" : "fail")}${element("spf", row.isSpfAligned ? "pass" : "fail")}${reason}</policy_evaluated>`;
  const counted = `<row>${element("source_ip", row.ip)}${element("count", row.count)}${evaluated}</row>`;
  const named = `<${style.identifiers}>${envelopes}${element("header_from", from)}</${style.identifiers}>`;
  return `<record>${counted}${named}${resultsXml(row, style)}</record>`;
};

const singly = (rows: readonly Row[]): Row[] =>
  rows.flatMap((row) =>
    row.count > ONE_BY_ONE_MAX ? [row] : Array.from({ length: row.count }, (): Row => ({ ...row, count: 1 })),
  );

/** An aggregate report in the style of its reporter. */
export const reportXml = ({ domain, reporter, reportId, beginS, endS, tags, rows }: ReportFacts): string => {
  const { style, org, local, domain: at } = reporter;
  const policy = ["adkim", "aspf", "p", "sp", "t"].flatMap((tag) => {
    const value = tags[tag];
    if (tag === "t") return value === undefined ? [] : [element("testing", value)];
    return [element(tag, value ?? (tag.startsWith("a") ? "r" : (tags.p ?? "none")))];
  });
  const records = (style.isOneByOne ? singly(rows) : rows).map((row) => recordXml(row, reporter));
  const root = style.namespace === null ? "<feedback>" : `<feedback xmlns="${style.namespace}">`;
  const parts = [
    `<?xml version="1.0" encoding="UTF-8" ?>`,
    root,
    ...(style.hasVersion ? [element("version", "1.0")] : []),
    `<report_metadata>${element("org_name", org)}${element("email", `${local}@${at}`)}${element("report_id", reportId)}<date_range>${element("begin", beginS)}${element("end", endS)}</date_range></report_metadata>`,
    `<policy_published>${element("domain", domain)}${policy.join("")}${element("pct", 100)}</policy_published>`,
    ...records,
    "</feedback>",
  ];
  const text = parts.join(style.isIndented ? "\n" : "");
  return `${text}\n`;
};
