import { describe, expect, test } from "bun:test";
import { SAMPLE_DAY_S, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { createReportQueries, MADE_DAY } from "../../../testing/report-queries.ts";

const start = createReportQueries();
const ALL = { fromDay: 0, toDay: 99_999 };
/** A range in which nothing was sent. */
const EMPTY = { fromDay: MADE_DAY + 50, toDay: MADE_DAY + 60 };
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;
const GOOGLE: SampleRow = { ip: "8.8.8.8", count: 100, dkimResults: ["example.com pass google"] };
const GOOGLE_NAME = "mail-wr1-f1.google.com";
/** Signed with the same selector, and not sent for the domain. */
const SAME_SIGNATURE = { dkimResults: ["example.com pass google"], spf: "fail", spfResults: [] } as const;

const startWith = async (rows: readonly SampleRow[], names: Readonly<Record<string, string | null>>) => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ begin: SAMPLE_DAY_S, rows });
  for (const [ip, name] of Object.entries(names)) harness.nameAddress(ip, name);
  const classes = (of = domain) =>
    new Map(
      harness
        .sourcesOf(of)
        .sources(ALL)
        .map(({ key, classification }) => [key, classification]),
    );
  return {
    ...harness,
    domain,
    classes,
    find: (key: string, range = ALL) => harness.sourcesOf(domain).find(key, range),
  };
};

describe("unauthenticated mail is no threat", () => {
  test("from an address with a signature that was forwarded", async () => {
    const rows = [GOOGLE, { ...SAME_SIGNATURE, ip: "5.5.5.5" }, { ...UNPROVEN, ip: "5.5.5.5" }];
    const { classes } = await startWith(rows, { "8.8.8.8": GOOGLE_NAME, "5.5.5.5": null });
    expect(classes().get("net:5.5.5.0/24")).toBe("forwarder");
    expect(classes().has("unauthenticated")).toBe(false);
  });

  test("when the reporter counts it as aligned, whatever checks it lists", async () => {
    const row: SampleRow = { ip: "5.5.5.5", spf: "fail", dkimResults: ["example.com fail s1"], spfResults: [] };
    const { classes } = await startWith([row], { "5.5.5.5": null });
    expect(classes()).toEqual(new Map([["net:5.5.5.0/24", "authorized"]]));
  });

  test("from the network of an own server that signs as a service does", async () => {
    const own = { ...SAME_SIGNATURE, ip: "5.5.5.1", count: 3 };
    const names = { "8.8.8.8": GOOGLE_NAME, "5.5.5.1": "mx.example.com", "5.5.5.2": null };
    const { classes } = await startWith([GOOGLE, own, { ...UNPROVEN, ip: "5.5.5.2" }], names);
    expect(classes().get("net:5.5.5.0/24")).toBe("unknown");
  });
});

test("a range without mail has no unauthenticated mail, and calls nobody a forwarder", async () => {
  const rows = [
    { ...SAME_SIGNATURE, ip: "5.5.5.5", spfResults: ["esp.example pass"] },
    GOOGLE,
    { ...UNPROVEN, ip: "6.6.6.6" },
  ];
  const { find } = await startWith(
    rows.map((row) => (row.ip === "8.8.8.8" ? { ...row, ...SAME_SIGNATURE } : row)),
    { "8.8.8.8": GOOGLE_NAME, "5.5.5.5": null, "6.6.6.6": null },
  );
  expect(find("unauthenticated")?.messages).toBe(1);
  expect(find("unauthenticated", EMPTY)).toBeUndefined();
  expect(find("service:google-workspace", EMPTY)?.messages).toBe(0);
});

describe("a sender of little mail with the signature of another is no forwarder", () => {
  test("when it passes SPF for the domain", async () => {
    const row = { ...SAME_SIGNATURE, ip: "5.5.5.5", spf: "pass", spfResults: ["example.com pass"] } as const;
    const { classes } = await startWith([GOOGLE, row], { "8.8.8.8": GOOGLE_NAME, "5.5.5.5": "relay.hoster.example" });
    expect(classes().get("org:hoster.example")).toBe("authorized");
  });

  test("when the reporter leaves selectors out, and it has a selector of its own", async () => {
    const esp = { ...SAME_SIGNATURE, ip: "5.5.5.5", spfResults: ["esp.example pass"] } as const;
    const rows = [
      { ...GOOGLE, dkimResults: ["example.com pass"] },
      { ...esp, dkimResults: ["example.com pass"], count: 2 },
      { ...esp, dkimResults: ["example.com pass esp1"] },
    ];
    const { classes } = await startWith(rows, { "8.8.8.8": GOOGLE_NAME, "5.5.5.5": null });
    expect(classes().get("org:esp.example")).toBe("authorized");
  });
});

test("what only untrusted reports say does not give the selector of an own server to a service", async () => {
  const own: SampleRow = { ip: "5.5.5.5", dkimResults: ["example.com pass mail"], spf: "fail", spfResults: [] };
  const claimed = { ...own, ip: "6.6.6.6", count: 7_000, spfResults: ["em.sendgrid.net pass"] };
  const { find, db } = await startWith([own, claimed], { "5.5.5.5": null, "6.6.6.6": null });
  db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 7000");
  db.sqlite.run("UPDATE dmarc_sources SET is_vouched = 0 WHERE key LIKE '6.6.6.6 %'");
  expect(find("own")?.messages).toBe(1);
});

test("a rule that does not fit all of a source leaves its class as it is", async () => {
  const rows = ["5.5.5.5", "5.5.6.5"].map((ip) => ({ ...UNPROVEN, ip }));
  const { domain, classes } = await startWith(rows, { "5.5.5.5": "a.host.example", "5.5.6.5": "b.host.example" });
  const sourceRules = [{ network: "5.5.5.0/24", classification: "authorized" as const }];
  expect(classes({ ...domain, sourceRules }).get("org:host.example")).toBe("unknown");
});

test("the domain's own account at a provider is not taken for another one's", async () => {
  const of = (tenant: string): SampleRow => ({
    ...UNPROVEN,
    ip: "40.107.1.1",
    dkimResults: [`${tenant}.onmicrosoft.com pass`],
  });
  const names = { "40.107.1.1": "mail-db1.outbound.protection.outlook.com" };
  const connecting: SampleRow = { ip: "40.107.1.1", dkimResults: ["example.com pass s1"] };
  for (const more of [[], [connecting]]) {
    const keysOf = async (tenant: string) => [...(await startWith([of(tenant), ...more], names)).classes().keys()];
    expect((await keysOf("example")).filter((key) => key.endsWith("/others"))).toEqual([]);
    expect((await keysOf("stranger")).filter((key) => key.endsWith("/others"))).toHaveLength(1);
  }
});

test("a rule makes a network stand for itself, unless it calls it the threat that it is taken for", async () => {
  const { domain, classes } = await startWith([{ ...UNPROVEN, ip: "5.5.5.5" }], { "5.5.5.5": null });
  const withRule = (classification: "threat" | "authorized") => ({
    ...domain,
    sourceRules: [{ network: "5.5.5.0/24", classification }],
  });
  expect(classes(withRule("threat"))).toEqual(new Map([["unauthenticated", "threat"]]));
  expect(classes(withRule("authorized"))).toEqual(new Map([["net:5.5.5.0/24", "authorized"]]));
});
