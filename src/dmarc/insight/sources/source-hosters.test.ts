import { describe, expect, test } from "bun:test";
import { SAMPLE_DAY_S, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { createReportQueries, MADE_DAY } from "../../../testing/report-queries.ts";
import { type Classification, RollupStore } from "./rollup-store.ts";

const start = createReportQueries();
const ALL = { fromDay: 0, toDay: 99_999 };
const FAILING = { dkim: "fail", spf: "fail", dkimResults: [] } as const;
const MAILBOXES: SampleRow = { ip: "40.107.1.1", count: 900, dkimResults: ["example.com pass selector1"] };
const MAILBOXES_NAME = "mail-db1.outbound.protection.outlook.com";

/** What a form on the domain's website sends: it passes SPF for the provider only. */
const form = (ip: string, envelope: string): SampleRow => ({
  ...FAILING,
  ip,
  count: 90,
  spfResults: [`${envelope} pass`],
});

const startWith = async (rows: readonly SampleRow[], names: Readonly<Record<string, string | null>>) => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ begin: SAMPLE_DAY_S, rows: [MAILBOXES, ...rows] });
  for (const [ip, name] of Object.entries({ "40.107.1.1": MAILBOXES_NAME, ...names })) harness.nameAddress(ip, name);
  const sources = () => harness.sourcesOf(domain).sources(ALL);
  const keys = () => sources().map(({ key, classification, messages }) => `${key} ${classification} ${messages}`);
  const rollups = new RollupStore(harness.db);
  const classify = (key: string, classification: Classification | null) =>
    harness.db.transact((tx) =>
      classification === null
        ? rollups.removeUserClassification(tx, domain.number, key)
        : rollups.setUserClassification(tx, domain.number, { key, classification, atMs: 1, note: null }),
    );
  return { ...harness, domain, sources, keys, classify };
};

describe("a website form at a provider that also hosts websites", () => {
  test.each([
    ["mout.kundenserver.de", "kundenserver.de", "service:ionos-mail", "IONOS Mail (sender not known)"],
    ["mo4-p00-ob.smtp.rzone.de", "rzone.de", "service:strato-mail", "STRATO Mail (sender not known)"],
    ["5.mo550.mail-out.ovh.net", "ovh.net", "service:ovhcloud-email", "OVHcloud Email (sender not known)"],
    ["relay5-d.mail.gandi.net", "gandi.net", "service:gandi-mail", "Gandi Mail (sender not known)"],
    ["smtp-190e.mail.infomaniak.ch", "infomaniak.ch", "service:infomaniak", "Infomaniak (sender not known)"],
    ["dd32416.kasserver.com", "dd32416.kasserver.com", "service:all-inkl", "All-Inkl (sender not known)"],
    ["www123.your-server.de", "www123.your-server.de", "service:hetzner", "Hetzner (sender not known)"],
    ["p123456.webspaceconfig.de", "p123456.webspaceconfig.de", "service:mittwald", "Mittwald (sender not known)"],
  ])("%s is a source of its own that is asked about", async (host, envelope, key, name) => {
    const { sources } = await startWith([form("5.5.5.5", envelope)], { "5.5.5.5": host });
    expect(sources().find((source) => source.key === key)).toMatchObject({
      ...{ key, name, kind: "service", classification: "unknown", messages: 90 },
    });
    expect(sources()).toHaveLength(2);
  });

  test("has one source for all hosts of a hosting provider, also without an envelope", async () => {
    const rows = [
      form("5.5.5.5", "dd1.kasserver.com"),
      form("5.5.6.5", "dd2.kasserver.com"),
      { ...form("5.5.7.5", "x"), spfResults: [] },
    ];
    const names = { "5.5.5.5": "dd1.kasserver.com", "5.5.6.5": "dd2.kasserver.com", "5.5.7.5": "dd3.kasserver.com" };
    const { keys } = await startWith(rows, names);
    expect(keys()).toContain("service:all-inkl unknown 270");
  });

  test("is told from mail that the provider's users forward", async () => {
    const forwarded = [
      {
        ...FAILING,
        ip: "5.5.5.6",
        count: 20,
        spfResults: [],
        dkim: "pass",
        dkimResults: ["example.com pass selector1"],
      },
      { ...FAILING, ip: "5.5.5.7", count: 20, spfResults: [], reasons: ["forwarded"] },
    ] as const;
    for (const [host, key] of [
      ["mout.kundenserver.de", "service:ionos-mail"],
      ["dd1.kasserver.com", "service:all-inkl"],
    ] as const) {
      const names = { "5.5.5.5": host, "5.5.5.6": host, "5.5.5.7": host };
      const { keys, sources } = await startWith([form("5.5.5.5", host), ...forwarded], names);
      expect(keys()).toEqual(expect.arrayContaining([`${key} unknown 90`, `${key}/others forwarder 40`]));
      expect(sources().find((source) => source.key === `${key}/others`)?.name).toEndWith("(forwarded mail)");
    }
  });

  test("is told from forwarded mail of which a receiver could not check the signature, while that is little", async () => {
    const signed = { ...FAILING, ip: "5.5.5.6", spfResults: [], dkim: "pass" } as const;
    const unchecked = (count: number, ip = "5.5.5.6"): SampleRow => ({
      ...FAILING,
      ...{ ip, count, spfResults: [], dkimResults: ["example.com temperror selector1"] },
    });
    for (const [row, expected] of [
      [unchecked(3), ["service:all-inkl/others forwarder 23"]],
      [unchecked(30), ["service:all-inkl unknown 30", "service:all-inkl/others forwarder 20"]],
      [unchecked(3, "5.5.5.7"), ["service:all-inkl unknown 3", "service:all-inkl/others forwarder 20"]],
    ] as const) {
      const rows = [{ ...signed, count: 20, dkimResults: ["example.com pass selector1"] }, row];
      const { keys } = await startWith(rows, { "5.5.5.6": "dd1.kasserver.com", "5.5.5.7": "dd1.kasserver.com" });
      expect(
        keys()
          .filter((key) => key.startsWith("service:all-inkl"))
          .toSorted(),
      ).toEqual([...expected]);
    }
  });

  test("is part of the domain's own account where the domain has one there", async () => {
    const own: SampleRow = { ip: "5.5.5.4", count: 500, spfResults: ["example.com pass"] };
    const names = { "5.5.5.4": "mout.kundenserver.de", "5.5.5.5": "mout.kundenserver.de" };
    const { keys, sources } = await startWith([own, form("5.5.5.5", "kundenserver.de")], names);
    expect(keys()).toContain("service:ionos-mail misconfigured 590");
    expect(sources().map(({ name }) => name)).toContain("IONOS Mail");
  });
});

