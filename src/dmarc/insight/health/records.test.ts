import { describe, expect, test } from "bun:test";
import { createZoneResolver, type Zone, type ZoneFailure } from "../../../testing/dns-zone.ts";
import { checkBimi, checkDmarcRecord } from "./dmarc-health.ts";
import { createHealthDns } from "./section-report.ts";
import { checkTlsRpt } from "./inbound.ts";
import { checkMx } from "./mx.ts";

const dnsOf = (zone: Zone) => createHealthDns(createZoneResolver(zone));
const codesOf = ({ findings }: { findings: ReadonlyArray<{ code: string; severity: string }> }): string[] =>
  findings.map(({ code, severity }) => `${severity} ${code}`);
const FAILURES: readonly ZoneFailure[] = [
  "servfail",
  "refused",
  "timeout",
  "malformed",
  "unconfirmed",
  "network_error",
  "cname_loop",
  "aborted",
];

describe("TLS-RPT", () => {
  const check = (TXT: readonly string[]) => checkTlsRpt(dnsOf({ "_smtp._tls.example.com": { TXT } }), "example.com");

  test.each([
    [["v=TLSRPTv1; rua=mailto:tls@example.com"], "ok", [], ["mailto:tls@example.com"]],
    [
      ["v=TLSRPTv1;rua=mailto:a@example.com,https://reports.example/v1"],
      "ok",
      [],
      ["mailto:a@example.com", "https://reports.example/v1"],
    ],
    [[], "ok", ["info tls_rpt_missing"], []],
    [["v=spf1 -all"], "ok", ["info tls_rpt_missing"], []],
    [
      ["v=TLSRPTv1; rua=mailto:a@b.example", "v=TLSRPTv1; rua=mailto:c@d.example"],
      "warnings",
      ["warning tls_rpt_several"],
      [],
    ],
    [["v=TLSRPTv1;"], "warnings", ["warning tls_rpt_syntax"], []],
    [["v=TLSRPTv1; rua=tls@example.com"], "warnings", ["warning tls_rpt_syntax"], ["tls@example.com"]],
    [["v=TLSRPTv1; rua=http://reports.example"], "warnings", ["warning tls_rpt_syntax"], ["http://reports.example"]],
  ])("%p", async (texts, status, codes, rua) => {
    const section = await check(texts);
    expect(section).toMatchObject({ status, rua });
    expect(codesOf(section)).toEqual(codes);
  });
});

describe("MX", () => {
  const check = (MX: ReadonlyArray<readonly [number, string]>) =>
    checkMx(dnsOf({ "example.com": { MX }, "mx.example.com": { A: ["8.8.4.4"] } }), "example.com");

  test.each([
    [[[10, "mx.example.com"]], "ok", []],
    [[[0, "."]], "ok", ["info mx_null"]],
    [[], "ok", ["info mx_missing"]],
    [
      [
        [0, "."],
        [10, "mx.example.com"],
      ],
      "problems",
      ["error mx_null_not_alone"],
    ],
    [[[10, "192.0.2.1"]], "problems", ["error mx_address"]],
  ] as const)("%j", async (records, status, codes) => {
    const section = await check(records);
    expect(section).toMatchObject({ status, null_mx: codes[0] === "info mx_null" });
    expect(codesOf(section)).toEqual([...codes]);
  });

  test("of a domain that does not exist", async () => {
    expect(codesOf(await checkMx(dnsOf({}), "example.com"))).toEqual(["error domain_missing"]);
  });
});

