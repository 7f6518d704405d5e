import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { createZoneResolver, type Zone } from "../../../testing/dns-zone.ts";
import { createDomainCheck } from "./domain-check.ts";
import { createDomainPlatforms } from "./domain-platform.ts";

const HOST = "reports.example.net";
const OURS = `mailto:token@${HOST}`;
const ALLOWED = { "example.com._report._dmarc.reports.example.net": { TXT: ["v=DMARC1;"] } };
const clock = createTestClock();

const look = (zone: Zone, domain = "example.com", reportHost: string | null = HOST) =>
  createDomainCheck(
    clock,
    createDomainPlatforms({ resolver: createZoneResolver(zone), reportHost, mailHost: null }),
  )({
    domain,
    mode: "live",
    token: "token",
  });

const published = (...TXT: string[]): Zone => ({ ...ALLOWED, "_dmarc.example.com": { TXT } });
const GOOD = `v=DMARC1; p=reject; rua=mailto:a@example.com, ${OURS}`;

describe("the three checks", () => {
  test.each([
    ["all is well", published(GOOD), [true, true, true], "good"],
    [
      "in any case and encoding",
      published(`v=DMARC1; p=none; rua=mailto:%54oken@Reports.Example.NET!10m`),
      [true, true, true],
      "good",
    ],
    ["no record", ALLOWED, [false, false, true], "bad"],
    ["our address is missing", published("v=DMARC1; p=none"), [true, false, true], "bad"],
    ["two records", published(GOOD, "v=DMARC1; p=none"), [false, false, true], "bad"],
    ["another text beside", published(GOOD, "hello"), [true, true, true], "good"],
    [
      "an alias to a good record",
      { ...ALLOWED, "_dmarc.example.com": { CNAME: "d.example.org" }, "d.example.org": { TXT: [GOOD] } },
      [true, true, true],
      "good",
    ],
    ["not authorised", { "_dmarc.example.com": { TXT: [GOOD] } }, [true, true, false], "bad"],
    [
      "authorised, but turned away",
      {
        "_dmarc.example.com": { TXT: [GOOD] },
        "example.com._report._dmarc.reports.example.net": { TXT: ["v=DMARC1; rua=mailto:x@y.example"] },
      },
      [true, true, false],
      "bad",
    ],
    [
      "an empty answer that nothing confirms",
      { ...ALLOWED, "_dmarc.example.com": "unconfirmed" },
      [null, null, true],
      "indefinite",
    ],
    ["a silent DNS", { ...ALLOWED, "_dmarc.example.com": "servfail" }, [null, null, true], "indefinite"],
    [
      "a silent report host",
      { "_dmarc.example.com": { TXT: [GOOD] }, "example.com._report._dmarc.reports.example.net": "timeout" },
      [true, true, null],
      "indefinite",
    ],
    ["no record and a silent parent", { ...ALLOWED, "_dmarc.com": "servfail" }, [false, false, true], "bad"],
    [
      "a definite no beside silence",
      {
        "_dmarc.example.com": { TXT: ["v=DMARC1; p=none"] },
        "example.com._report._dmarc.reports.example.net": "timeout",
      },
      [true, false, null],
      "bad",
    ],
  ] as const)("%s", async (_, zone, ok, outcome) => {
    const found = await look(zone as Zone);
    expect(found.checks.map(({ code }) => code)).toEqual(["record", "reporting_address", "authorisation"]);
    expect(found.checks.map((check) => check.ok)).toEqual([...ok]);
    expect(found.outcome).toBe(outcome);
    for (const { message } of found.checks) expect(message).toMatch(/^\S.*[.;]$/);
  });

  test("say what was found and what should be there", async () => {
    const { checks } = await look(published("v=DMARC1; p=none; rua=mailto:a@example.com"));
    const merged = `v=DMARC1; p=none; rua=mailto:a@example.com,${OURS}`;
    expect(checks).toMatchObject([
      { observed: "v=DMARC1; p=none; rua=mailto:a@example.com" },
      { observed: "mailto:a@example.com", expected: OURS },
      { observed: "v=DMARC1;", expected: "v=DMARC1;" },
    ]);
    const { dnsRecords } = await look(published("v=DMARC1; p=none; rua=mailto:a@example.com"));
    expect(dnsRecords).toMatchObject([{ action: "update", value: merged, strings: [merged], reason: null }]);
    expect((await look(ALLOWED)).checks[0]).toMatchObject({
      observed: null,
      expected: `v=DMARC1; p=none; rua=${OURS}`,
    });
  });

  test("expect of the record the text to publish", async () => {
    const { checks } = await look(published("v=DMARC1; p=none"));
    expect(checks[0]).toMatchObject({ observed: "v=DMARC1; p=none", expected: `v=DMARC1; p=none; rua=${OURS}` });
    expect((await look(published(GOOD))).checks[0]).toMatchObject({ observed: GOOD, expected: GOOD });
    const several = await look(published(`v=DMARC1; p=none; rua=mailto:a@example.com; rua=${OURS}`));
    expect(several.checks[0]?.expected).toBeNull();
  });

  test.each([
    [`rua=mailto:a@example.com; rua=${OURS}`, false, "rua tag 2 of 2"],
    [`rua=${OURS}; rua=mailto:a@example.com`, true, "rua tag 1 of 2"],
    ["rua=mailto:a@example.com; rua=mailto:b@example.com", false, "not in rua"],
  ])("say of %s that there are several rua tags", async (tags, ok, where) => {
    const { checks } = await look(published(`v=DMARC1; p=none; ${tags}`));
    expect(checks[0]?.message).toContain("several rua tags");
    expect(checks[1]).toMatchObject({ ok });
    expect(checks[1]?.message).toContain(where);
    expect(checks[1]?.observed?.split("\n")).toHaveLength(2);
  });

  test.each([
    ["p=bogus", 'p is "bogus"'],
    ["p=reject; sp=bogus", 'sp is "bogus"'],
    ["sp=reject", "p is missing"],
  ])("and the record to publish tell of %s, which receivers take as none", async (tags, told) => {
    const { checks, dnsRecords } = await look(published(`v=DMARC1; ${tags}; rua=${OURS}`));
    expect(checks[0]?.message).toContain(told);
    expect(dnsRecords[0]?.action).toBe("none");
    expect(dnsRecords[0]?.message).toContain(told);
    expect(dnsRecords[0]?.message).not.toContain("Nothing to do");
  });

  test("do not keep all of a text without end, which the record to publish does", async () => {
    const endless = `${GOOD}; x=${"y".repeat(60_000)}`;
    const { checks, dnsRecords, outcome } = await look(published(endless));
    expect([checks[0]?.observed?.length, checks[0]?.expected?.length]).toEqual([2_049, 2_049]);
    expect(dnsRecords[0]?.value).toBe(endless);
    expect(outcome).toBe("good");
  });

  test("of a domain of the report host's own organisation need no authorisation", async () => {
    const found = await look({ "_dmarc.example.net": { TXT: [GOOD] } }, "example.net");
    expect(found).toMatchObject({ outcome: "good", observed: { authorisation: "not_needed" } });
    expect(found.checks[2]).toMatchObject({ ok: true, expected: null });
  });

  test("are bad for a name below that only inherits our address, and say why", async () => {
    const zone = { ...published(GOOD), "news.example.com._report._dmarc.reports.example.net": { TXT: ["v=DMARC1;"] } };
    const { outcome, checks, observed } = await look(zone, "news.example.com");
    expect(outcome).toBe("bad");
    expect(checks.map(({ ok }) => ok)).toEqual([false, false, true]);
    expect(checks[1]?.message).toContain("enroll example.com");
    expect(observed.policy).toMatchObject({ p: "reject", own: false, inherited_from: "example.com" });
  });
});

