import { describe, expect, test } from "bun:test";
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

/** As authentic as the name of the sender says. */
const verdictOf = (mailFrom: string | null): AuthenticityFinding => {
  const word = mailFrom?.split("@")[0] ?? "";
  const authenticity = word === "pass" || word === "fail" ? word : "unknown";
  const rest = { from: null, spf: null, dkim: [], dmarc: null, message: "made up" };
  return { ...rest, authenticity, temporary: word === "later" };
};

const start = () => {
  const clock = createTestClock((MADE_DAY_S + 2 * 86_400) * 1000);
  const world = newWorld({ clock, authenticate: async ({ mailFrom }) => verdictOf(mailFrom) });
  world.enrol("example.com");
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

describe("the same report with other rows, by mail", () => {
  test.each<[string, string, number]>([
    ["fail", "pass", GENUINE],
    ["unknown", "pass", GENUINE],
    ["pass", "pass", FORGED],
    ["fail", "fail", FORGED],
    ["fail", "unknown", FORGED],
    ["later", "pass", FORGED],
  ])("the first %s, the second %s: %i messages count", async (first, second, count) => {
    const world = start();
    const forged = await world.upload(made(FORGED), smtp(first));
    const genuine = await world.upload(made(GENUINE), smtp(second));
    expectOne(world, count);
    const isReplaced = count === GENUINE;
    expect(genuine.row).toMatchObject({ outcome: isReplaced ? "stored" : "duplicate", reason: "duplicate_differs" });
    const before = world.find(forged.row.id);
    expect(before).toMatchObject(
      isReplaced ? { outcome: "quarantined", reason: "replaced" } : { outcome: "stored", reason: null },
    );
    expect(world.logged.join()).toContain("came again with other rows");
    expect(world.all("SELECT id FROM dmarc_reports")).toEqual([
      { id: isReplaced ? genuine.findings[0]?.report_id : forged.findings[0]?.report_id },
    ]);
  });

  test.each([[["fail", "pass"]], [["fail", "unknown", "pass", "fail"]], [["pass", "fail"]]] as const)(
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
    await world.upload(made(1, { rows, begin: MADE_DAY_S }), smtp("fail"));
    expect(world.count("dmarc_sources")).toBe(3);
    await world.upload(made(GENUINE), smtp("pass"));
    expect(world.all("SELECT key FROM dmarc_sources ORDER BY key")).toEqual([
      { key: "dkim:example.com" },
      { key: "ip:192.0.2.8" },
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
    await world.upload(made(1, { rows: [...rows("a"), ...rows("b")] }), smtp("fail"));
    await world.upload(made(1, { rows: rows("b") }), smtp("pass"));
    expectOne(world, 2_100);
    expect(world.count("dmarc_records")).toBe(2_100);
    expect(world.count("dmarc_names")).toBe(20);
  });

  test("is left to the first one where nobody can judge: files stay, and give way to nobody", async () => {
    const world = start();
    await world.upload(madeReportXml({ reportId: "r", rows: [{ count: 3 }] }));
    expect((await world.upload(made(GENUINE), smtp("pass"))).row.reason).toBe("duplicate_differs");
    expectOne(world, 3);
    const other = start();
    await other.upload(made(FORGED), smtp("fail"));
    expect((await other.upload(madeReportXml({ reportId: "r" }))).row.reason).toBe("duplicate_differs");
    expectOne(other, FORGED);
  });

  test("that was replaced may be read again, and does not come back", async () => {
    const world = start();
    const forged = await world.upload(made(FORGED), smtp("fail"));
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
