import { describe, expect, test } from "bun:test";
import { MADE_DAY_S, type MadeRow } from "../../testing/dmarc-reports.ts";
import { createReadingWorlds, MADE_DAY } from "../../testing/reading-world.ts";
import { readRecords } from "./records.ts";
import { readReports } from "./reports.ts";

const start = createReadingWorlds();
const DAY_S = 86_400;
const ALL = { fromDay: 0, toDay: 99_999 };
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;

const startWith = async (rows: readonly MadeRow[], name = "example.com") => {
  const world = start();
  const domain = world.enrol(name);
  await world.give({ domain: name, rows });
  const find = (key: string, range = ALL) => world.reader.find(domain, key, range);
  const say = (key: string, classification: "authorized" | "threat" | "forwarder", atMs: number): void =>
    world.db.transact((tx) => world.store.setWord(tx, domain.number, { key, classification, atMs }));
  /** Reports of ordinary mail about each of the days that follow the first one; it is the last of them then. */
  const giveDays = async (days: number): Promise<void> => {
    await world.clock.advance((MADE_DAY_S + (days + 1) * DAY_S) * 1000 - world.clock.nowMs());
    for (let day = 1; day <= days; day += 1) await world.give({ domain: name, begin: MADE_DAY_S + day * DAY_S });
  };
  return { ...world, domain, find, say, giveDays };
};

