import { describe, expect, test } from "bun:test";
import { createZoneResolver, type Zone, type ZoneFailure, type ZoneRecords } from "../../../testing/dns-zone.ts";
import { createHealthDns, HEALTH_QUERIES_MAX } from "./section-report.ts";
import { auditSpf } from "./spf.ts";

const audit = async (zone: Zone, domain = "example.com") => {
  const resolver = createZoneResolver(zone);
  const section = await auditSpf(createHealthDns(resolver), domain);
  return { ...section, codes: section.findings.map(({ code }) => code), asked: resolver.queries };
};
const of = (record: string, rest: Zone = {}) => audit({ "example.com": { TXT: [record] }, ...rest });
const host = { A: ["192.0.2.1"] };
const txt = (...texts: string[]) => ({ TXT: texts });

describe("what is counted", () => {
  test("every include, a, mx, ptr, exists and redirect, and what is below them; all and addresses are free", async () => {
    const section = await of(
      "v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 a mx include:a.example exists:x.example redirect=b.example",
      {
        "example.com": {
          TXT: ["v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 a mx include:a.example exists:x.example redirect=b.example"],
          A: ["192.0.2.1"],
          MX: [[10, "mx.example.com"]],
        },
        "a.example": txt("v=spf1 include:c.example include:d.example ~all"),
        "b.example": txt("v=spf1 a:h.example -all"),
        "c.example": txt("v=spf1 ip4:192.0.2.1 -all"),
        "d.example": txt("v=spf1 mx:h.example -all"),
        "h.example": { A: ["192.0.2.1"], MX: [[10, "h.example"]] },
        "x.example": host,
      },
    );
    expect(section).toMatchObject({
      status: "ok",
      lookups: 9,
      lookups_complete: true,
      void_lookups: 0,
      all: "-",
      codes: ["spf_lookups_near"],
    });
  });

  test("the tree says which include costs what", async () => {
    const section = await of("v=spf1 include:a.example mx -all", {
      "example.com": { TXT: ["v=spf1 include:a.example mx -all"], MX: [[10, "mx.example.com"]] },
      "a.example": txt("v=spf1 include:b.example include:c.example ~all"),
      "b.example": txt("v=spf1 -all"),
      "c.example": txt("v=spf1 a:h.example -all"),
      "h.example": host,
    });
    expect(section.lookups).toBe(5);
    expect(section.terms).toEqual([
      { term: "include:a.example", domain: "example.com", depth: 0, lookups: 4 },
      { term: "include:b.example", domain: "a.example", depth: 1, lookups: 1 },
      { term: "include:c.example", domain: "a.example", depth: 1, lookups: 2 },
      { term: "a:h.example", domain: "c.example", depth: 2, lookups: 1 },
      { term: "mx", domain: "example.com", depth: 0, lookups: 1 },
    ]);
  });

  const includes = (count: number): Zone =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`i${at}.example`, txt("v=spf1 -all")]));
  const naming = (count: number) =>
    `v=spf1 ${Array.from({ length: count }, (_, at) => `include:i${at}.example`).join(" ")} -all`;

  test.each([
    [8, "ok", []],
    [9, "ok", ["spf_lookups_near"]],
    [10, "ok", ["spf_lookups_near"]],
    [11, "problems", ["spf_lookups"]],
  ])("%d lookups are %s", async (count, status, codes) => {
    const section = await of(naming(count), includes(count));
    expect(section).toMatchObject({ status, lookups: count, codes });
  });

  test("far over the limit it is followed no more, and the sum is a minimum", async () => {
    const section = await of(naming(200), includes(200));
    expect(section).toMatchObject({ status: "problems", lookups_complete: false });
    expect(section.asked.length).toBeLessThanOrEqual(41);
    expect(section.findings.at(-1)?.message).toContain("needs at least 200 DNS lookups");
  });

  test("a record that includes many that include many more ends", async () => {
    const zone: Record<string, ZoneRecords> = {};
    for (let at = 0; at < 500; at += 1) {
      zone[`i${at}.example`] = txt(
        `v=spf1 ${Array.from({ length: 20 }, (_, next) => `include:i${(at * 20 + next + 1) % 500}.example`).join(" ")} -all`,
      );
    }
    const section = await audit(zone, "i0.example");
    expect(section.status).toBe("problems");
    expect(section.asked.length).toBeLessThanOrEqual(HEALTH_QUERIES_MAX);
    expect(section.terms.length).toBeLessThanOrEqual(100);
  });

  test("more than two void lookups", async () => {
    const two = await of("v=spf1 a:x.example mx:y.example -all");
    expect(two).toMatchObject({ status: "warnings", void_lookups: 2, codes: ["spf_void", "spf_void"] });
    const three = await of("v=spf1 a:x.example mx:y.example exists:z.example -all");
    expect(three).toMatchObject({ status: "problems", void_lookups: 3 });
    expect(three.codes).toContain("spf_void_lookups");
  });

  test("a host with only an IPv6 address is no void lookup", async () => {
    expect(await of("v=spf1 a:x.example -all", { "x.example": { AAAA: ["2001:db8::1"] } })).toMatchObject({
      status: "ok",
      void_lookups: 0,
    });
  });

  test("more than ten MX hosts", async () => {
    const MX = Array.from({ length: 11 }, (_, at) => [10, `mx${at}.example.com`] as const);
    const section = await audit({ "example.com": { TXT: ["v=spf1 mx -all"], MX } });
    expect(section).toMatchObject({ status: "problems", codes: ["spf_mx_hosts"] });
    const ten = await audit({ "example.com": { TXT: ["v=spf1 mx -all"], MX: MX.slice(0, 10) } });
    expect(ten.codes).toEqual([]);
  });
});