describe("DMARC", () => {
  const check = (zone: Zone, domain = "example.com") => checkDmarcRecord(dnsOf(zone), domain);
  const at = (...TXT: string[]): Zone => ({ "_dmarc.example.com": { TXT } });

  test.each([
    ["v=DMARC1; p=reject; rua=mailto:a@example.com", "ok", []],
    ["v=DMARC1; p=none; rua=mailto:a@example.com", "ok", ["info dmarc_policy_none"]],
    ["v=DMARC1; p=reject", "warnings", ["warning dmarc_not_reported"]],
    [
      "v=DMARC1; p=quarantine; pct=50; rua=mailto:a@example.com",
      "warnings",
      ["info dmarc_syntax", "warning dmarc_partial"],
    ],
    ["v=DMARC1; p=reject; t=y; rua=mailto:a@example.com", "ok", ["info dmarc_test_mode"]],
    [
      "v=DMARC1; p=rejct; rua=mailto:a@example.com",
      "problems",
      ["error dmarc_policy_invalid", "info dmarc_policy_none"],
    ],
    ["v=DMARC1; rua=mailto:a@example.com", "problems", ["error dmarc_policy_invalid", "info dmarc_policy_none"]],
    ["v=DMARC1; p=reject; rua=a@example.com", "warnings", ["warning dmarc_syntax", "warning dmarc_not_reported"]],
  ])("%s", async (text, status, codes) => {
    const section = await check(at(text));
    expect(section).toMatchObject({ status, record: text, inherited_from: null });
    expect(codesOf(section)).toEqual(codes);
  });

  test("no record, several, and one that is inherited", async () => {
    expect(await check({})).toMatchObject({
      status: "problems",
      record: null,
      policy: null,
      findings: [{ code: "dmarc_missing", record: { host: "_dmarc.example.com" } }],
    });
    expect(codesOf(await check(at("v=DMARC1; p=none", "v=DMARC1; p=reject")))).toEqual(["error dmarc_several"]);
    const below = await check(at("v=DMARC1; p=reject; sp=quarantine; rua=mailto:a@example.com"), "news.example.com");
    expect(below).toMatchObject({ status: "ok", inherited_from: "example.com", policy: { p: "quarantine" } });
    expect(codesOf(below)).toEqual(["info dmarc_inherited"]);
  });
});

describe("DMARC reports to another organization", () => {
  const RECORD = "v=DMARC1; p=reject; rua=mailto:a@reports.example; ruf=mailto:b@example.com";
  const AT = "example.com._report._dmarc.reports.example";
  const check = (zone: Zone) =>
    checkDmarcRecord(dnsOf({ "_dmarc.example.com": { TXT: [RECORD] }, ...zone }), "example.com");

  test.each([
    ["authorized", { [AT]: { TXT: ["v=DMARC1;"] } }, "ok", []],
    ["not authorized", {}, "warnings", ["warning dmarc_reports_not_authorized"]],
    ["another text", { [AT]: { TXT: ["hello"] } }, "warnings", ["warning dmarc_reports_not_authorized"]],
    ["not known", { [AT]: "servfail" }, "unknown", []],
  ] as const)("%s", async (_, zone, status, codes) => {
    const section = await check(zone);
    expect(section.status).toBe(status);
    expect(codesOf(section)).toEqual([...codes]);
  });

  test("the fix names the record of the owner", async () => {
    const [finding] = (await check({})).findings;
    expect(finding).toMatchObject({ record: { host: AT, value: "v=DMARC1;" } });
  });
});

describe("DMARC records at wrong names", () => {
  const RECORD = "v=DMARC1; p=reject; rua=mailto:a@example.com";
  const DOUBLED = "_dmarc.example.com.example.com";
  const own: Zone = { "_dmarc.example.com": { TXT: [RECORD] } };
  const check = (zone: Zone) => checkDmarcRecord(dnsOf(zone), "example.com");

  test.each([
    ["at the domain", { "example.com": { TXT: [RECORD] } }, ["error dmarc_missing", "warning dmarc_wrong_name"]],
    ["the domain twice", { [DOUBLED]: { TXT: [RECORD] } }, ["error dmarc_missing", "warning dmarc_wrong_name"]],
    ["beside the right one", { ...own, [DOUBLED]: { TXT: [RECORD] } }, ["info dmarc_wrong_name"]],
    ["SPF at the domain", { ...own, "example.com": { TXT: ["v=spf1 -all"] } }, []],
    ["not known", { ...own, "example.com": "servfail", [DOUBLED]: "timeout" }, []],
    ["a wildcard", { ...own, [DOUBLED]: { TXT: [RECORD] }, [`no-such-name.${DOUBLED}`]: { TXT: [RECORD] } }, []],
  ] as const)("%s", async (_, zone, codes) => {
    expect(codesOf(await check(zone))).toEqual([...codes]);
  });
});

