import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { isoDay } from "../../../foundation/base/days.ts";
import { createZoneResolver, type Zone, type ZoneFailure } from "../../../testing/dns-zone.ts";
import { checkDkim } from "./dkim.ts";
import { createHealthDns } from "./section-report.ts";
import { commonSelectors, isSelector, SELECTORS_MAX, type SelectorUse, type SelectorToCheck } from "./dkim-key.ts";

const TODAY = 20_000;
const keyOf = (bits: number): string =>
  (
    generateKeyPairSync("rsa", { modulusLength: bits }).publicKey.export({ format: "der", type: "spki" }) as Buffer
  ).toString("base64");
const GOOD = `v=DKIM1; k=rsa; p=${keyOf(2048)}`;
const P_2048 = keyOf(2048);
const ED25519 = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

const named = (selector = "mail"): SelectorToCheck => ({
  selector,
  signer: "example.com",
  origin: "request",
  seen: null,
});
const seen = (use: Partial<SelectorUse> = {}): SelectorToCheck => ({
  ...named(),
  origin: "reports",
  seen: {
    passed: 100,
    failed: 5,
    lastDay: TODAY - 1,
    lastPassedDay: TODAY - 1,
    vouched: 0,
    lastVouchedDay: null,
    ...use,
  },
});
const unproven = seen({ passed: 0, failed: 10, lastPassedDay: null });
const few = seen({ passed: 0, failed: 9, lastPassedDay: null });
const vouched = (day: number, count = 10) =>
  seen({ passed: 0, failed: 10, lastPassedDay: null, vouched: count, lastVouchedDay: day });
const unused = seen({ lastDay: TODAY - 30, lastPassedDay: TODAY - 30 });

const check = async (zone: Zone, selectors: readonly SelectorToCheck[] = [named()]) => {
  const resolver = createZoneResolver(zone);
  const dns = createHealthDns(resolver);
  const section = await checkDkim(dns, "example.com", { selectors, today: TODAY });
  return {
    ...section,
    codes: section.findings.map(({ code, severity }) => `${severity} ${code}`),
    asked: resolver.queries,
  };
};
const at = (...texts: string[]): Zone => ({ "mail._domainkey.example.com": { TXT: texts } });

describe("a published key", () => {
  test.each([
    ["of 2048 bits", GOOD, "ok", []],
    ["of 512 bits", `v=DKIM1; p=${keyOf(512)}`, "problems", ["error dkim_key_too_short"]],
    ["of 768 bits", `v=DKIM1; p=${keyOf(768)}`, "problems", ["error dkim_key_too_short"]],
    ["of 1024 bits", `v=DKIM1; p=${keyOf(1024)}`, "warnings", ["warning dkim_key_short"]],
    ["of 4096 bits", `v=DKIM1; p=${keyOf(4096)}`, "ok", []],
    ["in test mode", `v=DKIM1; t=y; p=${P_2048}`, "warnings", ["warning dkim_test_mode"]],
    ["for sha1 only", `v=DKIM1; h=sha1; p=${P_2048}`, "problems", ["error dkim_sha1_only"]],
    ["for sha256 too", `v=DKIM1; h=sha1:sha256; p=${P_2048}`, "ok", []],
    ["for something else than email", `v=DKIM1; s=other; p=${P_2048}`, "problems", ["error dkim_not_for_mail"]],
    ["that is broken", "v=DKIM1; p=MIIB", "problems", ["error dkim_invalid"]],
    ["that is revoked", "v=DKIM1; p=", "problems", ["error dkim_revoked"]],
    ["of Ed25519, without another", ED25519, "warnings", ["warning dkim_ed25519_only"]],
  ])("%s", async (_, text, status, codes) => {
    const section = await check(at(text));
    expect(section).toMatchObject({ status, codes });
    for (const { message } of section.findings)
      expect(message).toMatch(/mail\._domainkey\.example\.com|example\.com are/);
  });

  test("is shown with its size and the service behind its alias", async () => {
    const section = await check({
      "mail._domainkey.example.com": { CNAME: "mail.dkim.service.example" },
      "mail.dkim.service.example": { CNAME: "other.service.example" },
      "other.service.example": { TXT: [`v=DKIM1; p=${keyOf(1024)}`] },
    });
    expect(section.keys).toEqual([
      {
        selector: "mail",
        domain: "example.com",
        origin: "request",
        state: "valid",
        type: "rsa",
        bits: 1024,
        testing: false,
        cname: "mail.dkim.service.example",
        messages: null,
        last_seen: null,
      },
    ]);
    expect(section.findings[0]?.fix).toContain("mail.dkim.service.example");
  });

  test("of which there are two", async () => {
    expect((await check(at(GOOD, ED25519))).codes).toEqual(["error dkim_several"]);
    expect((await check(at(GOOD, "some other text"))).codes).toEqual([]);
  });

  test("of Ed25519 beside an RSA key", async () => {
    const zone = { ...at(ED25519), "rsa._domainkey.example.com": { TXT: [GOOD] } };
    expect(await check(zone, [named(), named("rsa")])).toMatchObject({ status: "ok", findings: [] });
  });
});

