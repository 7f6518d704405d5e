import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { madeReportMail } from "../../testing/dmarc-reports.ts";
import { createIngestWorlds, type IngestWorld } from "../../testing/ingest-world.ts";
import { readReportFile } from "../report/read-file.ts";
import { AGAIN_AFTER_MS, ATTEMPTS_MAX } from "./ingester.ts";
import { toldFindings } from "./ingestion-view.ts";
import { BATCH_PER_DOMAIN_MAX, WINDOW } from "./ingester-turns.ts";

const newWorld = createIngestWorlds();
const folder = mkdtempSync(join(tmpdir(), "postwarden-turns-"));
afterAll(() => rmSync(folder, { recursive: true }));

const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx.example", mailFrom: "a@b.example" } as const;
const take = (world: IngestWorld, reportId: string) =>
  world.intake.take(world.incoming(madeReportMail({ reportId }), { ...smtp }));
const states = (world: IngestWorld) =>
  world
    .all<{ state: string }>(
      "SELECT status || ' ' || coalesce(outcome, '') || ' ' || coalesce(reason, '') AS state FROM dmarc_ingestions ORDER BY id",
    )
    .map(({ state }) => state.trim());

test("what ended a process is begun again after a wait only, and others are read meanwhile", async () => {
  const path = join(folder, "kills.db");
  const first = newWorld({ path, read: () => Promise.withResolvers<never>().promise });
  first.enrol("example.com");
  await take(first, "large");
  first.ingester.start();
  const begun = () => first.all("SELECT 1 FROM dmarc_ingestions WHERE attempts = 1").length > 0;
  while (!begun()) await new Promise<void>((resolve) => setImmediate(resolve));
  for (let life = 0; life < 3 * ATTEMPTS_MAX; life += 1) {
    const world = newWorld({ path });
    await take(world, `small ${life}`);
    world.ingester.start();
    await world.ingester.idle();
    await world.clock.advance(AGAIN_AFTER_MS / 2);
    expect(new Set(states(world).slice(1))).toEqual(new Set(["done stored"]));
    expect(states(world)[0]).toBe("pending");
  }
  const last = newWorld({ path });
  last.ingester.start();
  await last.ingester.idle();
  await last.clock.advance(AGAIN_AFTER_MS);
  await last.ingester.idle();
  expect(states(last)[0]).toBe("done stored");
});

test("a flood for one domain does not keep the mail of another waiting, wherever in the list that is", async () => {
  const seen: string[] = [];
  const world = newWorld({
    read: async (bytes) => {
      const readings = await readReportFile(bytes);
      seen.push(readings[0]?.report?.policy.domain ?? "");
      return readings;
    },
  });
  const [flooded, other] = ["flooded.example", "other.example"].map((domain) => world.enrol(domain));
  const put = (domain: string, number: number, at: number) => {
    const incoming = world.incoming(madeReportMail({ domain, reportId: String(at) }), { ...smtp, domain: number });
    const id = `01980000-0000-7000-8000-${String(at).padStart(12, "0")}`;
    world.db.transact((tx) => world.store.insertPending(tx, { ...incoming, id, receivedAtMs: at }));
  };
  for (let at = 0; at < WINDOW + 50; at += 1) put("flooded.example", flooded?.number ?? 0, at);
  for (let at = 0; at < 20; at += 1) put("other.example", other?.number ?? 0, 10_000 + at);
  world.ingester.start();
  await world.ingester.idle();
  expect(seen).toHaveLength(WINDOW + 70);
  expect(seen.lastIndexOf("other.example")).toBeLessThan(6 * BATCH_PER_DOMAIN_MAX);
  expect(world.count("dmarc_reports")).toBe(WINDOW + 70);
});

test("mail whose authenticity was not known is judged again later, some times", async () => {
  let asked = 0;
  let isKnown: boolean = false;
  const world = newWorld({
    authenticate: async () => {
      asked += 1;
      const rest = { from: "receiver.example", spf: null, dkim: [], dmarc: null, message: "made up" };
      return { ...rest, authenticity: isKnown ? "pass" : "unknown", temporary: !isKnown };
    },
  });
  world.enrol("example.com", { requireAuthenticReports: true });
  world.ingester.start();
  await take(world, "1");
  const wait = async (minutes: number) => {
    for (let at = 0; at < minutes; at += 1) {
      await world.clock.advance(60_000);
      await world.ingester.idle();
    }
  };
  await world.ingester.idle();
  await wait(60);
  expect(states(world)).toEqual(["done quarantined authenticity_unknown"]);
  expect(asked).toBe(2);
  isKnown = true;
  await wait(90);
  expect(states(world)).toEqual(["done stored"]);
  expect(asked).toBe(3);
  await world.ingester.stop();
});

test.each([
  [true, 4],
  [false, 1],
] as const)("a doubt about a mail is told, and judged again while it may end (%p)", async (temporary, times) => {
  let asked = 0;
  const world = newWorld({
    authenticate: async () => {
      asked += 1;
      const rest = { from: null, spf: null, dkim: [], dmarc: null };
      return { ...rest, authenticity: "unknown", message: "The reason is made up.", temporary };
    },
  });
  world.enrol("example.com", { requireAuthenticReports: true });
  world.ingester.start();
  const id = await take(world, "1");
  await world.ingester.idle();
  const told = () => toldFindings(world.find(id)).map(({ message }) => message);
  const why =
    "The mail is not authenticated, and the domain accepts authenticated reports only. The reason is made up.";
  const doubt =
    "It is not known yet whether the mail is authenticated: The reason is made up. It is judged again within a day.";
  expect(told()).toEqual([temporary ? doubt : why]);
  for (let at = 0; at < 25 * 6; at += 1) {
    await world.clock.advance(10 * 60_000);
    await world.ingester.idle();
  }
  expect({ asked, told: told() }).toEqual({ asked: times, told: [why] });
  expect(JSON.stringify(toldFindings(world.find(id)))).not.toContain("doubt");
  await world.ingester.stop();
});
