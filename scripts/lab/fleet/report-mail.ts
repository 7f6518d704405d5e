import { createHash, createSign, generateKeyPairSync } from "node:crypto";
import { crc32, deflateRawSync, gzipSync } from "node:zlib";
import type { FleetDns } from "./dns.ts";
import { ALL_REPORTERS, type Reporter, type Style } from "./reporters.ts";
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
const reportXml = ({ domain, reporter, reportId, beginS, endS, tags, rows }: ReportFacts): string => {
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

/** A report mail with who hands it in. */
export interface ReportMail {
  readonly bytes: Buffer;
  readonly client: string;
  readonly helo: string;
  readonly mailFrom: string;
}

/** Signs mail as reporters do. */
export interface Signer {
  /** The text of the key's record. */
  readonly record: string;
  sign(headers: readonly (readonly [string, string])[], body: string, domain: string, timeS: number): string;
}

const SELECTOR = "dr2026";

export const createSigner = (): Signer => {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const der = publicKey.export({ type: "spki", format: "der" });
  return {
    record: `v=DKIM1; k=rsa; p=${der.toString("base64")}`,
    sign(headers, body, domain, timeS) {
      const bodyHash = createHash("sha256").update(body).digest("base64");
      const names = headers.map(([name]) => name.toLowerCase()).join(":");
      const unsigned = `v=1; a=rsa-sha256; c=relaxed/simple; d=${domain}; s=${SELECTOR}; t=${timeS}; h=${names}; bh=${bodyHash}; b=`;
      const lines = [...headers, ["dkim-signature", unsigned] as const].map(
        ([name, value]) => `${name.toLowerCase()}:${value.replace(/\s+/g, " ").trim()}`,
      );
      const signature = createSign("sha256").update(lines.join("\r\n")).sign(privateKey, "base64");
      return `${unsigned}${signature}`;
    },
  };
};

const REPORT_POLICY = "v=DMARC1; p=reject";

/** Publishes what reporters need for their mail to be authenticated. */
export const publishReporters = (dns: FleetDns, { record }: Signer): void => {
  for (const { domain, ip, proof } of ALL_REPORTERS) {
    dns.addAddress(ip, `out-${ip.replaceAll(".", "-")}.${domain}`);
    if (proof === "nothing") continue;
    dns.set(`_dmarc.${domain}`, { TXT: [REPORT_POLICY] });
    dns.set(domain, { A: [ip], TXT: [`v=spf1 ip4:${ip} -all`] });
    if (proof === "dkim") dns.set(`${SELECTOR}._domainkey.${domain}`, { TXT: [record] });
  }
};

/** Publishes a key for somebody who signs with a domain of his own. */
export const publishSigner = (dns: FleetDns, { record }: Signer, domain: string): void => {
  dns.set(`_dmarc.${domain}`, { TXT: [REPORT_POLICY] });
  dns.set(domain, { A: ["45.88.90.10"], TXT: ["v=spf1 ip4:45.88.90.10 -all"] });
  dns.set(`${SELECTOR}._domainkey.${domain}`, { TXT: [record] });
};

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END_HEADER = 0x06054b50;
const ZIP_VERSION = 20;
const DEFLATED = 8;

/** A zip with one file. */
const zipOf = (name: string, bytes: Buffer): Buffer => {
  const packed = deflateRawSync(bytes);
  const file = Buffer.from(name);
  const middle = Buffer.alloc(26);
  middle.writeUInt16LE(ZIP_VERSION, 0);
  middle.writeUInt16LE(DEFLATED, 4);
  middle.writeUInt32LE(crc32(bytes), 10);
  middle.writeUInt32LE(packed.length, 14);
  middle.writeUInt32LE(bytes.length, 18);
  middle.writeUInt16LE(file.length, 22);
  const magic = (number: number): Buffer => {
    const four = Buffer.alloc(4);
    four.writeUInt32LE(number);
    return four;
  };
  const local = Buffer.concat([magic(LOCAL_HEADER), middle, file, packed]);
  const made = Buffer.alloc(2);
  made.writeUInt16LE(ZIP_VERSION);
  const central = Buffer.concat([magic(CENTRAL_HEADER), made, middle, Buffer.alloc(14), file]);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(1, 4);
  end.writeUInt16LE(1, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(local.length, 12);
  return Buffer.concat([local, central, magic(END_HEADER), end]);
};

const pack = (xml: string, name: string, { style }: Reporter): { bytes: Buffer; file: string; type: string } => {
  const bytes = Buffer.from(xml);
  if (style.packing === "zip")
    return { bytes: zipOf(`${name}.xml`, bytes), file: `${name}.zip`, type: "application/zip" };
  if (style.packing === "plain") return { bytes, file: `${name}.xml`, type: "text/xml" };
  const packed = gzipSync(bytes);
  const whole = style.packing === "gz" ? packed : Buffer.concat([packed, Buffer.from("\r\n")]);
  return { bytes: whole, file: `${name}.xml.gz`, type: "application/gzip" };
};

export interface Sending {
  readonly facts: ReportFacts;
  readonly signer: Signer;
  readonly to: string;
  readonly atMs: number;
  /** Another sender than the reporter: of a forged report. */
  readonly as?: { readonly domain: string; readonly proof: "dkim" | "nothing"; readonly ip: string };
}

const BOUNDARY = "=-report-part";
const LINE = /.{1,76}/g;

/** The mail that brings a report. */
export const reportMail = ({ facts, signer, to, atMs, as }: Sending): ReportMail => {
  const { reporter, domain, reportId, beginS, endS } = facts;
  const sender = as ?? { domain: reporter.domain, proof: reporter.proof, ip: reporter.ip };
  const name = `${reporter.domain}!${domain}!${beginS}!${endS}`;
  const { bytes, file, type } = pack(reportXml(facts), name, reporter);
  const body = [
    `--${BOUNDARY}`,
    "Content-Type: text/plain; charset=us-ascii",
    "",
    `This is an aggregate report about ${domain}.`,
    `--${BOUNDARY}`,
    `Content-Type: ${type}; name="${file}"`,
    `Content-Disposition: attachment; filename="${file}"`,
    "Content-Transfer-Encoding: base64",
    "",
    ...(bytes.toString("base64").match(LINE) ?? []),
    `--${BOUNDARY}--`,
    "",
  ].join("\r\n");
  const from = `${reporter.local}@${sender.domain}`;
  const headers: (readonly [string, string])[] = [
    ["From", `${reporter.org} <${from}>`],
    ["To", to],
    ["Subject", `Report Domain: ${domain} Submitter: ${reporter.domain} Report-ID: <${reportId}>`],
    ["Date", new Date(atMs).toUTCString().replace("GMT", "+0000")],
    ["Message-ID", `<${reportId.replace(/[^\w.-]/g, "")}.${atMs}@${sender.domain}>`],
    ["MIME-Version", "1.0"],
    ["Content-Type", `multipart/mixed; boundary="${BOUNDARY}"`],
  ];
  const signature =
    sender.proof === "dkim"
      ? [`DKIM-Signature: ${signer.sign(headers, body, sender.domain, Math.floor(atMs / 1000) - 60)}`]
      : [];
  const head = [...signature, ...headers.map(([header, value]) => `${header}: ${value}`)];
  return {
    bytes: Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`),
    client: sender.ip,
    helo: `out.${sender.domain}`,
    mailFrom: from,
  };
};
