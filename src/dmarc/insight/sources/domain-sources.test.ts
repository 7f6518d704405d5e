import { DomainSources, inAdviceTurn } from "./domain-sources.ts";
import { settle } from "../../../testing/clock.ts";
import { nextTurn } from "../../../foundation/base/clock.ts";
import { describe, expect, test } from "bun:test";
import { SAMPLE_DAY_S, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { createReportQueries, MADE_DAY } from "../../../testing/report-queries.ts";
import { readRecords } from "../queries/records.ts";
import { readReports } from "../queries/reports.ts";

const start = createReportQueries();
const DAY_S = 86_400;
const ALL = { fromDay: 0, toDay: 99_999 };
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;

const startWith = async (rows: readonly SampleRow[], name = "example.com") => {
  const harness = start();
  const domain = harness.enrol(name);
  await harness.give({ domain: name, rows });
  const find = (key: string, range = ALL) => harness.sourcesOf(domain).find(key, range);
  const say = (key: string, classification: "authorized" | "threat" | "forwarder", atMs: number): void =>
    harness.db.transact((tx) =>
      harness.store.setUserClassification(tx, domain.number, { key, classification, atMs, note: null }),
    );
  return { ...harness, domain, find, say };
};

describe("unauthenticated mail", () => {
  const rows = [
    { ...UNPROVEN, ip: "5.5.5.1", count: 1 },
    { ...UNPROVEN, ip: "5.5.5.2", count: 2 },
    { ...UNPROVEN, ip: "5.5.6.1", count: 4 },
    { ...UNPROVEN, ip: "2606:4700::1", count: 8 },
    { ...UNPROVEN, ip: "2606:4700:0:1::1", count: 16 },
  ];
  const IPS = rows.map(({ ip }) => ip);
  const shown = ({ sourcesOf, domain }: Awaited<ReturnType<typeof startWith>>, options = {}) =>
    sourcesOf(domain)
      .sources(ALL, options)
      .map(({ key, classification, messages }) => [key, classification, messages]);

  test("is pending until the DNS said what the names of its addresses are", async () => {
    const harness = await startWith(rows);
    expect(shown(harness)).toEqual([["pending", "unknown", 31]]);
    expect(harness.find("pending")).toMatchObject({ lookups_pending: true, address_count: 5, network_count: 3 });
    harness.nameAddress("5.5.5.1", null);
    expect(shown(harness)).toEqual([
      ["pending", "unknown", 30],
      ["unauthenticated", "threat", 1],
    ]);
  });

  test("of a network that is a source of its own has another key than that source, in every view", async () => {
    // The receiver says that DKIM passed, and not for which domain.
    const harness = await startWith([
      { ...UNPROVEN, dkim: "pass", ip: "5.5.5.1", count: 1 },
      { ...UNPROVEN, ip: "5.5.5.2", count: 2 },
    ]);
    for (const ip of ["5.5.5.1", "5.5.5.2"]) harness.nameAddress(ip, null);
    const [own, rest] = ["net:5.5.5.0/24", "net:5.5.5.0/24/unauthenticated"];
    const byKey = (sources: ReturnType<typeof shown>) => sources.toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1));
    expect(byKey(shown(harness))).toEqual([
      [own, "authorized", 1],
      ["unauthenticated", "threat", 2],
    ]);
    expect(byKey(shown(harness, { byNetwork: true }))).toEqual([
      [own, "authorized", 1],
      [rest, "threat", 2],
    ]);
    for (const [key, messages] of [
      [own, 1],
      [rest, 2],
      ["unauthenticated", 2],
    ] as const) {
      expect(harness.find(key)).toMatchObject({ key, messages });
      expect(harness.sourcesOf(harness.domain).numbersOf([key], ALL)).toHaveLength(1);
    }
    expect(harness.find(rest)).toMatchObject({ kind: "network", name: "5.5.5.0/24 (unauthenticated mail)" });
    harness.say(rest, "forwarder", 1);
    const apart = [
      [own, "authorized", 1],
      [rest, "forwarder", 2],
    ];
    expect(byKey(shown(harness))).toEqual(apart);
    harness.say(own, "authorized", 2);
    expect(byKey(shown(harness))).toEqual(apart);
  });

  test("of addresses without a proper name is a threat at once, shown as one, and by network when asked for", async () => {
    const harness = await startWith(rows);
    for (const ip of IPS) harness.nameAddress(ip, null);
    harness.nameAddress("5.5.6.1", "5-5-6-1.dyn.isp.example");
    harness.nameAddress("5.5.5.2", "not.leading.back", false);
    expect(shown(harness)).toEqual([["unauthenticated", "threat", 31]]);
    expect(harness.find("unauthenticated")).toMatchObject({
      kind: "unauthenticated",
      name: "Unauthenticated mail from 3 networks",
      lookups_pending: false,
    });
    expect(shown(harness, { byNetwork: true })).toEqual([
      ["net:2606:4700::/48", "threat", 24],
      ["net:5.5.6.0/24", "threat", 4],
      ["net:5.5.5.0/24", "threat", 3],
    ]);
  });

  test("of servers with a name is an organization's, and unknown", async () => {
    const harness = await startWith(rows);
    for (const ip of IPS) harness.nameAddress(ip, null);
    harness.nameAddress("5.5.5.1", "a.host.example");
    harness.nameAddress("5.5.6.1", "b.host.example");
    expect(shown(harness)).toEqual([
      ["org:host.example", "unknown", 5],
      ["unauthenticated", "threat", 26],
    ]);
  });

  test.each<[string, SampleRow]>([
    ["that was aligned once", { ip: "5.5.5.1" }],
    ["that proved another name", { ...UNPROVEN, ip: "5.5.5.1", spfResults: ["other.example pass"] }],
    ["of a network that the domain's own mail comes from", { ip: "5.5.5.99" }],
  ])("is no threat from an address %s", async (_, more) => {
    const harness = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }, more]);
    for (const ip of ["5.5.5.1", "5.5.5.99"]) harness.nameAddress(ip, null);
    expect(
      harness
        .sourcesOf(harness.domain)
        .sources(ALL)
        .map(({ classification }) => classification),
    ).not.toContain("threat");
  });

  test("is no threat when its address was aligned on other days, as a reporter says that leaves the checks out", async () => {
    const row: SampleRow = { ip: "5.5.5.1", dkim: "fail", dkimResults: [], spfResults: [] };
    const harness = await startWith([row]);
    await harness.give({ begin: SAMPLE_DAY_S + 3 * DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.1" }] });
    harness.nameAddress("5.5.5.1", null);
    const later = { fromDay: MADE_DAY + 3, toDay: MADE_DAY + 3 };
    expect(harness.find("own", later)).toMatchObject({ messages: 1, classification: "misconfigured" });
    expect(harness.sourcesOf(harness.domain).sources(later)).toHaveLength(1);
  });

  test("is a threat although a signature was replayed from the same network", async () => {
    const harness = await startWith([
      { ip: "8.8.8.8", count: 100, dkimResults: ["example.com pass google"] },
      { ip: "5.5.5.99", dkimResults: ["example.com pass google"], spf: "fail", spfResults: [] },
      { ...UNPROVEN, ip: "5.5.5.1" },
    ]);
    harness.nameAddress("8.8.8.8", "mail-wr1-f1.google.com");
    for (const ip of ["5.5.5.1", "5.5.5.99"]) harness.nameAddress(ip, null);
    expect(harness.find("unauthenticated")).toMatchObject({ messages: 1, classification: "threat" });
  });

  test("is no threat when its address claims a name of the domain's own", async () => {
    const harness = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
    harness.nameAddress("5.5.5.1", "mail.example.com", false);
    expect(shown(harness)).toEqual([["net:5.5.5.0/24", "unknown", 1]]);
  });

  test("is judged by what an address sent in the range", async () => {
    const forwarded = { ...UNPROVEN, ip: "5.5.5.1", reasons: ["mailing_list"] };
    const harness = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
    await harness.give({ begin: SAMPLE_DAY_S + 3 * DAY_S, rows: [forwarded] });
    harness.nameAddress("5.5.5.1", null);
    expect(harness.find("unauthenticated", { fromDay: MADE_DAY, toDay: MADE_DAY })?.messages).toBe(1);
    expect(harness.find("net:5.5.5.0/24", { fromDay: MADE_DAY + 3, toDay: MADE_DAY + 3 })?.classification).toBe(
      "forwarder",
    );
  });

  test("of a network that the user classified stands for itself", async () => {
    const harness = await startWith(rows);
    for (const ip of IPS) harness.nameAddress(ip, null);
    harness.say("net:5.5.5.0/24", "authorized", 1);
    expect(shown(harness)).toEqual([
      ["net:5.5.5.0/24", "authorized", 3],
      ["unauthenticated", "threat", 28],
    ]);
    harness.say("unauthenticated", "forwarder", 1);
    expect(harness.find("unauthenticated")).toMatchObject({ classification: "forwarder", classified_by: "user" });
  });

  test("of one address that sends for weeks stands for itself, that of many does not", async () => {
    const weekly = async (count: number) => {
      const ips = Array.from({ length: count }, (_, n) => `5.5.${n}.1`);
      const harness = await startWith([{ ip: "8.8.8.8" }]);
      for (let week = 0; week < 4; week++) {
        const rows = ips.map((ip) => ({ ...UNPROVEN, ip, count: 3 }));
        await harness.give({ begin: SAMPLE_DAY_S + week * 7 * DAY_S, rows });
      }
      for (const ip of ips) harness.nameAddress(ip, null);
      return shown(harness).filter(([key]) => key !== "own");
    };
    expect(await weekly(1)).toEqual([["net:5.5.0.0/24", "unknown", 12]]);
    expect(await weekly(3)).toHaveLength(3);
    expect(await weekly(4)).toEqual([["unauthenticated", "threat", 48]]);
  });

  test("that an SPF record lets pass from everywhere is forged all the same", async () => {
    const anywhere = (count: number) =>
      startWith(
        Array.from({ length: count }, (_, n) => ({
          ...UNPROVEN,
          ip: `5.5.${n}.1`,
          count: 4,
          spfResults: ["open.example pass"],
        })),
      );
    const two = await anywhere(2);
    for (const ip of ["5.5.0.1", "5.5.1.1"]) two.nameAddress(ip, null);
    expect(shown(two)).toEqual([["org:open.example", "unknown", 8]]);
    const three = await anywhere(3);
    for (const ip of ["5.5.0.1", "5.5.1.1"]) three.nameAddress(ip, null);
    expect(shown(three)).toEqual([["org:open.example", "unknown", 12]]);
    three.nameAddress("5.5.2.1", null);
    expect(shown(three)).toEqual([["unauthenticated", "threat", 12]]);
  });

  test("of a few named servers is unknown, and of many unrelated ones a threat", async () => {
    const hosts = async (count: number, rows: readonly SampleRow[] = []) => {
      const ips = Array.from({ length: count }, (_, n) => `5.5.${n}.1`);
      const harness = await startWith([...ips.map((ip) => ({ ...UNPROVEN, ip, count: 1 })), ...rows]);
      for (const [n, ip] of ips.entries()) harness.nameAddress(ip, `mail.hotel${n}.example`);
      return harness;
    };
    expect(shown(await hosts(9)).map(([, classification]) => classification)).toEqual(Array(9).fill("unknown"));
    expect(shown(await hosts(10))).toEqual([["unauthenticated", "threat", 10]]);
    const harness = await hosts(10);
    harness.say("org:hotel3.example", "authorized", 1);
    expect(shown(harness)).toEqual([
      ["org:hotel3.example", "authorized", 1],
      ["unauthenticated", "threat", 9],
    ]);
    const own = { ...UNPROVEN, ip: "9.9.9.9", count: 50 };
    const mixed = await hosts(10, [own]);
    mixed.nameAddress("9.9.9.9", "web.own-hoster.example");
    await mixed.give({ begin: SAMPLE_DAY_S + 14 * DAY_S, rows: [own] });
    expect(mixed.find("org:own-hoster.example")?.classification).toBe("unknown");
  });

  test("shows eight addresses at most, those seen last first", async () => {
    const { give, find, nameAddress } = await startWith(
      Array.from({ length: 9 }, (_, n) => ({ ...UNPROVEN, ip: `5.5.5.${n}` })),
    );
    await give({ begin: SAMPLE_DAY_S + DAY_S, rows: [{ ...UNPROVEN, ip: "5.5.5.8" }] });
    for (let n = 0; n < 9; n++) nameAddress(`5.5.5.${n}`, null);
    const addresses = find("unauthenticated")?.addresses ?? [];
    expect(addresses).toHaveLength(8);
    expect(addresses[0]).toMatchObject({ ip: "5.5.5.8", reverse_name: null, confirmed: false });
  });
});