describe("no key", () => {
  test.each([
    ["named by the caller", named(), "problems", "error dkim_missing"],
    ["in use", seen(), "problems", "error dkim_missing"],
    ["in use, and failing for some days", seen({ lastPassedDay: TODAY - 10 }), "problems", "error dkim_missing"],
    ["that never passed in mail which SPF proves", vouched(TODAY - 1), "problems", "error dkim_missing"],
    ["that never passed in mail which SPF proved", vouched(TODAY - 8), "ok", "info dkim_unpublished"],
    ["that few messages claim which SPF proves", vouched(TODAY - 1, 9), "warnings", "warning dkim_unproven"],
    ["out of use", unused, "ok", "info dkim_unpublished"],
    ["that never passed", unproven, "warnings", "warning dkim_unproven"],
    ["that never passed in a few messages", few, "ok", "info dkim_unproven"],
  ])("of a selector %s", async (_, wanted, status, code) => {
    for (const zone of [{}, at("v=spf1 -all"), { "mail._domainkey.example.com": {} }]) {
      expect(await check(zone, [wanted])).toMatchObject({ status, codes: [code], keys: [{ state: "missing" }] });
    }
  });

  test.each([
    [seen(), "error dkim_dangling_alias"],
    [unused, "warning dkim_dangling_alias"],
  ])("behind an alias (%#)", async (wanted, code) => {
    const section = await check({ "mail._domainkey.example.com": { CNAME: "gone.service.example" } }, [wanted]);
    expect(section.codes).toEqual([code]);
    expect(section.findings[0]).toMatchObject({
      observed: "gone.service.example",
      fix: expect.stringContaining("gone.service.example"),
    });
  });

  test("a revoked key that is not in use is information", async () => {
    expect((await check(at("v=DKIM1; p="), [unused])).codes).toEqual(["info dkim_revoked"]);
    expect((await check(at("v=DKIM1; p="), [unproven])).codes).toEqual(["info dkim_revoked"]);
    expect((await check(at("v=DKIM1; p="), [seen()])).codes).toEqual(["error dkim_revoked"]);
  });
});

describe("common selectors", () => {
  const common = commonSelectors("example.com");

  test("are bounded, and none of them found is no problem", async () => {
    expect(common.length).toBeLessThanOrEqual(SELECTORS_MAX);
    expect(await check({}, common)).toMatchObject({ status: "ok", codes: ["info dkim_no_selector"], keys: [] });
  });

  test("count where they have a key, and revoked ones of a wildcard do not", async () => {
    const wildcard = Object.fromEntries(
      common.map(({ selector }) => [`${selector}._domainkey.example.com`, { TXT: ["v=DKIM1; p="] }]),
    );
    expect((await check(wildcard, common)).codes).toEqual(["info dkim_no_selector"]);
    const section = await check({ ...wildcard, "google._domainkey.example.com": { TXT: [GOOD] } }, common);
    expect(section).toMatchObject({ status: "ok", codes: [], keys: [{ selector: "google", origin: "common" }] });
  });

  test("without a DNS response make nothing unknown", async () => {
    const zone = Object.fromEntries(
      common.map(({ selector }) => [`${selector}._domainkey.example.com`, "servfail" as const]),
    );
    expect(await check(zone, common)).toMatchObject({ status: "ok", unchecked: [] });
  });
});

test.each<ZoneFailure>(["servfail", "refused", "timeout", "unconfirmed", "malformed", "aborted"])(
  "%s is unknown and no finding",
  async (failure) => {
    const section = await check({ "mail._domainkey.example.com": failure }, [seen()]);
    expect(section).toMatchObject({ status: "unknown", findings: [], keys: [{ state: "unknown" }] });
    expect(section.unchecked).toEqual([expect.stringContaining("mail._domainkey.example.com TXT")]);
  },
);

test("no more selectors are looked at than allowed", async () => {
  const many = Array.from({ length: 50 }, (_, number) => named(`s${number}`));
  expect((await check({}, many)).asked).toHaveLength(SELECTORS_MAX);
});

test.each([
  ["mail", true],
  ["20230601", true],
  ["s1._x", true],
  ["a.b.c", true],
  ["", false],
  ["-a", false],
  ["a..b", false],
  ["a b", false],
  ["a/b", false],
  ["x".repeat(128), false],
])("%p can be a selector: %p", (text, expected) => {
  expect(isSelector(text)).toBe(expected);
});

test.each([
  ["no key", {}, "There is no DKIM key at mail._domainkey.example.com"],
  ["a revoked key", at("v=DKIM1; p="), "is revoked (p is empty), but mail is still signed with it"],
  ["a broken key", at("v=DKIM1; p=MIIB"), "The DKIM key at mail._domainkey.example.com "],
])("%s: the text says since when signatures fail, beside reports in which they passed", async (_, zone, begin) => {
  const { findings } = await check(zone, [seen({ failed: 0 })]);
  const [{ message = "" } = {}] = findings;
  expect(message).toContain(begin);
  const days = `they passed until ${isoDay(TODAY - 1)}.`;
  expect(message).toEndWith(`new signatures with it fail. The reports have 100 messages signed with it; ${days}`);
});
