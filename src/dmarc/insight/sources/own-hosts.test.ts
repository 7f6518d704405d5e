import { describe, expect, test } from "bun:test";
import { createReportQueries, MADE_DAY } from "../../../testing/report-queries.ts";
import type { SampleReport } from "../../../testing/dmarc-reports.ts";
import { SAMPLE_DAY_S } from "../../../testing/dmarc-reports.ts";
import { departmentOf } from "./own-hosts.ts";

const start = createReportQueries();
const DAY_S = 86_400;
const FAILS = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;
const CHEMISTRY = "5.5.5.1";
const SOUND = "5.5.6.1";

/** A domain with the rows of days since `MADE_DAY`. */
const startWith = async (days: ReadonlyArray<NonNullable<SampleReport["rows"]>>) => {
  const harness = start();
  const domain = harness.enrol();
  for (const [at, rows] of days.entries()) {
    const begin = SAMPLE_DAY_S + at * DAY_S;
    await harness.give({ domain: "example.com", rows, begin, end: begin + DAY_S - 1 });
  }
  harness.nameAddress(CHEMISTRY, "lab3.chemie.example.com");
  harness.nameAddress(SOUND, "mx.example.com");
  const rangeOf = (from: number, to: number) => ({ fromDay: MADE_DAY + from, toDay: MADE_DAY + to });
  const shown = (from: number, to: number) =>
    harness
      .sourcesOf(domain)
      .sources(rangeOf(from, to))
      .map(({ key, classification, messages, failing }) => [key, classification, messages, failing] as const);
  return { ...harness, domain, rangeOf, shown };
};

const failing = (ip: string, count: number) => ({ ...FAILS, ip, count });
const sound = (ip: string, count: number) => ({ ip, count });

describe("own servers", () => {
  test("that fail and that pass are two sources with their own figures", async () => {
    const { shown, sourcesOf, domain, rangeOf } = await startWith([[failing(CHEMISTRY, 3), sound(SOUND, 97)]]);
    expect(shown(0, 0)).toEqual([
      ["own/failing", "misconfigured", 3, 3],
      ["own", "authorized", 97, 0],
    ]);
    const sources = sourcesOf(domain);
    const range = rangeOf(0, 0);
    expect(sources.explain("own/failing", range)?.addresses.map(({ address }) => address.ip)).toEqual([CHEMISTRY]);
    expect(sources.explain("own", range)?.addresses.map(({ address }) => address.ip)).toEqual([SOUND]);
    expect(sources.find("own/failing", range)?.name).toBe("example.com (own servers, failing)");
    expect(sources.numbersOf(["own/failing"], range)).toHaveLength(1);
    expect(sources.numbersOf(["own"], range)).toHaveLength(1);
    expect(sources.numbersOf(["own", "own/failing", "net:5.5.5.0/24"], range)).toHaveLength(2);
    expect([...sources.keysOf(new Set(["own/failing", "other"]), range).values()]).toEqual(["own/failing"]);
    // Rules of alerts see own servers as one source.
    expect(new Set(sources.keyed(range).map(({ shownKey }) => shownKey))).toEqual(new Set(["own"]));
  });

  test.each([
    ["all pass", [sound(CHEMISTRY, 3), sound(SOUND, 97)], [["own", "authorized", 100, 0]]],
    ["all fail", [failing(CHEMISTRY, 3), failing(SOUND, 97)], [["own", "misconfigured", 100, 100]]],
  ] as const)("are one source where %s", async (_, rows, expected) => {
    const { shown } = await startWith([rows]);
    expect(shown(0, 0)).toEqual(expected as never);
  });

  test("change their line with the results in the range, at the borders of days", async () => {
    const { shown } = await startWith([
      [failing(CHEMISTRY, 10), sound(SOUND, 100)],
      [sound(CHEMISTRY, 90), sound(SOUND, 100)],
      [sound(CHEMISTRY, 10), sound(SOUND, 100)],
    ]);
    expect(shown(0, 0)).toContainEqual(["own/failing", "misconfigured", 10, 10]);
    // 90 of 100 are aligned: passing.
    expect(shown(0, 1)).toEqual([["own", "authorized", 300, 10]]);
    expect(shown(1, 2)).toEqual([["own", "authorized", 300, 0]]);
  });

  test("have the class that a user gave to all of them, until one is given to those that fail", async () => {
    const { shown, store, db, domain } = await startWith([[failing(CHEMISTRY, 3), sound(SOUND, 97)]]);
    const say = (key: string, classification: "threat" | "authorized") =>
      db.transact((tx) => store.setUserClassification(tx, domain.number, { key, classification, atMs: 1, note: null }));
    say("own", "authorized");
    expect(shown(0, 0).map(([key, one]) => [key, one])).toEqual([
      ["own/failing", "authorized"],
      ["own", "authorized"],
    ]);
    say("own/failing", "threat");
    expect(shown(0, 0).map(([key, one]) => [key, one])).toContainEqual(["own/failing", "threat"]);
    expect(shown(0, 0).map(([key, one]) => [key, one])).toContainEqual(["own", "authorized"]);
  });
});