describe("BIMI", () => {
  const REJECT = "v=DMARC1; p=reject; rua=mailto:a@example.com";
  const SVG = "l=https://example.com/logo.svg";
  const PEM = "a=https://example.com/vmc.pem";
  const check = async (TXT: readonly string[], dmarc: string | ZoneFailure = REJECT) => {
    const zone: Zone = {
      "default._bimi.example.com": { TXT },
      "_dmarc.example.com": dmarc.startsWith("v=") ? { TXT: [dmarc] } : (dmarc as ZoneFailure),
    };
    const dns = dnsOf(zone);
    return checkBimi(dns, "example.com", await checkDmarcRecord(dns, "example.com"));
  };

  test.each([
    [[`v=BIMI1; ${SVG}; ${PEM}`], "ok", []],
    [[`v=BIMI1; ${SVG}`], "ok", ["info bimi_no_certificate"]],
    [[`v=BIMI1; ${SVG}; a=;`], "ok", ["info bimi_no_certificate"]],
    [[], "ok", ["info bimi_missing"]],
    [["v=BIMI1; l=; a=;"], "ok", ["info bimi_declined"]],
    [["v=BIMI1; l="], "ok", ["info bimi_declined"]],
    [[`v=BIMI1; ${PEM}`], "warnings", ["warning bimi_syntax"]],
    [[`v=BIMI1; l=http://example.com/logo.svg; ${PEM}`], "warnings", ["warning bimi_location"]],
    [[`v=BIMI1; l=https://example.com/logo.png; ${PEM}`], "warnings", ["warning bimi_file_type"]],
    [[`v=BIMI1; ${SVG}; a=https://example.com/vmc.crt`], "warnings", ["warning bimi_file_type"]],
    [[`v=BIMI1; l=https://example.com/logo?id=a.png; ${PEM}`], "ok", []],
    [[`v=BIMI1; ${SVG}; a=ftp://example.com/x`], "warnings", ["warning bimi_location"]],
    [[`v=BIMI1; ${SVG}`, `v=BIMI1; ${SVG}`], "warnings", ["warning bimi_several"]],
  ])("%j", async (texts, status, codes) => {
    const section = await check(texts);
    expect(section.status).toBe(status as never);
    expect(codesOf(section)).toEqual(codes);
  });

  test.each([
    ["v=DMARC1; p=reject", []],
    ["v=DMARC1; p=quarantine", []],
    ["v=DMARC1; p=reject; pct=50", []],
    ["v=DMARC1; p=none", ["warning bimi_policy"]],
    ["v=DMARC1; p=quarantine; pct=50", ["warning bimi_policy"]],
    ["v=DMARC1; p=reject; sp=none", ["warning bimi_policy"]],
    ["v=DMARC1; p=reject; t=y", ["warning bimi_policy"]],
    ["nxdomain", ["warning bimi_policy"]],
    ["servfail", []],
  ])("needs a policy that is enforced: %s", async (dmarc, codes) => {
    expect(codesOf(await check([`v=BIMI1; ${SVG}; ${PEM}`], dmarc as ZoneFailure))).toEqual(codes);
  });
});

test.each(FAILURES)("%s makes every section unknown, and is no finding", async (failure) => {
  const names = ["example.com", "_dmarc.example.com", "_smtp._tls.example.com", "default._bimi.example.com"];
  const dns = dnsOf(Object.fromEntries(names.map((name) => [name, failure])));
  const dmarc = await checkDmarcRecord(dns, "example.com");
  for (const section of [
    dmarc,
    await checkMx(dns, "example.com"),
    await checkTlsRpt(dns, "example.com"),
    await checkBimi(dns, "example.com", dmarc),
  ]) {
    expect(section).toMatchObject({ status: "unknown", findings: [] });
    expect(section.unchecked).toEqual([expect.stringMatching(/^Could not be checked: .+ for .+\.$/)]);
  }
});