test("a server with a name of the hosting provider is the domain's own when it passes SPF or signs for it", async () => {
  const rows: SampleRow[] = [
    { ip: "5.5.5.5", count: 9, spfResults: ["example.com pass"], dkim: "fail", dkimResults: [] },
    { ip: "5.5.5.6", count: 9, spf: "fail", spfResults: [], dkimResults: ["example.com pass web"] },
  ];
  const { keys } = await startWith(rows, { "5.5.5.5": "dd1.kasserver.com", "5.5.5.6": "dd2.kasserver.com" });
  expect(keys()).toContain("own authorized 18");
});

describe("a classification from before all hosts of a hoster were one source", () => {
  test.each([
    ["mout.kundenserver.de", "kundenserver.de", "service:ionos-mail/others", "service:ionos-mail"],
    ["dd1.kasserver.com", "dd1.kasserver.com", "org:dd1.kasserver.com", "service:all-inkl"],
    ["www1.your-server.de", "www1.your-server.de", "org:your-server.de", "service:hetzner"],
    ["dd1.kasserver.com", "dd1.kasserver.com", "net:5.5.5.0/24", "service:all-inkl"],
  ])("of %s (%s) as %s applies under its key until it is removed", async (host, envelope, key, later) => {
    const rows = [form("5.5.5.5", envelope)];
    const { keys, classify, domain, sourcesOf } = await startWith(rows, { "5.5.5.5": host });
    expect(keys()).toContain(`${later} unknown 90`);
    classify(key, "authorized");
    expect(keys()).toContain(`${key} authorized 90`);
    expect(sourcesOf(domain).find(key, { fromDay: MADE_DAY + 50, toDay: MADE_DAY + 60 })?.classified_by).toBe("user");
    classify(key, null);
    expect(keys()).toContain(`${later} unknown 90`);
  });

  test("does not extend to other hosts", async () => {
    const rows = [form("5.5.5.5", "dd1.kasserver.com"), form("5.5.6.5", "dd2.kasserver.com")];
    const names = { "5.5.5.5": "dd1.kasserver.com", "5.5.6.5": "dd2.kasserver.com" };
    const { keys, classify, sources } = await startWith(rows, names);
    classify("org:dd1.kasserver.com", "authorized");
    expect(keys()).toEqual(
      expect.arrayContaining(["org:dd1.kasserver.com authorized 90", "service:all-inkl unknown 90"]),
    );
    expect(sources().map(({ name }) => name)).toContain("All-Inkl (dd1.kasserver.com)");
  });
});