describe("what is wrong", () => {
  test.each([
    ["nothing", [], "spf_missing"],
    ["other texts", ["google-site-verification=1"], "spf_missing"],
    ["a text in quotation marks", ['"v=spf1 -all"'], "spf_not_recognized"],
    ["two records", ["v=spf1 -all", "v=spf1 mx ~all"], "spf_several"],
    ["+all", ["v=spf1 mx +all"], "spf_pass_all"],
    ["all without a qualifier", ["v=spf1 all"], "spf_pass_all"],
    ["a fault", ["v=spf1 ip4:300.1.1.1 -all"], "spf_syntax"],
    ["an unknown mechanism", ["v=spf1 foo:bar -all"], "spf_unknown_mechanism"],
    ["an include without a record", ["v=spf1 include:none.example -all"], "spf_target_missing"],
    ["a redirect without a record", ["v=spf1 redirect=none.example"], "spf_target_missing"],
    ["an include of itself", ["v=spf1 include:example.com -all"], "spf_loop"],
    ["a redirect to itself", ["v=spf1 redirect=example.com"], "spf_loop"],
    ["an include of everybody", ["v=spf1 include:everybody.example -all"], "spf_pass_all"],
    ["an include with a fault", ["v=spf1 include:faulty.example -all"], "spf_unknown_mechanism"],
    ["an include with two records", ["v=spf1 include:twice.example -all"], "spf_several"],
  ])("%s", async (_, texts, code) => {
    const section = await audit({
      "example.com": { TXT: texts, MX: [[10, "mx.example.com"]] },
      "everybody.example": txt("v=spf1 +all"),
      "faulty.example": txt("v=spf1 foo -all"),
      "twice.example": txt("v=spf1 -all", "v=spf1 -all"),
    });
    expect(section.status).toBe("problems");
    expect(section.codes).toContain(code as never);
    const finding = section.findings.find((each) => each.code === code);
    expect(finding).toMatchObject({ severity: "error", fix: expect.any(String) });
    expect(finding?.message).toMatch(/\.$/);
  });

  test.each([
    ["?all", "v=spf1 ?all", "spf_neutral_all", "warning"],
    ["no all", "v=spf1 ip4:192.0.2.1", "spf_no_all", "warning"],
    ["ptr", "v=spf1 ptr -all", "spf_ptr", "warning"],
    ["a term behind all", "v=spf1 -all ip4:192.0.2.1", "spf_after_all", "warning"],
    ["redirect beside all", "v=spf1 -all redirect=b.example", "spf_after_all", "warning"],
    ["a term twice", "v=spf1 ip4:192.0.2.1 +ip4:192.0.2.1 -all", "spf_duplicate", "info"],
    ["an include twice", "v=spf1 include:b.example include:c.example -all", "spf_duplicate", "info"],
    ["an unknown modifier", "v=spf1 foo=bar -all", "spf_unknown_modifier", "info"],
    ["a macro", "v=spf1 exists:%{i}.b.example -all", "spf_macro", "info"],
    [
      "a long record",
      `v=spf1 ${Array.from({ length: 40 }, (_, at) => `ip4:192.0.2.${at}`).join(" ")} -all`,
      "spf_too_long",
      "info",
    ],
  ])("%s", async (_, record, code, severity) => {
    const section = await of(record, {
      "b.example": txt("v=spf1 -all"),
      "c.example": txt("v=spf1 include:b.example -all"),
    });
    expect(section.findings).toEqual([expect.objectContaining({ code, severity })]);
  });

  test.each(["v=spf1 redirect=b.example", "v=spf1 include:b.example ~all"])(
    "%s needs no all of its own",
    async (record) => {
      expect((await of(record, { "b.example": txt("v=spf1 ip4:192.0.2.1 -all") })).findings).toEqual([]);
    },
  );

  test("+all behind a redirect is the domain's own", async () => {
    expect((await of("v=spf1 redirect=b.example", { "b.example": txt("v=spf1 +all") })).codes).toEqual([
      "spf_pass_all",
    ]);
  });

  test("a macro in an include makes the sum a minimum", async () => {
    const section = await of("v=spf1 include:%{ir}.%{v}.%{d}.spf.has.pphosted.com -all");
    expect(section).toMatchObject({ status: "ok", lookups: 1, lookups_complete: false, codes: ["spf_macro"] });
  });

  test("a loop over two records, and one include twice without a loop", async () => {
    const loop = await of("v=spf1 include:b.example -all", { "b.example": txt("v=spf1 include:example.com -all") });
    expect(loop.codes).toEqual(["spf_loop"]);
    const diamond = await of("v=spf1 include:b.example include:c.example -all", {
      "b.example": txt("v=spf1 include:d.example -all"),
      "c.example": txt("v=spf1 include:d.example -all"),
      "d.example": txt("v=spf1 -all"),
    });
    expect(diamond).toMatchObject({ status: "ok", lookups: 4, codes: ["spf_duplicate"] });
  });
});

