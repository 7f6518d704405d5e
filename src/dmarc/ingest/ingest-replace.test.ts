import { describe, expect, test } from "bun:test";
import type { DomainRow } from "../domains/domain-store.ts";
import type { AuthenticityFinding } from "../authenticity/authenticity-verdict.ts";
import {
  MADE_DAY_S,
  type MadeReport,
  type MadeRow,
  madeReportMail,
  madeReportXml,
} from "../../testing/dmarc-reports.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createIngestWorlds, INGEST_OWNER, type IngestWorld } from "../../testing/ingest-world.ts";

const newWorld = createIngestWorlds();

/** As the name of the sender says: `other` is authenticated as somebody else than the reporter. */
const verdictOf = (mailFrom: string | null): AuthenticityFinding => {
  const word = mailFrom?.split("@")[0] ?? "";
  const isPass = word === "pass" || word === "other";
  const authenticity = isPass ? "pass" : word === "fail" ? "fail" : "unknown";
  const from = isPass ? (word === "pass" ? "mail.receiver.example" : "attacker.example") : null;
  return { authenticity, from, spf: null, dkim: [], dmarc: null, message: "made up", temporary: word === "later" };
};

const start = (change: Partial<DomainRow> = {}) => {
  const clock = createTestClock((MADE_DAY_S + 2 * 86_400) * 1000);
  const world = newWorld({ clock, authenticate: async ({ mailFrom }) => verdictOf(mailFrom) });
  world.enrol("example.com", change);
  return world;
};

const smtp = (from: string) =>
  ({ via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: `${from}@b.example` }) as const;
const made = (count: number, change: MadeReport = {}) =>
  madeReportMail({ reportId: "r", rows: [{ count }], ...change });
const FORGED = 9_000;
const GENUINE = 7;
const messages = (world: IngestWorld) =>
  world.all<{ n: number | null }>("SELECT sum(messages) AS n FROM dmarc_daily")[0]?.n;

/** Everything is as if only one report had ever come. */
const expectOne = (world: IngestWorld, count: number): void => {
  expect(messages(world)).toBe(count);
  expect(world.rollups()).toEqual(world.recount());
  expect(world.count("dmarc_reports")).toBe(1);
};

/** Messages by whether they rest on trusted reports. */
const counted = (world: IngestWorld) =>
  Object.fromEntries(
    world
      .all<{ t: number; n: number }>("SELECT is_trusted t, sum(messages) n FROM dmarc_daily GROUP BY 1")
      .map(({ t, n }) => [t === 1 ? "trusted" : "others", n]),
  );

describe("the word of a report mail", () => {
  test.each<[string, Record<string, number>, string, string | null]>([
    ["pass", { trusted: GENUINE }, "stored", null],
    ["unknown", { others: GENUINE }, "stored", null],
    ["other", { others: GENUINE }, "stored", null],
    ["fail", {}, "quarantined", "not_authentic"],
    ["later", {}, "quarantined", "authenticity_unknown"],
  ])("%s: %p are counted", async (word, counts, outcome, reason) => {
    const world = start();
    const { row } = await world.upload(made(GENUINE), smtp(word));
    expect(counted(world)).toEqual(counts);
    expect(row).toMatchObject({ outcome, reason });
    expect(world.rollups()).toEqual(world.recount());
  });

  test.each<[string, string, string | null]>([
    ["pass", "stored", null],
    ["unknown", "quarantined", "authenticity_unknown"],
    ["other", "quarantined", "other_author"],
    ["fail", "quarantined", "not_authentic"],
  ])("%s, for a domain that accepts authenticated reports only: %s %s", async (word, outcome, reason) => {
    const world = start({ requireAuthenticReports: true });
    expect((await world.upload(made(GENUINE), smtp(word))).row).toMatchObject({ outcome, reason });
  });

  test("that is not known yet is judged again, and counts in the end without", async () => {
    const world = start();
    const id = await world.intake.take(world.incoming(made(GENUINE), smtp("later")));
    world.ingester.start();
    await world.ingester.idle();
    expect(world.find(id)).toMatchObject({ outcome: "quarantined", reason: "authenticity_unknown" });
    await world.clock.advance(13 * 3_600_000);
    await world.ingester.idle();
    expect(world.find(id)).toMatchObject({ outcome: "stored", reason: null });
    expect(counted(world)).toEqual({ others: GENUINE });
    await world.ingester.stop();
  });

  test("that is not known yet counts at once where nothing is kept to be judged again", async () => {
    const world = start({ rawRetentionDays: 0 });
    await world.upload(made(GENUINE), smtp("later"));
    expect(counted(world)).toEqual({ others: GENUINE });
  });

  test("a TLS report of another author keeps nobody out", async () => {
    const world = start();
    const tls = JSON.stringify({
      "organization-name": "receiver.example",
      "report-id": "t",
      policies: [{ policy: { "policy-type": "sts", "policy-domain": "example.com" }, summary: {} }],
    });
    const mail = `From: a@receiver.example\r\nContent-Type: application/tlsrpt+json\r\n\r\n${tls}`;
    const outcomes: (string | null)[] = [];
    for (const word of ["unknown", "pass", "other"]) outcomes.push((await world.upload(mail, smtp(word))).row.outcome);
    expect(outcomes).toEqual(["stored", "stored", "duplicate"]);
    expect((await world.upload(mail, smtp("fail"))).row.reason).toBe("not_authentic");
  });
});

