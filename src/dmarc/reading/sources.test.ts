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
  return { ...world, domain, find, say };
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
    const { find, nameAddress, give } = await startWith(rows);
    const classification = () => find("net:5.5.5.0/24")?.classification;
    nameAddress("5.5.5.1", null);
    expect(classification()).toBe("unknown");
    nameAddress("5.5.5.2", "forged.example", false);
    expect(classification()).toBe("threat");
    await give({ rows: [{ ip: "5.5.5.99" }] });
    expect(classification()).toBe("unknown");
  });

  test("show eight of theirs at most, those seen last first", async () => {
    const { give, find } = await startWith(Array.from({ length: 9 }, (_, n) => ({ ...UNPROVEN, ip: `5.5.5.${n}` })));
    await give({ begin: MADE_DAY_S + DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.8" }] });
    const addresses = find("net:5.5.5.0/24")?.addresses ?? [];
    expect(addresses).toHaveLength(8);
    expect(addresses[0]).toEqual({ ip: "5.5.5.8", reverse_name: null, confirmed: false });
  });

  test("take the latest word that was given to one of their networks", async () => {
    const { find, nameAddress, say } = await startWith(rows);
    for (const ip of ["5.5.5.1", "5.5.5.2", "5.5.6.1"]) nameAddress(ip, `n.host.example`);
    say("net:5.5.5.0/24", "threat", 2);
    say("net:5.5.6.0/24", "forwarder", 1);
    expect(find("ptr:host.example")).toMatchObject({ classification: "threat", classified_by: "user" });
    say("net:5.5.6.0/24", "forwarder", 3);
    expect(find("ptr:host.example")?.classification).toBe("forwarder");
    say("ptr:host.example", "authorized", 0);
    expect(find("ptr:host.example")?.classification).toBe("authorized");
  });
});

test("an aligned signature is shown with the service whose hosts send, when all named ones are of the same", async () => {
  const { find, nameAddress } = await startWith([{ ip: "8.8.8.8" }, { ip: "8.8.4.4" }, { ip: "9.9.9.9" }]);
  expect(find("dkim:example.com")).toMatchObject({ name: "example.com", service: null, classification: "authorized" });
  nameAddress("8.8.8.8", "a.sendgrid.net");
  nameAddress("8.8.4.4", "b.sendgrid.net");
  nameAddress("9.9.9.9", "mail.google.com", false);
  expect(find("dkim:example.com")?.service).toBe("SendGrid");
  nameAddress("9.9.9.9", "mail.google.com");
  expect(find("dkim:example.com")?.service).toBeNull();
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