describe("addresses without proof", () => {
  const rows = [
    { ...UNPROVEN, ip: "5.5.5.1", count: 1 },
    { ...UNPROVEN, ip: "5.5.5.2", count: 2 },
    { ...UNPROVEN, ip: "5.5.6.1", count: 4 },
    { ...UNPROVEN, ip: "2606:4700::1", count: 8 },
    { ...UNPROVEN, ip: "2606:4700:0:1::1", count: 16 },
  ];

  test("are grouped by network, and by name as soon as it is known to lead back", async () => {
    const { reader, domain, nameAddress } = await startWith(rows);
    const shown = () => reader.sources(domain, ALL).map(({ key, kind, messages }) => [key, kind, messages]);
    expect(shown()).toEqual([
      ["net:2606:4700::/48", "network", 24],
      ["net:5.5.6.0/24", "network", 4],
      ["net:5.5.5.0/24", "network", 3],
    ]);
    nameAddress("5.5.5.2", "a.host.example");
    nameAddress("5.5.6.1", "b.host.example");
    nameAddress("5.5.5.1", "c.host.example", false);
    expect(shown()).toEqual([
      ["net:2606:4700::/48", "network", 24],
      ["ptr:host.example", "reverse", 6],
      ["net:5.5.5.0/24", "network", 1],
    ]);
  });

  test("are a group from its first day to its last, whatever the range", async () => {
    const { give, find } = await startWith(rows);
    await give({ begin: MADE_DAY_S - 9 * DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.2" }] });
    await give({ begin: MADE_DAY_S + 3 * DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.1" }] });
    const range = { fromDay: MADE_DAY, toDay: MADE_DAY };
    expect(find("net:5.5.5.0/24", range)).toMatchObject({
      ...{ messages: 3, first_day: "2025-12-23", last_day: "2026-01-04" },
      addresses: [{ ip: "5.5.5.1" }, { ip: "5.5.5.2" }],
    });
    expect(find("net:5.5.5.0/24", { fromDay: 1, toDay: 2 })).toMatchObject({ messages: 0, aligned_percent: null });
  });

  test("are a threat only when the DNS was asked about all of them, and nothing aligned comes from beside", async () => {
    const { find, nameAddress, give, giveDays } = await startWith(rows);
    await giveDays(7);
    const classification = () => find("net:5.5.5.0/24")?.classification;
    nameAddress("5.5.5.1", null);
    expect(classification()).toBe("unknown");
    nameAddress("5.5.5.2", "forged.example", false);
    expect(classification()).toBe("threat");
    nameAddress("5.5.5.2", "mail.example.com", false);
    expect(classification()).toBe("unknown");
    nameAddress("5.5.5.2", null);
    await give({ rows: [{ ip: "5.5.5.99" }] });
    expect(classification()).toBe("unknown");
  });

  test("are no threat beside hosts that the domain's own SPF record names, nor beside aligned ones without proof", async () => {
    for (const beside of [
      { ip: "5.5.5.99", dkimResults: [], dkim: "fail" },
      { ip: "5.5.5.99", dkimResults: [], spfResults: [] },
    ] as const) {
      const { find, nameAddress, giveDays } = await startWith([...rows, beside]);
      await giveDays(7);
      for (const ip of ["5.5.5.1", "5.5.5.2", "5.5.5.99"]) nameAddress(ip, null);
      nameAddress("5.5.5.99", "beside.example");
      expect(find("net:5.5.5.0/24")?.classification).toBe("unknown");
    }
  });

  test("are no threat while they may come again: reports of a week without them have to be there", async () => {
    const { find, nameAddress, giveDays } = await startWith(rows);
    for (const ip of ["5.5.5.1", "5.5.5.2"]) nameAddress(ip, null);
    const classification = () => find("net:5.5.5.0/24", { fromDay: MADE_DAY, toDay: MADE_DAY })?.classification;
    expect(classification()).toBe("unknown");
    await giveDays(6);
    expect(classification()).toBe("unknown");
    await giveDays(7);
    expect(classification()).toBe("threat");
  });

  test.each([
    [2, "threat"],
    [3, "unknown"],
  ] as const)("that come again after %i days are in any range %s", async (days, classification) => {
    const { find, nameAddress, give, giveDays } = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
    await giveDays(12);
    await give({ begin: MADE_DAY_S + days * DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.2" }] });
    for (const ip of ["5.5.5.1", "5.5.5.2"]) nameAddress(ip, null);
    for (const range of [ALL, { fromDay: MADE_DAY, toDay: MADE_DAY }])
      expect(find("net:5.5.5.0/24", range)?.classification).toBe(classification);
  });

  test("are listed as they are found one by one, whatever the range", async () => {
    const { reader, domain, find, give, giveDays, nameAddress } = await startWith(rows);
    await giveDays(5);
    await give({ begin: MADE_DAY_S + 4 * DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.7", count: 5 }] });
    nameAddress("5.5.5.1", null);
    const range = { fromDay: MADE_DAY + 4, toDay: MADE_DAY + 4 };
    const listed = reader.sources(domain, range).find(({ key }) => key === "net:5.5.5.0/24");
    expect(listed).toEqual(find("net:5.5.5.0/24", range));
    expect(listed).toMatchObject({ messages: 5, first_day: "2026-01-01", last_day: "2026-01-05" });
    expect(listed?.addresses).toHaveLength(3);
  });

  test("show eight of theirs at most, those seen last first", async () => {
    const { give, find } = await startWith(Array.from({ length: 9 }, (_, n) => ({ ...UNPROVEN, ip: `5.5.5.${n}` })));
    await give({ begin: MADE_DAY_S + DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.8" }] });
    const addresses = find("net:5.5.5.0/24")?.addresses ?? [];
    expect(addresses).toHaveLength(8);
    expect(addresses[0]).toEqual({ ip: "5.5.5.8", reverse_name: null, confirmed: false });
  });

  describe("take the word that was given to their network", () => {
    const named = async () => {
      const world = await startWith(rows);
      for (const ip of ["5.5.5.1", "5.5.5.2", "5.5.6.1"]) world.nameAddress(ip, `n.host.example`);
      return { ...world, classified: () => world.find("ptr:host.example")?.classification, now: world.clock.nowMs() };
    };

    test("when it covers all of their addresses, and their own before it", async () => {
      const { classified, find, say, now } = await named();
      say("net:5.5.5.0/24", "threat", now);
      expect(classified()).toBe("unknown");
      say("net:5.5.6.0/24", "threat", now + 1);
      expect(find("ptr:host.example")).toMatchObject({ classification: "threat", classified_by: "user" });
      say("ptr:host.example", "authorized", now);
      expect(classified()).toBe("authorized");
    });

    test("when all that was said is the same", async () => {
      const { classified, say, now } = await named();
      say("net:5.5.5.0/24", "authorized", now);
      say("net:5.5.6.0/24", "threat", now + 1);
      expect(classified()).toBe("unknown");
    });

    test("only when they were seen before it was given", async () => {
      const { classified, say, now } = await named();
      say("net:5.5.5.0/24", "authorized", now);
      say("net:5.5.6.0/24", "authorized", now - 1);
      expect(classified()).toBe("unknown");
    });

    test.each(["authorized", "threat"] as const)(
      "so that a stranger who comes later to a network that is %s is not covered, nor is a name that it joins",
      async (word) => {
        const { find, say, give, giveDays, nameAddress, clock } = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
        say("net:5.5.5.0/24", word, clock.nowMs());
        nameAddress("5.5.5.1", "mail.host.example");
        expect(find("ptr:host.example")?.classified_by).toBe("user");
        await giveDays(60);
        await give({ rows: [{ ...UNPROVEN, ip: "5.5.5.99", count: 9000 }] });
        nameAddress("5.5.5.99", "mail.attacker.example");
        expect(find("ptr:attacker.example")).toMatchObject({ classification: "unknown", classified_by: "service" });
        expect(find("ptr:host.example")?.classified_by).toBe("user");
        nameAddress("5.5.5.99", "mail.host.example");
        expect(find("ptr:host.example")).toMatchObject({ classification: "unknown", classified_by: "service" });
      },
    );
  });

  test("give the word of a network back only when all of the network is theirs", async () => {
    const { reader, domain, nameAddress } = await startWith(rows);
    const source = { key: "ptr:host.example", kind: "reverse" } as const;
    nameAddress("5.5.5.1", "a.host.example");
    nameAddress("5.5.5.2", "b.other.example");
    expect(reader.wordKeysOf(domain, source)).toEqual(["ptr:host.example"]);
    nameAddress("5.5.5.2", "b.host.example");
    expect(reader.wordKeysOf(domain, source)).toEqual(["ptr:host.example", "net:5.5.5.0/24"]);
  });
});

describe("own mail is no forwarder's, and holds enforcement up:", () => {
  const fails = { count: 500, dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;
  test.each<[string, MadeRow, string | null]>([
    [
      "PHP mail of a website at a hoster",
      { ...fails, ip: "5.5.5.1", spfResults: ["p3plcpnl0123.prod.phx3.secureserver.net pass"] },
      null,
    ],
    ["a home line", { ...fails, ip: "90.1.2.3" }, "lfbn-par-1-2-3.w90-1.abo.wanadoo.fr"],
    ["a rented server with its default name", { ...fails, ip: "51.1.2.3" }, "vps-1a2b3c4d.vps.ovh.net"],
    [
      "a tenant of Microsoft 365",
      { ...fails, ip: "40.1.2.3", dkimResults: ["a.onmicrosoft.com pass"], spfResults: ["a.onmicrosoft.com pass"] },
      null,
    ],
  ])("%s", async (_, row, name) => {
    const { reader, domain, nameAddress } = await startWith([{ count: 1000 }, row]);
    if (name !== null) nameAddress(row.ip ?? "", name);
    const [worst] = reader.sources(domain, ALL);
    expect(worst).toMatchObject({ failing: 500, classification: "unknown" });
  });
});

test("nobody is authorized by a report about another domain's From", async () => {
  const evil = { count: 5, headerFrom: "evil.example", dkimResults: ["evil.example pass"] };
  const { reader, domain, nameAddress } = await startWith([
    { ...evil, ip: "5.5.5.1", spfResults: ["evil.example pass"] },
    { ...evil, ip: "5.5.5.2", spfResults: [] },
  ]);
  nameAddress("5.5.5.2", "mail.evil.example");
  expect(reader.sources(domain, ALL).map(({ key, classification }) => [key, classification])).toEqual([
    ["ptr:evil.example", "unknown"],
    ["spf:evil.example", "unknown"],
  ]);
});

test("an aligned signature is shown with the service whose hosts send, when all named ones are of the same", async () => {
  const { find, nameAddress } = await startWith([{ ip: "8.8.8.8" }, { ip: "8.8.4.4" }, { ip: "9.9.9.9" }]);
  expect(find("dkim:example.com")).toMatchObject({ name: "example.com", service: null, classification: "authorized" });
  nameAddress("8.8.8.8", "a.sendgrid.net");
  nameAddress("8.8.4.4", "b.sendgrid.net");
  nameAddress("9.9.9.9", "mail.google.com", false);
  expect(find("dkim:example.com")).toMatchObject({ service: "SendGrid", services: ["SendGrid"] });
  nameAddress("9.9.9.9", "mail.google.com");
  expect(find("dkim:example.com")).toMatchObject({ service: null, services: ["SendGrid", "Google Workspace"] });
});

test("an envelope is shown with the services whose hosts send", async () => {
  const row = { ...UNPROVEN, spfResults: ["bounce.shop.example pass"] };
  const { find, nameAddress } = await startWith([{ ...row, ip: "8.8.8.8" }]);
  expect(find("spf:bounce.shop.example")).toMatchObject({ service: null, services: [] });
  nameAddress("8.8.8.8", "a.sendgrid.net");
  expect(find("spf:bounce.shop.example")).toMatchObject({ service: null, services: ["SendGrid"] });
});

test("the domain's own hosts are misconfigured, not strangers, also those of another name of its organisation", async () => {
  const row = { ...UNPROVEN, ip: "5.5.5.1" };
  const { find, nameAddress } = await startWith(
    [row, { ...row, ip: "9.9.9.9", spfResults: ["app.example.co.uk pass"] }],
    "mail.example.co.uk",
  );
  nameAddress("5.5.5.1", "srv.example.co.uk");
  expect(find("ptr:example.co.uk")?.classification).toBe("misconfigured");
  expect(find("spf:app.example.co.uk")?.classification).toBe("misconfigured");
});

test("sources that had no place of their own are shown together", async () => {
  const { reader, domain, db, find } = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
  db.sqlite.run("UPDATE dmarc_sources SET key = 'other'");
  expect(find("other")).toMatchObject({ kind: "network", name: "other sources", messages: 1 });
  expect(reader.numbersOf(domain, "other")).toHaveLength(1);
});

test("another domain's sources, words and addresses are its own", async () => {
  const { reader, enrol, say, domain, db, store } = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
  const other = enrol("other.example");
  say("net:5.5.5.0/24", "threat", 1);
  expect(reader.sources(other, ALL)).toEqual([]);
  expect(reader.find(other, "net:5.5.5.0/24", ALL)).toBeUndefined();
  expect(reader.numbersOf(other, "net:5.5.5.0/24")).toEqual([]);
  db.transact((tx) => store.removeWord(tx, other.number, "net:5.5.5.0/24"));
  expect(store.words(domain.number)).toHaveLength(1);
});

test("a cursor from a later range goes on at the end of this one", async () => {
  const { records, reports, domain, give } = await startWith([{}]);
  await give({ begin: MADE_DAY_S + 5 * DAY_S });
  const range = { fromDay: MADE_DAY, toDay: MADE_DAY };
  const page = { after: `${MADE_DAY + 9}.1.1.1`, limit: 5 };
  const place = { domain: domain.number };
  expect((await readRecords(records, { place, range, filters: {} }, page)).records.map(({ date }) => date)).toEqual([
    "2026-01-01",
  ]);
  const asked = { domain: domain.number, range, filters: {} };
  const found = await readReports(reports, asked, { after: `${MADE_DAY + 9}.1`, limit: 5 });
  expect(found.reports.map(({ date }) => date)).toEqual(["2026-01-01"]);
});
