import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Db } from "../../db/open.ts";
import { createTestClock } from "../../testing/clock.ts";
import { madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import { createIngestWorlds, INGEST_OWNER, type IngestWorld } from "../../testing/ingest-world.ts";
import { AGAIN_AFTER_MS, ATTEMPTS_MAX } from "./ingester.ts";
import { readReportFile } from "../report/read-file.ts";

const newWorld = createIngestWorlds();
const folder = mkdtempSync(join(tmpdir(), "postwarden-ingester-"));
afterAll(() => rmSync(folder, { recursive: true }));

const mail = (reportId: string) => madeReportMail({ reportId });
const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx.example", mailFrom: "a@b.example" } as const;
const take = (world: IngestWorld, reportId: string, domain: number | null = null) =>
  world.intake.take(world.incoming(mail(reportId), { ...smtp, domain }));
const states = (world: IngestWorld) =>
  world
    .all<{ state: string }>(
      "SELECT status || ' ' || coalesce(outcome, '') || ' ' || coalesce(reason, '') AS state FROM dmarc_ingestions ORDER BY id",
    )
    .map(({ state }) => state.trim());

/** Until everything may be begun again that was begun before the start, one after the other. */
const waitOver = async (world: IngestWorld): Promise<void> => {
  for (let time = 0; time < ATTEMPTS_MAX; time += 1) {
    await world.clock.advance(AGAIN_AFTER_MS);
    await world.ingester.idle();
  }
};

/** The same database, but commits fail for as long as `problem` says so. */
const failing =
  (problem: () => string | null) =>
  (db: Db): Db => ({
    ...db,
    commit: (work) => {
      const code = problem();
      return code === null ? db.commit(work) : Promise.reject(Object.assign(new Error(code), { code }));
    },
  });

describe("mail", () => {
  test("is durable when it is taken, and read afterwards", async () => {
    const path = join(folder, "take.db");
    const before = newWorld({ path });
    const domain = before.enrol("example.com");
    const id = await take(before, "1", domain.number);
    const after = newWorld({ path });
    expect(after.find(id)).toMatchObject({
      status: "pending",
      outcome: null,
      findings: null,
      ...smtp,
      domain: domain.number,
    });
    expect(after.store.findRaw(id)?.byteLength).toBe(mail("1").byteLength);
    after.ingester.start();
    await after.ingester.idle();
    expect(after.find(id)).toMatchObject({ status: "done", outcome: "stored", finishedAtMs: after.clock.nowMs() });
    expect(after.rollups()).toEqual(after.recount());
  });

  test("that comes while another is read is read too, in its order", async () => {
    const seen: string[] = [];
    const world = newWorld({
      read: async (bytes) => {
        const readings = await readReportFile(bytes);
        seen.push(readings[0]?.report?.reportId ?? "");
        return readings;
      },
    });
    world.enrol("example.com");
    world.ingester.start();
    await Promise.all(["a", "b", "c"].map((id) => take(world, id)));
    await world.ingester.idle();
    await take(world, "d");
    await world.ingester.idle();
    expect(seen).toEqual(["a", "b", "c", "d"]);
    expect(states(world)).toEqual(Array.from({ length: 4 }, () => "done stored"));
  });

  test("put there by another process is found by looking", async () => {
    const world = newWorld();
    world.enrol("example.com");
    world.ingester.start();
    await world.ingester.idle();
    const row = { ...world.incoming(mail("1"), smtp), id: "01980000-0000-7000-8000-000000000000", receivedAtMs: 0 };
    await world.db.commit((tx) => world.store.insertPending(tx, row));
    await world.clock.advance(30_000);
    await world.ingester.idle();
    expect(states(world)).toEqual(["done stored"]);
    await world.ingester.stop();
    expect(world.clock.pending()).toBe(0);
  });
});

describe("one bad report", () => {
  test("that cannot be read does not stop the others, and can be tried again", async () => {
    let isBroken: boolean = true;
    const world = newWorld({
      read: async (bytes) => {
        const readings = await readReportFile(bytes);
        if (isBroken && readings[0]?.report?.reportId === "bad") throw new TypeError("a bug");
        return readings;
      },
    });
    world.enrol("example.com");
    const [, bad] = await Promise.all(["a", "bad", "b"].map((id) => take(world, id)));
    world.ingester.start();
    await world.ingester.idle();
    expect(states(world)).toEqual(["done stored", "done rejected internal_error", "done stored"]);
    expect(world.logged.join()).toContain("a bug");
    isBroken = false;
    await world.ingestions.retry(INGEST_OWNER, bad ?? "");
    await world.ingester.idle();
    expect(states(world)).toEqual(["done stored", "done stored", "done stored"]);
  });

  test("that cannot be written does not stop the others, and leaves nothing", async () => {
    const world = newWorld();
    world.enrol("example.com");
    world.db.sqlite.run(
      "CREATE TRIGGER no BEFORE INSERT ON dmarc_records WHEN new.source_ip = '192.0.2.66' BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    const rows = [{ count: 2 }, { ip: "192.0.2.66" }];
    const files = [
      madeReportXml({ reportId: "a" }),
      madeReportXml({ reportId: "bad", rows }),
      madeReportXml({ reportId: "b" }),
    ];
    const done = await world.ingestions.ingestFiles(files.map((text) => world.incoming(text)));
    expect(done.map(({ outcome }) => outcome)).toEqual(["stored", "rejected", "stored"]);
    expect(done[1]).toMatchObject({ reason: "internal_error", hasRaw: true });
    expect(world.count("dmarc_reports")).toBe(2);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("whose reading ends the process is given up after some tries; nobody else is blamed", async () => {
    const path = join(folder, "deadly.db");
    const first = newWorld({ path });
    first.enrol("example.com");
    const ids = await Promise.all(["a", "deadly", "b"].map((id) => take(first, id)));
    /** As far as a process gets that dies when it reads the deadly one. */
    const live = async () => {
      const died = Promise.withResolvers<void>();
      const world = newWorld({
        path,
        read: async (bytes) => {
          const readings = await readReportFile(bytes);
          if (readings[0]?.report?.reportId !== "deadly") return readings;
          died.resolve();
          return Promise.withResolvers<never>().promise;
        },
      });
      world.ingester.start();
      await Promise.race([
        died.promise,
        world.ingester
          .idle()
          .then(() => waitOver(world))
          .then(world.ingester.idle),
      ]);
      return world;
    };
    for (let life = 0; life < ATTEMPTS_MAX; life += 1) expect(states(await live())).toContain("pending");
    const last = await live();
    expect(states(last)).toEqual(["done stored", "done rejected gave_up", "done stored"]);
    expect(last.logged.join()).toContain(String(ids[1]));
    expect(last.store.findRaw(ids[1] ?? "")).toBeDefined();
    const healed = newWorld({ path });
    await healed.ingestions.retry(INGEST_OWNER, ids[1] ?? "");
    healed.ingester.start();
    await healed.ingester.idle();
    expect(states(healed)).toEqual(["done stored", "done stored", "done stored"]);
  });
});

test("mail that came after the start is read without a write before; what that ended is counted in the next life", async () => {
  const path = join(folder, "late.db");
  const attempts = (world: IngestWorld) => world.all<{ n: number }>("SELECT attempts AS n FROM dmarc_ingestions");
  const live = async (comes: boolean) => {
    const died = Promise.withResolvers<void>();
    const read = () => {
      died.resolve();
      return Promise.withResolvers<never>().promise;
    };
    const world = newWorld({ path, read });
    world.ingester.start();
    if (comes) await take(world, "deadly");
    await Promise.race([
      died.promise,
      world.ingester
        .idle()
        .then(() => waitOver(world))
        .then(world.ingester.idle),
    ]);
    return world;
  };
  expect(attempts(await live(true))).toEqual([{ n: 0 }]);
  for (let life = 1; life <= ATTEMPTS_MAX; life += 1) expect(attempts(await live(false))).toEqual([{ n: life }]);
  expect(states(await live(false))).toEqual(["done rejected gave_up"]);
});

describe("while the database cannot be written", () => {
  test("what waits goes on waiting, is not blamed, and is read when it can", async () => {
    let problem: string | null = null;
    const clock = createTestClock();
    const world = newWorld({ clock, around: failing(() => problem) });
    world.enrol("example.com");
    await take(world, "1");
    problem = "SQLITE_FULL";
    world.ingester.start();
    for (let time = 0; time < ATTEMPTS_MAX + 2; time += 1) {
      await world.ingester.idle();
      await clock.advance(60_000);
    }
    expect(states(world)).toEqual(["pending"]);
    expect(take(world, "2")).rejects.toThrow("SQLITE_FULL");
    problem = null;
    await clock.advance(60_000);
    await world.ingester.idle();
    expect(states(world)).toEqual(["done stored"]);
  });

  test("a failure between the reading and the end costs no try", async () => {
    let commits = 0;
    let isFull: boolean = true;
    // The try is counted, what was found is not written.
    const problem = (): string | null => {
      commits += 1;
      return isFull && commits > 1 ? "SQLITE_FULL" : null;
    };
    const clock = createTestClock();
    const world = newWorld({ clock, around: failing(problem) });
    world.enrol("example.com");
    world.db.transact((tx) =>
      world.store.insertPending(tx, {
        ...world.incoming(mail("1"), smtp),
        id: "01980000-0000-7000-8000-000000000000",
        receivedAtMs: 0,
      }),
    );
    world.ingester.start();
    for (let time = 0; time < ATTEMPTS_MAX + 2; time += 1) {
      await world.ingester.idle();
      await clock.advance(60_000);
    }
    expect(states(world)).toEqual(["pending"]);
    isFull = false;
    await clock.advance(60_000);
    await world.ingester.idle();
    expect(states(world)).toEqual(["done stored"]);
  });

  test("an upload fails, and nothing of it is there", async () => {
    const world = newWorld({ around: failing(() => "SQLITE_FULL") });
    world.enrol("example.com");
    expect(world.upload(madeReportXml())).rejects.toThrow("SQLITE_FULL");
    expect(world.count("dmarc_ingestions")).toBe(0);
  });
});

test("reading all again takes what was rejected or quarantined and is kept, of the caller alone", async () => {
  const world = newWorld();
  world.enrol("example.com");
  await world.upload(madeReportXml());
  const foreign = await world.upload(madeReportXml({ domain: "later.example" }));
  const junk = await world.upload("junk");
  const gone = await world.upload("gone");
  const other = await world.upload("junk", { accountId: "other" });
  world.db.sqlite.run("UPDATE dmarc_ingestions SET has_raw = 0 WHERE id = ?", [gone.row.id]);
  expect(world.ingestions.retry(INGEST_OWNER, gone.row.id)).rejects.toThrow("no longer kept");
  world.enrol("later.example");
  expect(await world.ingestions.retryAll(INGEST_OWNER)).toBe(2);
  expect(world.store.isPending(other.row.id)).toBe(false);
  world.ingester.start();
  await world.ingester.idle();
  expect(world.find(foreign.row.id).outcome).toBe("stored");
  expect(world.find(junk.row.id)).toMatchObject({ status: "done", outcome: "rejected" });
});

test("nothing is read while the disk is short of space; it goes on when there is some again", async () => {
  let isDiskLow: boolean = true;
  const world = newWorld({ isDiskLow: () => isDiskLow });
  world.enrol("example.com");
  world.ingester.start();
  const id = await world.intake.take(world.incoming(madeReportXml()));
  await world.ingester.idle();
  expect(world.find(id).status).toBe("pending");
  isDiskLow = false;
  await world.clock.advance(30_000);
  await world.ingester.idle();
  expect(world.find(id)).toMatchObject({ status: "done", outcome: "stored" });
  await world.ingester.stop();
});