describe("the record to publish", () => {
  test.each([
    ["create", ALLOWED, null],
    ["update", published("v=DMARC1; p=none"), null],
    ["none", published(GOOD), null],
    ["conflict", published(GOOD, GOOD), "several_records"],
    ["conflict", published("v=DMARC1; p=none; rua=mailto:a@b.example; rua=mailto:c@d.example"), "several_rua_tags"],
    [
      "conflict",
      { ...ALLOWED, "_dmarc.example.com": { CNAME: "d.example.org" }, "d.example.org": { TXT: ["v=DMARC1; p=none"] } },
      "cname",
    ],
    ["none", { ...ALLOWED, "_dmarc.example.com": { CNAME: "d.example.org" }, "d.example.org": { TXT: [GOOD] } }, null],
    ["conflict", { ...ALLOWED, "_dmarc.example.com": "timeout" }, "dns_failure"],
    ["conflict", { ...ALLOWED, "_dmarc.com": "servfail" }, "dns_failure"],
    ["conflict", { ...published(GOOD, GOOD), "_dmarc.com": "servfail" }, "several_records"],
  ] as const)("%s %p", async (action, zone, reason) => {
    const { dnsRecords } = await look(zone as Zone);
    expect(dnsRecords).toHaveLength(1);
    expect(dnsRecords[0]).toMatchObject({ host: "_dmarc.example.com", type: "TXT", action, reason });
    expect(typeof dnsRecords[0]?.value).toBe("string");
  });

  test("points to the service record while receivers may not report to us, and calls silence what it is", async () => {
    const zone = { "_dmarc.example.com": { TXT: [GOOD] } };
    const missing = (await look(zone)).dnsRecords[0];
    expect(missing).toMatchObject({ action: "none", value: GOOD });
    expect(missing?.message).toContain('*._report._dmarc.reports.example.net TXT "v=DMARC1;"');
    expect(missing?.message).toContain("service_records");
    const silent = (await look({ ...zone, "example.com._report._dmarc.reports.example.net": "timeout" })).dnsRecords[0];
    for (const { message } of [missing, silent].flatMap((record) => record ?? [])) {
      expect(message).not.toContain("Nothing to do");
    }
    expect(silent?.message).toContain("It is not known whether reports can arrive");
    expect((await look(published(GOOD))).dnsRecords[0]?.message).toBe(
      "The reporting address is in the record. Nothing to do.",
    );
  });

  test("of an organisational domain keeps what the suffix asks for names below", async () => {
    for (const [name, tags, policy] of [
      ["bank.com", "p=reject; sp=quarantine; np=reject; psd=y", "p=quarantine; np=reject"],
      ["bank.com", "p=reject; psd=y", "p=reject"],
      ["a.bank.com", "p=reject; sp=quarantine; np=reject; psd=y", "p=quarantine"],
    ] as const) {
      const zone = { "_dmarc.com": { TXT: [`v=DMARC1; ${tags}`] }, [name]: { A: ["192.0.2.1"] } };
      const { dnsRecords } = await look(zone, name);
      expect(dnsRecords[0]?.value).toBe(`v=DMARC1; ${policy}; rua=${OURS}`);
    }
    const missing = { "_dmarc.com": { TXT: ["v=DMARC1; p=reject; sp=quarantine; np=reject; psd=y"] } };
    expect((await look(missing, "bank.com")).dnsRecords[0]?.value).toBe(
      `v=DMARC1; p=reject; sp=quarantine; np=reject; rua=${OURS}`,
    );
  });

  test("begins with the four fields of the specification", async () => {
    const { dnsRecords } = await look(ALLOWED);
    expect(Object.keys(dnsRecords[0] ?? {}).slice(0, 4)).toEqual(["host", "type", "action", "value"]);
  });

  test("of a name below takes over what applies to it", async () => {
    const zone = { "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] } };
    const { dnsRecords } = await look(zone, "news.example.com");
    expect(dnsRecords[0]?.value).toBe(`v=DMARC1; p=reject; rua=${OURS}`);
    expect(dnsRecords[0]?.warnings.map(({ code }) => code)).toContain("inherits_policy");
  });
});

test("a DNS that never answers ends the look after 20 seconds, with nothing known", async () => {
  const slow = createTestClock();
  const platforms = createDomainPlatforms({
    reportHost: HOST,
    mailHost: null,
    resolver: {
      resolve: (name, type, { signal } = {}) =>
        new Promise((resolve) => {
          const silence = { records: [], cnames: [], ttlS: 0, authenticated: false, server: null, fromCache: false };
          signal?.addEventListener("abort", () =>
            resolve({ name, type, outcome: "aborted", elapsedMs: 20_000, ...silence }),
          );
        }),
    },
  });
  const found = createDomainCheck(slow, platforms)({ domain: "example.com", mode: "live", token: "token" });
  await slow.advance(20_000);
  expect(await found).toMatchObject({ outcome: "indefinite", observed: {}, dnsRecords: [{ reason: "dns_failure" }] });
  expect(slow.pending()).toBe(0);
});

test("without a report host nothing can be looked up, but for test keys", async () => {
  await expect(look(ALLOWED, "example.com", null)).rejects.toThrow("report host");
  const check = createDomainCheck(
    clock,
    createDomainPlatforms({ resolver: createZoneResolver({}), reportHost: null, mailHost: null }),
  );
  const found = await check({ domain: "merge.example", mode: "test", token: "token" });
  expect(found.dnsRecords[0]?.value).toBe(
    "v=DMARC1; p=reject; rua=mailto:dmarc@merge.example,mailto:token@reports.example",
  );
});

test("a parent that declares itself a public suffix is observed, of a domain below an organization only", async () => {
  const suffix = { "_dmarc.example.com": { TXT: ["v=DMARC1; p=none; psd=y"] } };
  expect((await look(suffix, "town.example.com")).observed.declared_suffix).toBe("example.com");
  expect((await look({}, "town.example.com")).observed.declared_suffix).toBe(null);
  expect(await look({ "_dmarc.example.com": "servfail" }, "town.example.com")).not.toHaveProperty(
    "observed.declared_suffix",
  );
  expect((await look(suffix)).observed.declared_suffix ?? null).toBe(null);
});
