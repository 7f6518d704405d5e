import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Db } from "../../../foundation/db/open.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness, INGEST_OWNER, type IngestHarness } from "../../../testing/ingest-harness.ts";
import { REREAD_AFTER_MS, READ_ATTEMPTS_MAX } from "./ingestion-worker.ts";
import { readReportFile } from "../report/read-file.ts";

const newHarness = createIngestHarness();
const folder = mkdtempSync(join(tmpdir(), "postwarden-ingester-"));
afterAll(() => rmSync(folder, { recursive: true }));

const mail = (reportId: string) => sampleReportMail({ reportId });
const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx.example", mailFrom: "a@b.example" } as const;
const take = (harness: IngestHarness, reportId: string, domain: number | null = null) =>
  harness.queue.add(harness.incoming(mail(reportId), { ...smtp, domain }));
const states = (harness: IngestHarness) =>
  harness
    .all<{ state: string }>(
      "SELECT status || ' ' || coalesce(outcome, '') || ' ' || coalesce(reason, '') AS state FROM dmarc_ingestions ORDER BY id",
    )
    .map(({ state }) => state.trim());

/** Until everything may be begun again that was begun before the start, one after the other. */
const waitOver = async (harness: IngestHarness): Promise<void> => {
  for (let time = 0; time < READ_ATTEMPTS_MAX; time += 1) {
    await harness.clock.advance(REREAD_AFTER_MS);
    await harness.ingester.idle();
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
  test("is durable when it is accepted, and read afterwards", async () => {
    const path = join(folder, "take.db");
    const before = newHarness({ path });
    const domain = before.enrol("example.com");
    const id = await take(before, "1", domain.number);
    const after = newHarness({ path });
    expect(after.find(id)).toMatchObject({
      status: "pending",
      outcome: null,
      findings: null,
      ...smtp,
      domain: domain.number,
    });
    expect((await after.store.raw.find(id))?.byteLength).toBe(mail("1").byteLength);
    after.ingester.start();
    await after.ingester.idle();
    expect(after.find(id)).toMatchObject({ status: "done", outcome: "stored", finishedAtMs: after.clock.nowMs() });
    expect(after.rollups()).toEqual(after.recount());
  });

  test("that arrives while another is read is read next", async () => {
    const seen: string[] = [];
    const harness = newHarness({
      read: async (bytes) => {
        const readings = await readReportFile(bytes);
        seen.push(readings[0]?.report?.reportId ?? "");
        return readings;
      },
    });
    harness.enrol("example.com");
    harness.ingester.start();
    await Promise.all(["a", "b", "c"].map((id) => take(harness, id)));
    await harness.ingester.idle();
    await take(harness, "d");
    await harness.ingester.idle();
    expect(seen).toEqual(["a", "b", "c", "d"]);
    expect(states(harness)).toEqual(Array.from({ length: 4 }, () => "done stored"));
  });

  test("added by another process is found by polling", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    harness.ingester.start();
    await harness.ingester.idle();
    const row = { ...harness.incoming(mail("1"), smtp), id: "01980000-0000-7000-8000-000000000000", receivedAtMs: 0 };
    await harness.db.commit((tx) => harness.store.insertPending(tx, row));
    await harness.clock.advance(30_000);
    await harness.ingester.idle();
    expect(states(harness)).toEqual(["done stored"]);
    await harness.ingester.stop();
    expect(harness.clock.pending()).toBe(0);
  });
});