describe("GET own-hosts", () => {
  const startHosts = async () => {
    const started = await startWith([
      [failing(CHEMISTRY, 10), sound(SOUND, 100)],
      [sound(CHEMISTRY, 5), sound(SOUND, 100)],
    ]);
    const get = async (query: string, options = {}) =>
      started.request("GET", `${started.domain.id}/own-hosts?from=2026-01-01&to=2026-01-02${query}`, options);
    return { ...started, get };
  };

  test("lists those with the most failing messages first, with the last day on which mail failed", async () => {
    const { get } = await startHosts();
    const { body } = await get("");
    expect(body).toMatchObject({
      own_hosts: [
        {
          ...{ ip: CHEMISTRY, reverse_name: "lab3.chemie.example.com", department: "chemie.example.com" },
          ...{ result: "failing", messages: 15, aligned: 5, failing: 10, aligned_percent: 33.3 },
          ...{ first_day: "2026-01-01", last_day: "2026-01-02", last_failing_day: "2026-01-01" },
        },
        { ip: SOUND, department: "example.com", result: "passing", messages: 200, last_failing_day: null },
      ],
      next_cursor: null,
    });
  });

  test("filters by result and department, in pages", async () => {
    const { get } = await startHosts();
    const ipsOf = async (query: string) => {
      const { body } = await get(query);
      return (body.own_hosts as ReadonlyArray<{ ip: string }>).map(({ ip }) => ip);
    };
    expect(await ipsOf("&result=failing")).toEqual([CHEMISTRY]);
    expect(await ipsOf("&result=passing")).toEqual([SOUND]);
    expect(await ipsOf("&department=Chemie.example.com")).toEqual([CHEMISTRY]);
    const first = await get("&limit=1");
    expect(await ipsOf(`&limit=1&cursor=${String(first.body.next_cursor)}`)).toEqual([SOUND]);
  });

  test("is CSV on request", async () => {
    const { get } = await startHosts();
    const { text } = await get("&result=failing", { accept: "text/csv" });
    expect(text.split("\r\n")).toEqual([
      "ip,reverse_name,department,result,messages,aligned,failing,aligned_percent,first_day,last_day,last_failing_day",
      `${CHEMISTRY},lab3.chemie.example.com,chemie.example.com,failing,15,5,10,33.3,2026-01-01,2026-01-02,2026-01-01`,
      "",
    ]);
  });

  test.each([
    ["&result=broken", 400],
    ["&cursor=x", 400],
  ])("refuses %s", async (query, status) => {
    expect((await (await startHosts()).get(query)).status).toBe(status);
  });

  test("is not for others", async () => {
    expect((await (await startHosts()).get("", { key: "other" })).status).toBe(404);
    expect((await (await startHosts()).get("", { key: "blind" })).status).toBe(403);
  });
});

test.each([
  ["www.lab3.chemie.example.com", "chemie.example.com"],
  ["lab3.chemie.example.co.uk", "chemie.example.co.uk"],
  ["mx.example.com", "example.com"],
  ["example.com", "example.com"],
])("the department of %s is %s", (name, department) => {
  expect(departmentOf(name)).toBe(department);
});