describe("the same report with other rows, by mail", () => {
  test.each(["unknown", "other"])("the first %s: the reporter's own counts, whichever comes first", async (word) => {
    const world = start();
    const forged = await world.upload(made(FORGED), smtp(word));
    expect(counted(world)).toEqual({ others: FORGED });
    const genuine = await world.upload(made(GENUINE), smtp("pass"));
    expectOne(world, GENUINE);
    expect(counted(world)).toEqual({ trusted: GENUINE });
    expect(genuine.row).toMatchObject({ outcome: "stored", reason: null });
    expect(world.find(forged.row.id)).toMatchObject({ outcome: "quarantined", reason: "replaced" });
    const late = await world.upload(made(FORGED), smtp(word));
    expect(late.row).toMatchObject({ outcome: "duplicate", reason: "duplicate_differs" });
    expectOne(world, GENUINE);
    expect(world.logged.join()).toContain("came again with other rows");
  });

  test("gives way to what the owner hands in", async () => {
    const world = start();
    await world.upload(made(FORGED), smtp("unknown"));
    expect((await world.upload(madeReportXml({ reportId: "r", rows: [{ count: 3 }] }))).row.outcome).toBe("stored");
    expectOne(world, 3);
    expect((await world.upload(made(GENUINE), smtp("pass"))).row.reason).toBe("duplicate_differs");
    expectOne(world, 3);
  });

  test("of two authors who are not the reporter stands side by side; of the same one the first is kept", async () => {
    const world = start();
    await world.upload(made(1), smtp("unknown"));
    expect((await world.upload(made(2), smtp("unknown"))).row.reason).toBe("duplicate_differs");
    await world.upload(made(4), smtp("other"));
    expect(counted(world)).toEqual({ others: 5 });
    await world.upload(made(GENUINE), smtp("pass"));
    expectOne(world, GENUINE);
  });

  test.each([[["unknown", "pass"]], [["other", "unknown", "pass", "fail"]], [["pass", "unknown"]]] as const)(
    "is judged also when all come together (%p)",
    async (words) => {
      const world = start();
      const files = words.map((word) =>
        world.incoming(made(word === "pass" ? GENUINE : FORGED + word.length), smtp(word)),
      );
      await world.ingestions.ingestFiles(files);
      expectOne(world, GENUINE);
    },
  );

  test("takes back whatever only the forged one told of, and nothing else", async () => {
    const world = start();
    const spoof = (ip: string, change: MadeRow = {}) => ({ ip, dkim: "fail", spf: "fail", ...change }) as const;
    await world.upload(made(1, { reportId: "other", rows: [spoof("192.0.2.8"), { headerFrom: "real.example.com" }] }));
    const rows = [
      spoof("192.0.2.8"),
      spoof("192.0.2.9", { headerFrom: "made.example.com" }),
      { headerFrom: "real.example.com" },
    ];
    await world.upload(made(1, { rows, begin: MADE_DAY_S }), smtp("unknown"));
    expect(world.count("dmarc_sources")).toBe(3);
    await world.upload(made(GENUINE), smtp("pass"));
    expect(world.all("SELECT key FROM dmarc_sources ORDER BY key")).toEqual([
      { key: "192.0.2.1 example.com/s1 example.com -" },
      { key: "192.0.2.8 -/- - -" },
    ]);
    expect(world.all("SELECT name FROM dmarc_names ORDER BY name")).toEqual([
      { name: "example.com" },
      { name: "real.example.com" },
    ]);
    expect(world.count("dmarc_records")).toBe(3);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("of large ones leaves nothing of the forged one", async () => {
    const world = start();
    const rows = (from: string) =>
      Array.from({ length: 2_100 }, (_, at) => ({
        ...{ ip: `198.51.${at % 200}.${at % 50}`, headerFrom: `${from}${at % 20}.example.com` },
      }));
    await world.upload(made(1, { rows: [...rows("a"), ...rows("b")] }), smtp("unknown"));
    await world.upload(made(1, { rows: rows("b") }), smtp("pass"));
    expectOne(world, 2_100);
    expect(world.count("dmarc_records")).toBe(2_100);
    expect(world.count("dmarc_names")).toBe(20);
  });

  test("that was replaced may be read again, and does not come back", async () => {
    const world = start();
    const forged = await world.upload(made(FORGED), smtp("unknown"));
    await world.upload(made(GENUINE), smtp("pass"));
    expect(await world.ingestions.readAgain(INGEST_OWNER, [forged.row.id])).toBe(1);
    expect(world.find(forged.row.id)).toMatchObject({ outcome: "duplicate", reason: "duplicate_differs" });
    expectOne(world, GENUINE);
  });
});

describe("mail to an address that was revoked", () => {
  test("does not count for a domain that is enrolled after it came", async () => {
    const world = start();
    const old = world.enrol("again.example");
    const incoming = world.incoming(madeReportMail({ domain: "again.example" }), {
      ...smtp("pass"),
      domain: old.number,
    });
    const id = await world.intake.take(incoming);
    world.db.transact((tx) => world.domains.markDeleted(tx, old.number, world.clock.nowMs()));
    await world.clock.advance(1_000);
    world.enrol("again.example", { createdAtMs: world.clock.nowMs() });
    world.ingester.start();
    await world.ingester.idle();
    expect(world.find(id)).toMatchObject({ outcome: "quarantined", reason: "foreign_domain" });
    expect(world.count("dmarc_reports")).toBe(0);
    await world.ingester.stop();
  });

  test("counts for a domain that was there when it came; mail to a living address for one enrolled later", async () => {
    const world = start();
    const old = world.enrol("gone.example");
    const to = { ...smtp("pass"), domain: old.number };
    const later = await world.upload(madeReportMail({ domain: "later.example" }), to);
    await world.clock.advance(1_000);
    world.enrol("later.example", { createdAtMs: world.clock.nowMs() });
    await world.ingestions.readAgain(INGEST_OWNER, [later.row.id]);
    expect(world.find(later.row.id).outcome).toBe("stored");
    world.db.transact((tx) => world.domains.markDeleted(tx, old.number, world.clock.nowMs()));
    expect((await world.upload(madeReportMail(), to)).row.outcome).toBe("stored");
  });
});

test("what was counted before trusted reports were counted apart is taken back from where it is", async () => {
  const world = start();
  await world.upload(made(FORGED), smtp("unknown"));
  for (const table of ["dmarc_daily", "dmarc_daily_names", "dmarc_daily_reporters"])
    world.db.sqlite.run(`UPDATE ${table} SET is_trusted = 1`);
  world.db.sqlite.run("UPDATE dmarc_daily_reporters SET author = ''");
  await world.upload(made(GENUINE), smtp("pass"));
  expectOne(world, GENUINE);
  expect(counted(world)).toEqual({ trusted: GENUINE });
});
