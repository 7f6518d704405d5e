import { describe, expect, test } from "bun:test";
import { SAMPLE_DAY_S, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";

const start = createReportQueries();
const DAY_S = 86_400;
const ALL = { fromDay: 0, toDay: 99_999 };
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;

const startWith = async (rows: readonly SampleRow[]) => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ rows });
  return { ...harness, domain, find: (key: string) => harness.sourcesOf(domain).find(key, ALL) };
};

describe("forwarded mail", () => {
  const google: SampleRow = { ip: "8.8.8.8", count: 100, dkimResults: ["example.com pass google"] };
  const kept = { ip: "9.9.9.9", count: 3, dkimResults: ["example.com pass google"], spf: "fail" } as const;

  test("whose signature survived is a forwarder's, not a sender of the domain's", async () => {
    const { find, nameAddress } = await startWith([google, { ...kept, spfResults: ["alumni.example pass"] }]);
    nameAddress("8.8.8.8", "mail-wr1-f1.google.com");
    nameAddress("9.9.9.9", "mx.alumni.example");
    expect(find("service:google-workspace")).toMatchObject({ classification: "authorized", messages: 100 });
    expect(find("org:alumni.example")).toMatchObject({ classification: "forwarder", messages: 3, aligned: 3 });
  });

  test("of another account at the same provider is distinguished from the domain's own", async () => {
    const others = { ...UNPROVEN, ip: "8.8.4.4", count: 5, spfResults: ["gmail.com pass"], reasons: ["forwarded"] };
    const { find, nameAddress } = await startWith([google, others, { ...kept, ip: "8.8.4.5", spfResults: [] }]);
    for (const ip of ["8.8.8.8", "8.8.4.4", "8.8.4.5"]) nameAddress(ip, "mail-wr1-f1.google.com");
    expect(find("service:google-workspace")).toMatchObject({ messages: 103, aligned: 103 });
    expect(find("service:google-workspace/others")).toMatchObject({ classification: "forwarder", messages: 5 });
  });

  test("of a provider that the domain does not use is one source, also where a reporter leaves results out", async () => {
    const others = { ...UNPROVEN, count: 5, reasons: ["forwarded"] };
    const { sourcesOf, domain, nameAddress } = await startWith([
      { ...others, ip: "8.8.4.4", spfResults: ["gmail.com pass"] },
      { ip: "8.8.4.5", count: 2, dkimResults: [], spf: "fail", spfResults: [] },
    ]);
    for (const ip of ["8.8.4.4", "8.8.4.5"]) nameAddress(ip, "mail-wr1-f1.google.com");
    expect(
      sourcesOf(domain)
        .sources(ALL)
        .map(({ key }) => key),
    ).toEqual(["service:google-workspace/others"]);
  });

  test("of a mailing list is a forwarder's, although receivers do not say so", async () => {
    const { find } = await startWith([
      { ...UNPROVEN, ip: "9.9.9.9", count: 8, spfResults: ["lists.club.example pass"] },
    ]);
    expect(find("org:club.example")?.classification).toBe("forwarder");
  });

  test("does not make a forwarder of a sender whose signed mail is replayed later in masses", async () => {
    const mine = {
      ip: "9.9.9.9",
      count: 50,
      dkimResults: ["example.com pass s1"],
      spf: "fail",
      spfResults: ["esp.example pass"],
    } as const;
    const { give, find, nameAddress } = await startWith([mine]);
    const replayed = { ...mine, ip: "5.5.5.5", count: 5_000, spfResults: ["evil.example pass"] };
    await give({ begin: SAMPLE_DAY_S + 8 * DAY_S, rows: [mine, replayed] });
    nameAddress("9.9.9.9", null);
    nameAddress("5.5.5.5", null);
    expect(find("org:esp.example")).toMatchObject({ messages: 100, classification: "authorized" });
  });

  test("is not found by counts that only untrusted reports give", async () => {
    const mine = {
      ip: "9.9.9.9",
      count: 50,
      dkimResults: ["example.com pass s1"],
      spf: "fail",
      spfResults: ["esp.example pass"],
    } as const;
    const claimed = { ...mine, ip: "5.5.5.5", count: 5_000, spfResults: ["evil.example pass"] };
    const { find, nameAddress, db } = await startWith([mine, claimed]);
    db.sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 5000");
    nameAddress("9.9.9.9", null);
    nameAddress("5.5.5.5", null);
    expect(find("org:esp.example")?.classification).toBe("authorized");
  });

  test("is a sender's own when nobody else signs so, or it signs for much of the mail", async () => {
    const some = { ...kept, count: 30, spfResults: ["esp.example pass"] };
    const { find, nameAddress } = await startWith([google, some]);
    nameAddress("8.8.8.8", "mail-wr1-f1.google.com");
    expect(find("org:esp.example")?.classification).toBe("authorized");
  });
});

describe("what only untrusted reports say of an address that trusted ones name", () => {
  const CLAIMED = { ip: "5.5.5.1", count: 7_000 } as const;
  const claim = async (row: SampleRow) => {
    const harness = await startWith([
      { ip: "8.8.8.8", count: 100 },
      { ...UNPROVEN, ip: "5.5.5.1" },
      { ...UNPROVEN, ip: "5.5.5.2" },
      { ...CLAIMED, ...row },
    ]);
    const { sqlite } = harness.db;
    sqlite.run("UPDATE dmarc_daily SET is_trusted = 0 WHERE messages = 7000");
    sqlite.run(
      "UPDATE dmarc_sources SET is_vouched = 0 WHERE number IN (SELECT source FROM dmarc_daily WHERE NOT is_trusted)",
    );
    for (const ip of ["5.5.5.1", "5.5.5.2", "5.5.5.9", "8.8.8.8"]) harness.nameAddress(ip, null);
    return harness;
  };

  test.each<[string, SampleRow]>([
    ["that it signs for the domain", {}],
    ["that it passes SPF elsewhere", { ...UNPROVEN, spfResults: ["evil.example pass"] }],
    ["that its neighbour signs for the domain", { ip: "5.5.5.9" }],
  ])("neither names it nor protects it: %s", async (_, row) => {
    const { find } = await claim(row);
    expect(find("unauthenticated")).toMatchObject({ messages: 2, classification: "threat" });
  });

  test("does not make a service of the domain's own server", async () => {
    const { find } = await claim({ ...UNPROVEN, ip: "8.8.8.8", spfResults: ["em.sendgrid.net pass"] });
    expect(find("own")?.aligned).toBe(100);
  });

  test("does not give a selector to somebody else", async () => {
    const { find } = await claim({ ip: "5.5.5.9", spfResults: ["em.sendgrid.net pass"], spf: "fail" });
    expect(find("own")?.aligned).toBe(100);
  });

  test("counts where no trusted report ever came", async () => {
    const { find, db, nameAddress } = await startWith([{ ip: "5.5.5.1" }]);
    db.sqlite.run("UPDATE dmarc_sources SET is_vouched = 0");
    nameAddress("5.5.5.1", null);
    expect(find("own")?.messages).toBe(1);
  });
});