describe("own mail is no forwarder's, and holds enforcement up:", () => {
  const fails = { count: 500, dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;
  test.each<[string, SampleRow, string | null]>([
    [
      "PHP mail of a website at a hoster",
      { ...fails, ip: "5.5.5.1", spfResults: ["p3plcpnl0123.prod.phx3.secureserver.net pass"] },
      null,
    ],
    ["a rented server with its default name", { ...fails, ip: "51.1.2.3" }, "vps-1a2b3c4d.vps.ovh.net"],
    [
      "another account of Microsoft 365",
      { ...fails, ip: "40.1.2.3", dkimResults: ["a.onmicrosoft.com pass"], spfResults: ["a.onmicrosoft.com pass"] },
      null,
    ],
  ])("%s", async (_, row, name) => {
    const { sourcesOf, domain, nameAddress } = await startWith([{ count: 1000 }, row]);
    nameAddress(row.ip ?? "", name);
    const [worst] = sourcesOf(domain).sources(ALL);
    expect(worst).toMatchObject({ failing: 500, classification: "unknown" });
  });
});

test("nobody is authorized by a report about another domain's From", async () => {
  const evil = { count: 5, headerFrom: "evil.example", dkimResults: ["evil.example pass"] };
  const { sourcesOf, domain, nameAddress } = await startWith([
    { ...evil, ip: "5.5.5.1", spfResults: ["evil.example pass"] },
    { ...evil, ip: "5.5.5.2", spfResults: [] },
  ]);
  nameAddress("5.5.5.2", "mail.evil.example");
  expect(
    sourcesOf(domain)
      .sources(ALL)
      .map(({ key, classification }) => [key, classification]),
  ).toEqual([["org:evil.example", "unknown"]]);
});

test("own servers, Google Workspace and SendGrid are three sources, with what authenticates them", async () => {
  const { sourcesOf, domain, nameAddress, find } = await startWith([
    { ip: "8.8.8.8", count: 1, dkimResults: ["example.com pass mail"] },
    { ip: "8.8.4.4", count: 2, dkimResults: ["example.com pass google"] },
    {
      ip: "9.9.9.9",
      count: 4,
      dkimResults: ["example.com pass s1", "sendgrid.info pass smtpapi"],
      spfResults: ["em.example.com pass"],
    },
  ]);
  nameAddress("8.8.8.8", "mx.example.com");
  nameAddress("8.8.4.4", "mail-wr1-f1.google.com");
  nameAddress("9.9.9.9", "o1.ptr1.sendgrid.net");
  expect(
    sourcesOf(domain)
      .sources(ALL)
      .map(({ key, messages }) => [key, messages]),
  ).toEqual([
    ["service:sendgrid", 4],
    ["service:google-workspace", 2],
    ["own", 1],
  ]);
  expect(find("service:sendgrid")).toMatchObject({
    name: "SendGrid",
    service: "SendGrid",
    dkim: [
      { domain: "example.com", selector: "s1", aligned: true, messages: 4 },
      { domain: "sendgrid.info", selector: null, aligned: false, messages: 4 },
    ],
    spf: [{ domain: "em.example.com", messages: 4 }],
  });
});

test("the domain's own hosts are misconfigured, not strangers, also those of another name of its organisation", async () => {
  const row = { ...UNPROVEN, ip: "5.5.5.1" };
  const { find, nameAddress } = await startWith(
    [row, { ...row, ip: "9.9.9.9", spfResults: ["app.example.co.uk pass"] }],
    "mail.example.co.uk",
  );
  nameAddress("5.5.5.1", "srv.example.co.uk");
  expect(find("own")).toMatchObject({ classification: "misconfigured", messages: 2 });
});

test("messages of no single address are shown together", async () => {
  const { sourcesOf, domain, db, find } = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
  db.sqlite.run("UPDATE dmarc_sources SET key = '* -/- - -'");
  expect(find("other")).toMatchObject({ kind: "network", name: "Other addresses", messages: 1, address_count: 0 });
  expect(sourcesOf(domain).numbersOf(["other"], ALL)).toHaveLength(1);
});

test("another domain's sources, words and addresses are its own", async () => {
  const { sourcesOf, enrol, say, domain, db, store } = await startWith([{ ...UNPROVEN, ip: "5.5.5.1" }]);
  const other = enrol("other.example");
  say("net:5.5.5.0/24", "threat", 1);
  expect(sourcesOf(other).sources(ALL)).toEqual([]);
  expect(sourcesOf(other).find("net:5.5.5.0/24", ALL)).toBeUndefined();
  expect(sourcesOf(other).numbersOf(["net:5.5.5.0/24"], ALL)).toEqual([]);
  db.transact((tx) => store.removeUserClassification(tx, other.number, "net:5.5.5.0/24"));
  expect([...store.userClassifications(domain.number)]).toHaveLength(1);
});

test("a cursor from a later range goes on at the end of this one", async () => {
  const { records, reports, domain, give } = await startWith([{}]);
  await give({ begin: SAMPLE_DAY_S + 5 * DAY_S });
  const range = { fromDay: MADE_DAY, toDay: MADE_DAY };
  const page = { after: `${MADE_DAY + 9}.1.1.1`, limit: 5 };
  const scope = { domain: domain.number };
  expect(
    (await readRecords(records, { scope, range, filters: {}, names: new Map() }, page)).records.map(({ date }) => date),
  ).toEqual(["2026-01-01"]);
  const asked = { domain: domain.number, range, filters: {} };
  const found = await readReports(reports, asked, { after: `${MADE_DAY + 9}.1`, limit: 5 });
  expect(found.reports.map(({ date }) => date)).toEqual(["2026-01-01"]);
});

test("sources that are read in several turns of the event loop are the same", async () => {
  const row = (n: number): SampleRow => ({ ...UNPROVEN, ip: `9.${n >> 8}.${n & 255}.1`, count: 1 + (n % 5) });
  const { store, sourcesOf, domain } = await startWith([
    { ip: "8.8.8.8" },
    ...Array.from({ length: 2_500 }, (_, n) => row(n)),
  ]);
  let turns = 0;
  let isOver: boolean = false;
  const reading = (async () => {
    const shown = await DomainSources.read(store, domain, (all) => all.sources(ALL));
    const names = await DomainSources.read(store, domain, (all) => all.names(ALL));
    return { shown, names };
  })().finally(() => {
    isOver = true;
  });
  for (; !isOver; turns++) await nextTurn();
  const { shown, names } = await reading;
  expect(turns).toBeGreaterThan(10);
  const atOnce = sourcesOf(domain);
  expect(shown).toEqual(atOnce.sources(ALL));
  expect(names).toEqual(atOnce.names(ALL));
});

test("two requests ask for advice at once, the accounts in turn, and too many of one account are refused", async () => {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const request = (accountId: string) =>
    inAdviceTurn({ accountId }, () => {
      begun.push(accountId);
      return new Promise<void>((end) => void ends.push(end));
    });
  const asked = Array.from({ length: 802 }, () => request("a"));
  const refused = request("a");
  const others = [request("b"), request("b")];
  const [refusal] = await Promise.allSettled([refused]);
  for (let n = 0; n < asked.length + others.length; n++) {
    ends[n]?.();
    await settle();
  }
  await Promise.all([...asked, ...others]);
  expect(refusal).toMatchObject({ reason: { code: "unavailable", details: { headers: { "retry-after": "5" } } } });
  expect(begun.slice(0, 6)).toEqual(["a", "a", "a", "b", "a", "b"]);
  expect(begun).toHaveLength(asked.length + others.length);
});

test("one request at a time has the sources of a domain in memory, and a failure gives its turn on", async () => {
  const { store, domain } = await startWith([{}]);
  let reading = 0;
  const most: number[] = [];
  const asked = [1, 2, 3].map((n) =>
    DomainSources.use(store, domain, async () => {
      most.push(++reading);
      await settle();
      reading -= 1;
      if (n === 1) throw new Error("disk");
      return n;
    }),
  );
  expect(await Promise.allSettled(asked)).toMatchObject([{ reason: { message: "disk" } }, { value: 2 }, { value: 3 }]);
  expect(most).toEqual([1, 1, 1]);
});