describe("one bad report", () => {
  test("that cannot be read does not stop the others, and can be retried", async () => {
    let isBroken: boolean = true;
    const harness = newHarness({
      read: async (bytes) => {
        const readings = await readReportFile(bytes);
        if (isBroken && readings[0]?.report?.reportId === "bad") throw new TypeError("a bug");
        return readings;
      },
    });
    harness.enrol("example.com");
    const [, bad] = await Promise.all(["a", "bad", "b"].map((id) => take(harness, id)));
    harness.ingester.start();
    await harness.ingester.idle();
    expect(states(harness)).toEqual(["done stored", "done rejected internal_error", "done stored"]);
    expect(harness.logged.join()).toContain("a bug");
    isBroken = false;
    await harness.ingestions.retry(INGEST_OWNER, bad ?? "");
    await harness.ingester.idle();
    expect(states(harness)).toEqual(["done stored", "done stored", "done stored"]);
  });

  test("whose authentication throws does not stop the others, and can be retried", async () => {
    let isBroken: boolean = true;
    const harness = newHarness({
      authenticate: async ({ mailFrom }) => {
        if (isBroken && mailFrom === "bug@b.example") throw new TypeError("bug");
        return { authenticity: "unknown", from: null, spf: null, dkim: [], dmarc: null, message: "made up" };
      },
    });
    harness.enrol("example.com");
    const mail = (reportId: string, mailFrom: string) =>
      harness.incoming(sampleReportMail({ reportId }), { via: "smtp", mailFrom });
    const bad = await harness.queue.add(mail("1", "bug@b.example"));
    const good = await harness.queue.add(mail("2", "a@b.example"));
    harness.ingester.start();
    await harness.ingester.idle();
    expect(harness.find(bad)).toMatchObject({ outcome: "rejected", reason: "internal_error", hasRaw: true });
    expect(harness.find(good).outcome).toBe("stored");
    expect(harness.logged.join()).toContain("ingestion failed; its bytes are stored");
    isBroken = false;
    await harness.ingestions.retry(INGEST_OWNER, bad);
    await harness.ingester.idle();
    expect(harness.find(bad).outcome).toBe("stored");
    await harness.ingester.stop();
  });

  test("that cannot be written does not stop the others, and leaves nothing behind", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    harness.db.sqlite.run(
      "CREATE TRIGGER no BEFORE INSERT ON dmarc_records WHEN new.source_ip = '192.0.2.66' BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    const rows = [{ count: 2 }, { ip: "192.0.2.66" }];
    const files = [
      sampleReportXml({ reportId: "a" }),
      sampleReportXml({ reportId: "bad", rows }),
      sampleReportXml({ reportId: "b" }),
    ];
    const done = await harness.ingestions.ingestFiles(files.map((text) => harness.incoming(text)));
    expect(done.map(({ outcome }) => outcome)).toEqual(["stored", "rejected", "stored"]);
    expect(done[1]).toMatchObject({ reason: "internal_error", hasRaw: true });
    expect(harness.count("dmarc_reports")).toBe(2);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("that ends the process is given up after some attempts; no other is blamed", async () => {
    const path = join(folder, "deadly.db");
    const first = newHarness({ path });
    first.enrol("example.com");
    const ids = await Promise.all(["a", "deadly", "b"].map((id) => take(first, id)));
    /** As far as a process gets that dies when it reads the deadly one. */
    const live = async () => {
      const died = Promise.withResolvers<void>();
      const harness = newHarness({
        path,
        read: async (bytes) => {
          const readings = await readReportFile(bytes);
          if (readings[0]?.report?.reportId !== "deadly") return readings;
          died.resolve();
          return Promise.withResolvers<never>().promise;
        },
      });
      harness.ingester.start();
      await Promise.race([
        died.promise,
        harness.ingester
          .idle()
          .then(() => waitOver(harness))
          .then(() => harness.ingester.idle()),
      ]);
      return harness;
    };
    for (let life = 0; life < READ_ATTEMPTS_MAX; life += 1) expect(states(await live())).toContain("pending");
    const last = await live();
    expect(states(last)).toEqual(["done stored", "done rejected gave_up", "done stored"]);
    expect(last.logged.join()).toContain(String(ids[1]));
    expect(await last.store.raw.find(ids[1] ?? "")).toBeDefined();
    const healed = newHarness({ path });
    await healed.ingestions.retry(INGEST_OWNER, ids[1] ?? "");
    healed.ingester.start();
    await healed.ingester.idle();
    expect(states(healed)).toEqual(["done stored", "done stored", "done stored"]);
  });
});

test("the attempt of mail that arrives after the start is not counted before; if it ends the process, it is counted after the restart", async () => {
  const path = join(folder, "late.db");
  const attempts = (harness: IngestHarness) => harness.all<{ n: number }>("SELECT attempts AS n FROM dmarc_ingestions");
  const live = async (comes: boolean) => {
    const died = Promise.withResolvers<void>();
    const read = () => {
      died.resolve();
      return Promise.withResolvers<never>().promise;
    };
    const harness = newHarness({ path, read });
    harness.ingester.start();
    if (comes) await take(harness, "deadly");
    await Promise.race([
      died.promise,
      harness.ingester
        .idle()
        .then(() => waitOver(harness))
        .then(() => harness.ingester.idle()),
    ]);
    return harness;
  };
  expect(attempts(await live(true))).toEqual([{ n: 0 }]);
  for (let life = 1; life <= READ_ATTEMPTS_MAX; life += 1) expect(attempts(await live(false))).toEqual([{ n: life }]);
  expect(states(await live(false))).toEqual(["done rejected gave_up"]);
});

test("a database error while a mail is authenticated rejects the batch, and nothing else", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on("unhandledRejection", note);
  try {
    const results = { authenticity: "unknown", from: null, spf: null, dkim: [], dmarc: null, message: "" } as const;
    const harness = newHarness({
      authenticate: async () => results,
      async read(...file) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        return readReportFile(...file);
      },
    });
    const domain = harness.enrol("example.com");
    harness.stores.domains.findCovering = () => {
      throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" });
    };
    const files = ["1", "2", "3"].map((reportId) =>
      harness.incoming(mail(reportId), { ...smtp, domain: domain.number }),
    );
    await expect(harness.ingestions.ingestFiles(files)).rejects.toThrow("disk I/O error");
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

describe("while the database cannot be written", () => {
  test("pending ingestions wait without counted attempts, and are read later", async () => {
    let problem: string | null = null;
    const clock = createTestClock();
    const harness = newHarness({ clock, around: failing(() => problem) });
    harness.enrol("example.com");
    await take(harness, "1");
    problem = "SQLITE_FULL";
    harness.ingester.start();
    for (let time = 0; time < READ_ATTEMPTS_MAX + 2; time += 1) {
      await harness.ingester.idle();
      await clock.advance(60_000);
    }
    expect(states(harness)).toEqual(["pending"]);
    expect(take(harness, "2")).rejects.toThrow("SQLITE_FULL");
    problem = null;
    await clock.advance(60_000);
    await harness.ingester.idle();
    expect(states(harness)).toEqual(["done stored"]);
  });

  test("a read that fails is logged once, and the next one finds what is pending", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    await take(harness, "1");
    let failures = 3;
    const { pending } = harness.store;
    const reads = spyOn(harness.store, "pending").mockImplementation((...given) => {
      if (failures-- > 0) throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });
      return pending.apply(harness.store, given);
    });
    harness.ingester.start();
    await harness.ingester.idle();
    harness.ingester.wake();
    await harness.clock.advance(1_000);
    expect([reads.mock.calls.length, states(harness)]).toEqual([2, ["pending"]]);
    await harness.clock.advance(6_000);
    await harness.ingester.idle();
    expect(states(harness)).toEqual(["done stored"]);
    expect(harness.logged.filter((line) => line.includes("report ingestion failed"))).toHaveLength(1);
    await harness.ingester.stop();
  });

  test("a failure after reading counts no attempt", async () => {
    let commits = 0;
    let isFull: boolean = true;
    // The try is counted, what was found is not written.
    const problem = (): string | null => {
      commits += 1;
      return isFull && commits > 1 ? "SQLITE_FULL" : null;
    };
    const clock = createTestClock();
    const harness = newHarness({ clock, around: failing(problem) });
    harness.enrol("example.com");
    harness.db.transact((tx) =>
      harness.store.insertPending(tx, {
        ...harness.incoming(mail("1"), smtp),
        id: "01980000-0000-7000-8000-000000000000",
        receivedAtMs: 0,
      }),
    );
    harness.ingester.start();
    for (let time = 0; time < READ_ATTEMPTS_MAX + 2; time += 1) {
      await harness.ingester.idle();
      await clock.advance(60_000);
    }
    expect(states(harness)).toEqual(["pending"]);
    isFull = false;
    await clock.advance(60_000);
    await harness.ingester.idle();
    expect(states(harness)).toEqual(["done stored"]);
  });

  test("an upload fails and stores nothing", async () => {
    const harness = newHarness({ around: failing(() => "SQLITE_FULL") });
    harness.enrol("example.com");
    expect(harness.upload(sampleReportXml())).rejects.toThrow("SQLITE_FULL");
    expect(harness.count("dmarc_ingestions")).toBe(0);
  });
});

