import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, type IngestHarness } from "../../../testing/ingest-harness.ts";
import { readReportFile } from "../report/read-file.ts";
import { REREAD_AFTER_MS, READ_ATTEMPTS_MAX, BATCH_PER_DOMAIN_MAX, CANDIDATES_MAX } from "./ingestion-worker.ts";
import { findingViews } from "./ingestion-schemas.ts";

const newHarness = createIngestHarness();
const folder = mkdtempSync(join(tmpdir(), "postwarden-turns-"));
afterAll(() => rmSync(folder, { recursive: true }));

const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx.example", mailFrom: "a@b.example" } as const;
const take = (harness: IngestHarness, reportId: string) =>
  harness.queue.add(harness.incoming(sampleReportMail({ reportId }), { ...smtp }));
const states = (harness: IngestHarness) =>
  harness
    .all<{ state: string }>(
      "SELECT status || ' ' || coalesce(outcome, '') || ' ' || coalesce(reason, '') AS state FROM dmarc_ingestions ORDER BY id",
    )
    .map(({ state }) => state.trim());

test("an ingestion that ended a process is read again only after a delay, and others are read meanwhile", async () => {
  const path = join(folder, "kills.db");
  const first = newHarness({ path, read: () => Promise.withResolvers<never>().promise });
  first.enrol("example.com");
  await take(first, "large");
  first.ingester.start();
  const begun = () => first.all("SELECT 1 FROM dmarc_ingestions WHERE attempts = 1").length > 0;
  while (!begun()) await new Promise<void>((resolve) => setImmediate(resolve));
  for (let life = 0; life < 3 * READ_ATTEMPTS_MAX; life += 1) {
    const harness = newHarness({ path });
    await take(harness, `small ${life}`);
    harness.ingester.start();
    await harness.ingester.idle();
    await harness.clock.advance(REREAD_AFTER_MS / 2);
    expect(new Set(states(harness).slice(1))).toEqual(new Set(["done stored"]));
    expect(states(harness)[0]).toBe("pending");
  }
  const last = newHarness({ path });
  last.ingester.start();
  await last.ingester.idle();
  await last.clock.advance(REREAD_AFTER_MS);
  await last.ingester.idle();
  expect(states(last)[0]).toBe("done stored");
});

test("a flood for one domain does not delay the mail of another, wherever that is in the queue", async () => {
  const seen: string[] = [];
  const harness = newHarness({
    read: async (bytes) => {
      const readings = await readReportFile(bytes);
      seen.push(readings[0]?.report?.policy.domain ?? "");
      return readings;
    },
  });
  const [flooded, other] = ["flooded.example", "other.example"].map((domain) => harness.enrol(domain));
  const put = (domain: string, number: number, at: number) => {
    const incoming = harness.incoming(sampleReportMail({ domain, reportId: String(at) }), { ...smtp, domain: number });
    const id = `01980000-0000-7000-8000-${String(at).padStart(12, "0")}`;
    harness.db.transact((tx) => harness.store.insertPending(tx, { ...incoming, id, receivedAtMs: at }));
  };
  for (let at = 0; at < CANDIDATES_MAX + 50; at += 1) put("flooded.example", flooded?.number ?? 0, at);
  for (let at = 0; at < 20; at += 1) put("other.example", other?.number ?? 0, 10_000 + at);
  harness.ingester.start();
  await harness.ingester.idle();
  expect(seen).toHaveLength(CANDIDATES_MAX + 70);
  expect(seen.lastIndexOf("other.example")).toBeLessThan(6 * BATCH_PER_DOMAIN_MAX);
  expect(harness.count("dmarc_reports")).toBe(CANDIDATES_MAX + 70);
});

test("mail whose authentication had a temporary error is authenticated again later, a few times", async () => {
  let asked = 0;
  let isKnown: boolean = false;
  const harness = newHarness({
    authenticate: async () => {
      asked += 1;
      const rest = { from: "receiver.example", spf: null, dkim: [], dmarc: null, message: "made up" };
      return { ...rest, authenticity: isKnown ? "pass" : "unknown", temporary: !isKnown };
    },
  });
  harness.enrol("example.com", { requireAuthenticReports: true });
  harness.ingester.start();
  await take(harness, "1");
  const wait = async (minutes: number) => {
    for (let at = 0; at < minutes; at += 1) {
      await harness.clock.advance(60_000);
      await harness.ingester.idle();
    }
  };
  await harness.ingester.idle();
  await wait(60);
  expect(states(harness)).toEqual(["done quarantined authenticity_unknown"]);
  expect(asked).toBe(2);
  isKnown = true;
  await wait(90);
  expect(states(harness)).toEqual(["done stored"]);
  expect(asked).toBe(3);
  await harness.ingester.stop();
});

test.each([
  [true, 4],
  [false, 1],
] as const)(
  "an inconclusive authentication is reported, and repeated while it is temporary (%p)",
  async (temporary, times) => {
    let asked = 0;
    const harness = newHarness({
      authenticate: async () => {
        asked += 1;
        const rest = { from: null, spf: null, dkim: [], dmarc: null };
        return { ...rest, authenticity: "unknown", message: "The reason is made up.", temporary };
      },
    });
    harness.enrol("example.com", { requireAuthenticReports: true });
    harness.ingester.start();
    const id = await take(harness, "1");
    await harness.ingester.idle();
    const told = () => findingViews(harness.find(id)).map(({ message }) => message);
    const why = "The mail is not authenticated; this domain accepts authenticated reports only. The reason is made up.";
    const doubt = "The mail is not authenticated yet: The reason is made up. It will be checked again within a day.";
    expect(told()).toEqual([temporary ? doubt : why]);
    for (let at = 0; at < 25 * 6; at += 1) {
      await harness.clock.advance(10 * 60_000);
      await harness.ingester.idle();
    }
    expect({ asked, told: told() }).toEqual({ asked: times, told: [why] });
    expect(JSON.stringify(findingViews(harness.find(id)))).not.toContain("doubt");
    await harness.ingester.stop();
  },
);
