import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { Glob } from "bun";
import { silentLog } from "./silent-log.ts";
import records from "../../fixtures/dmarc/records.json" with { type: "json" };
import { createMailAuthentication } from "../dmarc/reports/authentication/mail-authentication.ts";
import { readSignedMail } from "../foundation/dkim/signed-mail.ts";
import { mergeRua, type RuaMerge } from "../dmarc/records/record/merge.ts";
import { readReportFile } from "../dmarc/reports/report/read-file.ts";
import { readReport } from "../dmarc/reports/report/read-report.ts";
import { parseRecord } from "../dmarc/records/record/record.ts";
import { countMessages, type Report } from "../dmarc/reports/report/report.ts";
import { ROW_ENTRIES_MAX } from "../dmarc/reports/report/report-row.ts";
import { COUNT_MAX } from "../dmarc/reports/report/report-values.ts";
import { UNPACK_LIMITS } from "../dmarc/reports/report/unpack.ts";
import { MESSAGE_LIMITS, readMessage } from "../foundation/mail/message.ts";
import type { DnsResponse, DnsResolver, DnsType } from "../foundation/net/dns.ts";
import { createTestClock } from "./clock.ts";
import { type FuzzTarget, must } from "./fuzz-target.ts";
import { createZoneResolver } from "./dns-zone.ts";

const FIXTURES = new URL("../../fixtures/dmarc/reports/", import.meta.url).pathname;
const utf8 = new TextEncoder();

const fixtures = (pattern: string): readonly Uint8Array[] =>
  [...new Glob(pattern).scanSync(FIXTURES)].sort().map((path) => readFileSync(FIXTURES + path));

const OURS = "k3y7@reports.example.net";

const mergeText = (text: string): RuaMerge => {
  const published = { kind: "texts", texts: [text] } as const;
  const merged = mergeRua({ domain: "example.com", published, ours: OURS, inherited: null });
  if (!merged.ok) throw new Error("an existing text was taken for a DNS failure");
  return merged.value;
};

const checkRecord = (input: Uint8Array): void => {
  const text = new TextDecoder().decode(input);
  const record = parseRecord(text);
  must(record.text === text, "the record's text is not the one given");
  must(record.valid || record.warnings.length > 0, "an invalid record without a word why");
  const merged = mergeText(text);
  must(merged.strings.join("") === (merged.value ?? ""), "the strings are not the value");
  must(
    merged.strings.every((string) => utf8.encode(string).length <= 255),
    "a string is too long",
  );
  if (merged.action === "conflict") return;
  must((merged.action === "create") === !record.valid, "created over a valid record, or edited an invalid one");
  const rua = parseRecord(merged.value).values?.rua ?? [];
  must(
    rua.some(({ address }) => address === OURS),
    "the merged record does not name our address",
  );
  const again = mergeText(merged.value);
  must(again.action === "none" && again.value === merged.value, "what was merged was not merged");
};

const SHORTEST_RECORD = "<record/>";

/** What must hold for every report that is counted. */
const checkCounted = (report: Report): void => {
  const { beginMs, endMs, policy, rows } = report;
  must(beginMs <= endMs, "the period is reversed");
  must(!Number.isNaN(new Date(beginMs).getTime() + new Date(endMs).getTime()), "the period is not in the calendar");
  must(isName(policy.domain), "the policy domain is no name");
  for (const { sourceIp, count, dkimResults, spfResults, reasons, ...row } of rows) {
    must(isIP(sourceIp) !== 0, "the source is no address");
    must(Number.isInteger(count) && count >= 1 && count <= COUNT_MAX, "the count is none");
    const entries = [dkimResults, spfResults, reasons].map(({ length }) => length);
    must(Math.max(...entries) <= ROW_ENTRIES_MAX, "more entries than are kept");
    must(row.headerFrom === null || isName(row.headerFrom), "header_from is no name");
  }
  must(!/\\ud[89a-f]/.test(JSON.stringify(report)), "half a character is in a text");
};