test("retrying all takes the caller's rejected and quarantined ingestions that are kept", async () => {
  const harness = newHarness();
  harness.enrol("example.com");
  await harness.upload(sampleReportXml());
  const foreign = await harness.upload(sampleReportXml({ domain: "later.example" }));
  const junk = await harness.upload("junk");
  const gone = await harness.upload("gone");
  const other = await harness.upload("junk", { accountId: "other" });
  harness.db.sqlite.run("UPDATE dmarc_ingestions SET has_raw = 0 WHERE id = ?", [gone.row.id]);
  expect(harness.ingestions.retry(INGEST_OWNER, gone.row.id)).rejects.toThrow("no longer kept");
  harness.enrol("later.example");
  expect(await harness.ingestions.retryAll(INGEST_OWNER)).toBe(2);
  expect(harness.store.isPending(other.row.id)).toBe(false);
  harness.ingester.start();
  await harness.ingester.idle();
  expect(harness.find(foreign.row.id).outcome).toBe("stored");
  expect(harness.find(junk.row.id)).toMatchObject({ status: "done", outcome: "rejected" });
});

test("nothing is read while disk space is low; it resumes when there is some again", async () => {
  let isDiskLow: boolean = true;
  const harness = newHarness({ isDiskLow: () => isDiskLow });
  harness.enrol("example.com");
  harness.ingester.start();
  const id = await harness.queue.add(harness.incoming(sampleReportXml()));
  await harness.ingester.idle();
  expect(harness.find(id).status).toBe("pending");
  isDiskLow = false;
  await harness.clock.advance(30_000);
  await harness.ingester.idle();
  expect(harness.find(id)).toMatchObject({ status: "done", outcome: "stored" });
  await harness.ingester.stop();
});
