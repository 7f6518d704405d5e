import { describe, expect, test } from "bun:test";
import { BULK_ACCOUNT, bulkOutcome, createBulkHarness } from "../../testing/bulk-harness.ts";
import { evidenceWith, findingWith } from "../../testing/evidence.ts";
import { packEvidence } from "../../verify/store.ts";
import { shownTroubles, type HostTrouble, type Trouble, TROUBLES, TroubleStore, troubleOf } from "./host-troubles.ts";
import { RowStore } from "./row-store.ts";

const newHarness = createBulkHarness();

describe("the trouble of an attempt", () => {
  test.each(TROUBLES.map((reading) => [reading] as const))("%s is one of its host", (reading) => {
    expect(troubleOf({ reading, host: "mx.x.example" })).toEqual({ host: "mx.x.example", reading });
  });

  test.each(["accepted", "mailbox_not_found", "mailbox_full", "ambiguous", "internal", "null_mx"] as const)(
    "%s is none",
    (reading) => {
      expect(troubleOf({ reading, host: "mx.x.example" })).toBeNull();
    },
  );

  test("without any host, and without a probe, there is none", () => {
    expect(troubleOf({ reading: "timeout", host: null })).toBeNull();
    expect(troubleOf(null)).toBeNull();
  });
});

/** A list, and what notes a trouble of the address at a position. */
const listOf = async (emails: readonly string[]) => {
  const harness = newHarness();
  const { number } = await harness.order(emails);
  const troubles = new TroubleStore(harness.db);
  const note = (position: number, trouble: HostTrouble) =>
    harness.db.transact((tx) => troubles.note(tx, number, { position, ...trouble }));
  const counts = () =>
    troubles.most(number, 100).map(({ host, reading, addresses }) => `${host} ${reading} ${addresses}`);
  return { harness, number, troubles, note, counts };
};

const at = (host: string, reading: Trouble): HostTrouble => ({ host, reading });

describe("the troubles of a list", () => {
  test("count each address once, at its last trouble", async () => {
    const { note, counts, troubles, number } = await listOf(["a@a.example", "b@a.example", "c@b.example"]);
    note(0, at("mx.a", "greylisted"));
    note(1, at("mx.a", "greylisted"));
    note(1, at("mx.a", "greylisted"));
    note(2, at("mx.b", "blocked"));
    expect(counts()).toEqual(["mx.a greylisted 2", "mx.b blocked 1"]);
    note(0, at("mx.a", "blocked"));
    note(1, at("mx.a", "blocked"));
    expect(counts()).toEqual(["mx.a blocked 2", "mx.b blocked 1"]);
    expect(troubles.count(number)).toBe(2);
  });

  test("are written with the outcome of an attempt, and lead to the rows of the address", async () => {
    const { harness, number, counts, troubles } = await listOf(["a@a.example", "b@b.example", "A@a.example"]);
    const { reading, host } = at("mx.a", "rate_limited");
    harness.db.transact((tx) => {
      harness.jobs.begin(tx, number, 0);
      const later = { kind: "later", dueAtMs: 1, group: null, evidence: null, trouble: { reading, host } } as const;
      harness.writer.writeAttempts(tx, number, [
        { position: 0, rows: 2, isRetry: false, outcome: later },
        { position: 1, rows: 1, isRetry: false, outcome: bulkOutcome("mailbox_exists") },
      ]);
      harness.writer.writeAttempts(tx, number, [
        { position: 0, rows: 2, isRetry: true, outcome: bulkOutcome("mailbox_exists") },
      ]);
      // The address is finished: an attempt that ends later is dropped.
      const late = { ...later, trouble: at("mx.late", "blocked") };
      harness.writer.writeAttempts(tx, number, [{ position: 0, rows: 2, isRetry: true, outcome: late }]);
    });
    expect(counts()).toEqual(["mx.a rate_limited 1"]);
    const [first] = troubles.most(number, 1);
    const filter = { results: null, text: null, trouble: first?.number };
    const window = { from: 0, to: 9, order: "first", limit: 10 } as const;
    const rows = new RowStore(harness.db).inWindow(number, filter, window);
    expect(rows.map(({ rowIndex }) => rowIndex)).toEqual([0, 2]);
  });

  test("show what the host replied to one of the addresses, while its evidence is there", async () => {
    const { harness, number, troubles, note } = await listOf(["a@a.example", "b@a.example"]);
    const reply = "550 5.7.1 Service unavailable; client blocked";
    const findings = [
      findingWith({ reading: "blocked", host: "mx.a", reply }),
      findingWith({ reading: "timeout", host: "mx.a", reply: null }),
    ];
    note(0, at("mx.a", "blocked"));
    note(1, at("mx.a", "timeout"));
    const shown = () => shownTroubles({ troubles, lists: harness.lists }, number, 10).map(({ said }) => said);
    expect(shown()).toEqual([null, null]);
    harness.db.transact((tx) => {
      for (const position of [0, 1])
        harness.lists.saveEvidence(tx, number, { position, body: packEvidence(evidenceWith({ findings })) });
    });
    expect(shown()).toEqual([reply, null]);
  });

  test("are limited: hosts beyond 5,000 are not counted; they go with their list, and no others do", async () => {
    const { harness, number, troubles, note } = await listOf(["a@a.example"]);
    const other = await harness.order(["z@z.example"], BULK_ACCOUNT);
    harness.db.transact((tx) => {
      for (let n = 0; n < 5_000; n++) troubles.note(tx, number, { position: 0, ...at(`mx${n}`, "timeout") });
      troubles.note(tx, other.number, { position: 0, ...at("mx.z", "timeout") });
    });
    note(0, at("mx.new", "timeout"));
    expect(troubles.most(number, 10).map(({ host }) => host)).toEqual(["mx4999"]);
    note(0, at("mx17", "timeout"));
    expect(troubles.most(number, 10).map(({ host }) => host)).toEqual(["mx17"]);
    harness.db.transact((tx) => {
      while (harness.lists.removeSome(tx, number, 1_000));
    });
    expect(harness.db.sqlite.query("SELECT job, host FROM bulk_troubles").all()).toEqual([
      { job: other.number, host: "mx.z" },
    ]);
  });
});