/** What `readDomain` promises: names that are no host names are kept, but nothing that could break out of a line or a tag. */
const isName = (text: string): boolean => /^[\x21-\x7e]{1,253}$/.test(text) && !/[<>()"A-Z]/.test(text);

const checkReport = async (input: Uint8Array): Promise<void> => {
  const report = await readReport(input);
  if (!report.ok) return;
  checkCounted(report.value);
  const { rows, skippedRows } = report.value;
  const records = rows.length + skippedRows.reduce((sum, skipped) => sum + skipped.rows, 0);
  must(records <= input.length / SHORTEST_RECORD.length, "more records than there is room for");
  must(countMessages(report.value) <= rows.length * COUNT_MAX, "more messages than were counted");
};

const checkFile = async (input: Uint8Array): Promise<void> => {
  const readings = await readReportFile(input, "a.xml.gz");
  must(readings.length > 0, "no reading");
  must(readings.length <= (UNPACK_LIMITS.entriesMax + 1) * MESSAGE_LIMITS.partsMax, "more readings than there may be");
  for (const { outcome, reason, report } of readings) {
    must((outcome === "stored") === (reason === null), "an outcome without a reason");
    must(outcome !== "stored" || (report?.rows.length ?? 0) > 0, "stored without a row");
    if (report !== null) checkCounted(report);
  }
};

const checkMessage = async (input: Uint8Array): Promise<void> => {
  const message = await readMessage(input);
  if (!message.ok) return;
  const { parts } = message.value;
  must(parts.length <= MESSAGE_LIMITS.partsMax, "more parts than there may be");
  must(
    parts.every(({ contentType }) => contentType === contentType.toLowerCase()),
    "a content type is not in lower case",
  );
};

const failingResolver: DnsResolver = {
  resolve: async <T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> => ({
    ...(await createZoneResolver({}).resolve(name, type)),
    outcome: "servfail",
  }),
};
const clock = createTestClock();
const authenticateWithoutDns = createMailAuthentication({ log: silentLog, resolver: failingResolver, clock });
const authenticateWithoutKeys = createMailAuthentication({ log: silentLog, resolver: createZoneResolver({}), clock });
const ENVELOPE = { client: "8.8.4.4", helo: "mx.receiver.example", mailFrom: "dmarc@receiver.example" };

const checkAuthenticity = async (input: Uint8Array): Promise<void> => {
  const split = readSignedMail(input);
  must(!split.ok || split.value.header.length + split.value.body.length <= input.length * 2 + 4, "the mail grew");
  const found = await authenticateWithoutKeys({ ...ENVELOPE, bytes: input });
  must(found.authenticity !== "pass", "a pass without a key");
  const unseen = await authenticateWithoutDns({ ...ENVELOPE, bytes: input });
  must(unseen.authenticity === "unknown" || unseen.from === null, "a verdict although all DNS queries failed");
};

const SIGNED = [
  "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=receiver.example; s=s1;\r\n t=1763510400; x=1893456000; h=from:subject:date; l=9; i=@receiver.example;\r\n bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=AAAA\r\nARC-Seal: i=1; a=rsa-sha256; cv=none; d=receiver.example; s=s1; b=AAAA\r\nFrom: Receiver <dmarc@receiver.example>\r\nSubject: Report\r\n\r\nx\r\n",
  "From: a@receiver.example, b@other.example\nDKIM-Signature: v=1; a=ed25519-sha256; d=receiver.example; s=s1; h=from; bh=; b=\n\nx\n",
].map((text) => utf8.encode(text));

/** The parsers of DMARC records and reports. */
export const DMARC_FUZZ_TARGETS: readonly FuzzTarget[] = [
  { name: "dmarc-record", seeds: records.map(({ text }) => utf8.encode(text)), check: checkRecord },
  { name: "dmarc-report", seeds: fixtures("{xml,values,reporters,hostile}/*.xml"), check: checkReport },
  { name: "dmarc-file", seeds: fixtures("{archives,mails,reporters}/*"), check: checkFile },
  { name: "message", seeds: fixtures("mails/*"), check: checkMessage },
  { name: "authenticity", seeds: [...SIGNED, ...fixtures("mails/*.eml")], check: checkAuthenticity },
];
