import { describe, expect, test } from "bun:test";
import { createZoneResolver, type ZoneFailure, type ZoneRecords } from "../../../testing/dns-zone.ts";
import { type Authorisation, authorisationName, checkAuthorisation, serviceRecords } from "./discovery.ts";
import { parseRecord } from "./record.ts";

const REPORT_HOST = "reports.example.net";
const NAME = `example.com._report._dmarc.${REPORT_HOST}`;

const OURS = `abc@${REPORT_HOST}`;

const check = async (entry: ZoneRecords | ZoneFailure, domain = "example.com"): Promise<Authorisation> => {
  const resolver = createZoneResolver({ [NAME]: entry });
  const checked = await checkAuthorisation(resolver, { domain, reportHost: REPORT_HOST, ours: OURS });
  if (!checked.ok) throw new Error(checked.error.kind);
  return checked.value;
};

describe("the name that receivers ask", () => {
  test("is made of both", () => {
    expect(authorisationName("example.com", REPORT_HOST)).toEqual({ ok: true, value: NAME });
  });

  test("has at most 253 octets; a domain with which it has more is refused, and nobody is asked", async () => {
    const restOctets = `._report._dmarc.${REPORT_HOST}`.length;
    const longest = `${"abcdefg.".repeat(40)}`
      .slice(0, 253 - restOctets - 4)
      .replace(/\.$/, "x")
      .concat(".com");
    expect(authorisationName(longest, REPORT_HOST)).toMatchObject({ ok: true });
    const refused = { ok: false, error: { kind: "name_too_long", octets: 254, octetsMax: 253 } } as const;
    expect(authorisationName(`a${longest}`, REPORT_HOST)).toEqual(refused);
    const resolver = createZoneResolver({});
    expect(await checkAuthorisation(resolver, { domain: `a${longest}`, reportHost: REPORT_HOST })).toEqual(refused);
    expect(resolver.queries).toEqual([]);
  });
});

describe("authorised", () => {
  test.each([
    ["v=DMARC1;", { TXT: ["v=DMARC1;"] }],
    ["v=DMARC1", { TXT: ["v=DMARC1"] }],
    ["V = DMARC1 ; x=y", { TXT: ["V = DMARC1 ; x=y"] }],
    ["one among other texts", { TXT: ["v=spf1 -all", "v=DMARC1;"] }],
    ["two", { TXT: ["v=DMARC1;", "v=DMARC1"] }],
  ])("by %s", async (_, entry) => {
    expect(await check(entry)).toMatchObject({
      status: "authorised",
      name: NAME,
      outcome: "response",
      redirectsTo: [],
    });
  });

  test.each([
    ["alone", `v=DMARC1; rua=mailto:${OURS}`],
    ["in other letters, encoded and with a size", `v=DMARC1; rua=mailto:%41BC@REPORTS.example.net!10m`],
    ["beside another one", `v=DMARC1; rua=mailto:x@${REPORT_HOST}, mailto:${OURS}`],
  ])("by a record that names our own address, which is no redirection: %s", async (_, text) => {
    const { status, redirectsTo, message } = await check({ TXT: [text] });
    expect({ status, redirectsTo }).toEqual({ status: "authorised", redirectsTo: [] });
    expect(message).toBe(`Receivers may send reports to ${REPORT_HOST}.`);
  });

  test("of two records the one that names somebody else is a redirection", async () => {
    const texts = [`v=DMARC1; rua=mailto:${OURS}`, `v=DMARC1; rua=mailto:x@${REPORT_HOST}`];
    expect((await check({ TXT: texts })).redirectsTo).toEqual([`x@${REPORT_HOST}`]);
  });

  test("without an address of ours every rua is a redirection", async () => {
    const resolver = createZoneResolver({ [NAME]: { TXT: [`v=DMARC1; rua=mailto:${OURS}`] } });
    const checked = await checkAuthorisation(resolver, { domain: "example.com", reportHost: REPORT_HOST });
    expect(checked).toMatchObject({ ok: true, value: { redirectsTo: [OURS] } });
  });

  test("by a record that turns the reports elsewhere, which is shown", async () => {
    const { status, redirectsTo, message } = await check({ TXT: ["v=DMARC1; rua=mailto:X@reports.example.net"] });
    expect({ status, redirectsTo }).toEqual({ status: "authorised", redirectsTo: ["x@reports.example.net"] });
    expect(message).toContain("x@reports.example.net");
  });
});

describe("missing", () => {
  test("for no name, which asks for the wildcard", async () => {
    const { status, message } = await check("nxdomain");
    expect(status).toBe("missing");
    expect(message).toContain(`*._report._dmarc.${REPORT_HOST} TXT "v=DMARC1;"`);
  });

  test("for a name without a text, where something switches the wildcard off", async () => {
    for (const entry of ["no_data", { A: ["192.0.2.1"] }] as const) {
      const { status, message } = await check(entry);
      expect(status).toBe("missing");
      expect(message).toContain("the wildcard");
    }
  });

  test("for other texts", async () => {
    for (const text of ["v=dmarc1;", "yes", "v=spf1 -all", '"v=DMARC1;"', ""]) {
      expect(await check({ TXT: [text] })).toMatchObject({ status: "missing", observed: [] });
    }
  });
});

test.each([
  "unconfirmed",
  "servfail",
  "timeout",
  "refused",
  "malformed",
  "network_error",
  "invalid_name",
  "aborted",
] as const)("%s is indefinite, never missing", async (outcome) => {
  expect(await check(outcome)).toMatchObject({ status: "indefinite", outcome });
});

test("within one organisation receivers do not ask, and neither do we", async () => {
  for (const domain of [REPORT_HOST, "example.net", "shop.example.net"]) {
    expect(await check("servfail", domain)).toMatchObject({ status: "not_needed", outcome: null });
  }
  expect((await check("nxdomain", "example.com")).status).toBe("missing");
  const local = await checkAuthorisation(createZoneResolver({}), { domain: "localhost", reportHost: "localhost" });
  expect(local).toMatchObject({ ok: true, value: { status: "not_needed" } });
});

test("two public suffixes, and two customers of one, are not one organisation", async () => {
  for (const [domain, reportHost] of [
    ["a.github.io", "b.github.io"],
    ["co.uk", "com"],
  ] as const) {
    const checked = await checkAuthorisation(createZoneResolver({}), { domain, reportHost });
    expect(checked).toMatchObject({ ok: true, value: { status: "missing" } });
  }
});

describe("what the operator publishes", () => {
  const records = serviceRecords(REPORT_HOST, null);

  test("is the wildcard with a text that authorises, and an exchange for the mail", () => {
    expect(records).toMatchObject([
      { host: `*._report._dmarc.${REPORT_HOST}`, type: "TXT", value: "v=DMARC1;", strings: ["v=DMARC1;"] },
      { host: REPORT_HOST, type: "MX", value: `10 ${REPORT_HOST}.`, strings: null },
    ]);
    expect(parseRecord(records[0]?.value ?? "").valid).toBe(true);
  });

  test("names another machine that receives", () => {
    expect(serviceRecords(REPORT_HOST, "mx.example.net")[1]).toMatchObject({
      host: REPORT_HOST,
      value: "10 mx.example.net.",
      purpose: "Delivers mail for the report host to this server.",
    });
  });

  test("says what is to be set while the name of this machine is not known", () => {
    expect(records[1]?.purpose).toContain("POSTWARDEN_HELO_NAME");
  });
});