describe("what the DNS does not say is unknown", () => {
  const failures: readonly ZoneFailure[] = [
    "servfail",
    "refused",
    "timeout",
    "malformed",
    "network_error",
    "unconfirmed",
    "cname_loop",
    "local_failure",
    "overloaded",
    "aborted",
  ];

  test.each(failures)("%s of the record itself", async (failure) => {
    const section = await audit({ "example.com": failure });
    expect(section).toMatchObject({ status: "unknown", findings: [], record: null, lookups: null });
    expect(section.unchecked).toHaveLength(1);
  });

  test.each(failures)("%s of an include, of an address, of an MX", async (failure) => {
    for (const record of [
      "v=spf1 include:b.example -all",
      "v=spf1 a:b.example -all",
      "v=spf1 mx:b.example -all",
      "v=spf1 redirect=b.example",
    ]) {
      const section = await of(record, { "b.example": failure });
      expect(section).toMatchObject({ status: "unknown", findings: [], lookups: 1, lookups_complete: false });
      expect(section.unchecked[0]).toMatch(/^Could not be checked: .+ for b\.example (TXT|A|MX)\.$/);
    }
  });

  test("an error elsewhere still counts", async () => {
    const section = await of("v=spf1 include:b.example +all", { "b.example": "servfail" });
    expect(section).toMatchObject({ status: "problems", codes: ["spf_pass_all"] });
    expect(section.unchecked).toEqual(["Could not be checked: SERVFAIL for b.example TXT."]);
  });
});
