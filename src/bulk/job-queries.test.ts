import { describe, expect, test } from "bun:test";
import type { PausedReason } from "../verify/smtp/outages.ts";
import {
  BULK_ACCOUNT,
  bulkOutcome,
  type BulkHarness,
  createBulkHarness,
  OTHER_ACCOUNT,
} from "../testing/bulk-harness.ts";
import type { SubStatus } from "../verify/result.ts";
import type { AttemptOutcome } from "./run/attempt.ts";
import type { Draft } from "./arrival/drafts.ts";
import { TroubleStore } from "./results/host-troubles.ts";
import { JobQueries, resultsWanted, type RowChoice } from "./job-queries.ts";
import type { JobRow } from "./results/job-store.ts";
import type { OpenAddress } from "./results/list-store.ts";
import { RowStore } from "./results/row-store.ts";

const newHarness = createBulkHarness();
const OWNER = { accountId: BULK_ACCOUNT, mode: "live" } as const;
const ANY = { results: null, text: null };

interface Started {
  readonly attempt?: (address: OpenAddress) => Promise<AttemptOutcome>;
  readonly drafts?: readonly Draft[];
  readonly paused?: PausedReason | null;
}

const never = () => Promise.withResolvers<AttemptOutcome>().promise;

const queriesOf = (harness: BulkHarness, { attempt = never, drafts = [], paused = null }: Started = {}) => {
  const outages = { current: () => paused, takeTurn: () => false, onChange: () => undefined };
  const { runner } = harness.start({ attempt, outages });
  const { jobs, lists, ledger } = harness;
  const options = {
    jobs,
    lists,
    runner,
    rows: new RowStore(harness.db),
    troubles: new TroubleStore(harness.db),
    credits: ledger,
    drafts: { waiting: () => [...drafts] },
  };
  return { runner, queries: new JobQueries(harness.runtime, options) };
};

/** Every third address does not exist, every third times out, the others exist; `stays…` never finishes. */
const mixed = async ({ email }: OpenAddress): Promise<AttemptOutcome> => {
  if (email.startsWith("stays")) return never();
  const number = Number(/\d+/.exec(email)?.[0] ?? 0);
  const outcomes: SubStatus[] = ["mailbox_exists", "mailbox_not_found", "smtp_timeout"];
  return bulkOutcome(outcomes[number % 3] ?? "mailbox_exists");
};

const finished = async (harness: BulkHarness, { number }: JobRow): Promise<JobRow> => {
  for (let turn = 0; turn < 200; turn++) await harness.clock.advance(100);
  return harness.jobs.getExisting(number);
};

/** The indexes of all rows, page by page. */
const allRows = async (
  queries: JobQueries,
  job: JobRow,
  filter: Partial<typeof ANY & { results: unknown }>,
  order: "first" | "last",
) => {
  const found: number[] = [];
  let behind: number | null = null;
  do {
    const page = await queries.rows(job, { ...ANY, ...filter } as typeof ANY, { behind, order, limit: 7 });
    expect(page.rows.length).toBeLessThanOrEqual(7);
    found.push(...page.rows.map(({ rowIndex }) => rowIndex));
    behind = page.next;
  } while (behind !== null);
  return found;
};

describe("the rows of a list", () => {
  test.each(["first", "last"] as const)("come in pages from the %s, each once", async (order) => {
    const harness = newHarness();
    const job = await harness.order(Array.from({ length: 40 }, (_, n) => `u${n}@x.example`));
    const { queries } = queriesOf(harness);
    const expected = Array.from({ length: 40 }, (_, n) => n);
    expect(await allRows(queries, job, {}, order)).toEqual(order === "first" ? expected : expected.toReversed());
  });

  test("are found by result, by text, and by both", async () => {
    const harness = newHarness();
    const emails = [...Array.from({ length: 60 }, (_, n) => `U${n}@x.example`), "stays@x.example", " "];
    const { runner, queries } = queriesOf(harness, { attempt: mixed });
    const ordered = await harness.order(emails);
    runner.add(ordered);
    const job = await finished(harness, ordered);
    const every = (rest: number) => Array.from({ length: 60 }, (_, n) => n).filter((n) => n % 3 === rest);
    const found = (choice: RowChoice | undefined, subStatus?: SubStatus, text: string | null = null) =>
      allRows(queries, job, { results: resultsWanted(choice, subStatus), text } as never, "first");
    expect(await found("deliverable")).toEqual(every(0));
    expect(await found("undeliverable")).toEqual(every(1));
    expect(await found("no_address")).toEqual([61]);
    expect(await found("no_address", "invalid_syntax")).toEqual([]);
    expect(await queries.countRows(job, { ...ANY, results: resultsWanted("undeliverable", undefined) })).toBe(20);
    expect(await queries.countRows(job, { ...ANY, results: "no_address" })).toBe(1);
    expect(await queries.countDownload(job, { ...ANY, results: "no_address" }, {})).toBe(1);
    expect(await found("undeliverable", "mailbox_not_found")).toEqual(every(1));
    expect(await found("unsettled")).toEqual(every(2));
    expect(await found("deliverable", "mailbox_not_found")).toEqual([]);
    expect(await found("unfinished")).toEqual([60]);
    expect(await found("unfinished", "smtp_timeout")).toEqual([]);
    expect(await found(undefined, "smtp_timeout")).toEqual(every(2));
    expect(await found(undefined, undefined, "u5@X")).toEqual([5]);
    expect(await found("deliverable", undefined, "u1")).toEqual([12, 15, 18]);
    expect(await found(undefined, undefined, "%")).toEqual([]);
    expect(await queries.unsettled(job)).toBe(20);
  });

  test("that are rare are found behind thousands of others", async () => {
    const harness = newHarness();
    const { runner, queries } = queriesOf(harness, {
      attempt: async ({ email }) => bulkOutcome(email.startsWith("r") ? "null_mx" : "mailbox_exists"),
    });
    const ordered = await harness.order(
      Array.from({ length: 12_000 }, (_, n) => `${n === 11_000 ? "r" : "u"}${n}@x.example`),
    );
    runner.add(ordered);
    const job = await finished(harness, ordered);
    const page = (order: "first" | "last") =>
      queries.rows(job, { ...ANY, results: ["null_mx"] }, { behind: null, order, limit: 50 });
    for (const order of ["first", "last"] as const)
      expect(await page(order)).toMatchObject({ rows: [{ rowIndex: 11_000, subStatus: "null_mx" }], next: null });
  });

  test("say when their next attempt is", async () => {
    const harness = newHarness();
    const dueAtMs = harness.clock.nowMs() + 600_000;
    const { runner, queries } = queriesOf(harness, {
      attempt: async () => ({ kind: "later", dueAtMs, evidence: null, group: null, trouble: null }),
    });
    const job = await harness.order(["a@a.example", "b@b.example"]);
    runner.add(job);
    for (let turn = 0; turn < 10; turn++) await harness.clock.advance(100);
    expect((await queries.rows(job, ANY, { behind: null, order: "first", limit: 1 })).rows).toMatchObject([
      { dueAtMs, subStatus: null },
    ]);
    expect(queries.pace(job)).toEqual({ perSecond: null, waiting: 2, nextAttemptMs: dueAtMs });
  });
});

describe("the lists of an account", () => {
  test("are found by a part of their name, by status, and page by page", async () => {
    const harness = newHarness();
    const { queries } = queriesOf(harness);
    const ids: string[] = [];
    for (const name of ["Spring.csv", "autumn", null, "SPRING 2"]) {
      const job = await harness.order(["a@a.example"]);
      harness.db.sqlite.run("UPDATE bulk_jobs SET name = ? WHERE number = ?", [name, job.number]);
      ids.unshift(job.id);
    }
    await harness.order(["a@a.example"], OTHER_ACCOUNT);
    const search = async (
      filters: { text?: string; status?: "queued" | "completed" },
      before: string | null = null,
      limit = 10,
    ) => {
      const { rows, next } = await queries.search(OWNER, filters, { before, limit });
      return { found: rows.map(({ id }) => ids.indexOf(id)), next };
    };
    expect(await search({})).toEqual({ found: [0, 1, 2, 3], next: null });
    expect(await search({ text: "sPRing" })).toEqual({ found: [0, 3], next: null });
    expect(await search({ text: "_" })).toEqual({ found: [], next: null });
    expect(await search({ status: "completed" })).toEqual({ found: [], next: null });
    const first = await search({}, null, 3);
    expect(first.found).toEqual([0, 1, 2]);
    expect(await search({}, first.next, 3)).toEqual({ found: [3], next: null });
  });

  test("that have not ended are summed up, oldest first", async () => {
    const harness = newHarness();
    const { queries } = queriesOf(harness);
    const { id } = await harness.order(["a@a.example", "b@b.example"]);
    await harness.order(["a@a.example"], OTHER_ACCOUNT);
    expect(queries.running(OWNER)).toEqual([
      { id, title: "List without a name", addresses: { total: 2, finished: 0 }, secondsLeft: null },
    ]);
  });
});

describe("what needs attention among lists", () => {
  const end = (harness: BulkHarness, { number }: JobRow, completedAtMs: number) =>
    harness.db.transact((tx) => harness.jobs.end(tx, number, { status: "failed", completedAtMs }));

  test("is nothing while all is well", async () => {
    const harness = newHarness();
    const { queries } = queriesOf(harness);
    await harness.order(["a@a.example"]);
    expect(queries.attention(OWNER)).toEqual([]);
  });

  test("is an outage, once for all lists", async () => {
    const harness = newHarness();
    const { queries } = queriesOf(harness, { paused: "smtp_unreachable" });
    const { id } = await harness.order(["a@a.example"]);
    expect(queries.attention(OWNER)).toEqual([
      {
        ...{ severity: "warn", label: "Paused", title: "List without a name is paused", sinceMs: null },
        detail: expect.stringContaining("port 25"),
        action: { text: "See why", path: `/lists/${id}` },
      },
    ]);
    await harness.order(["b@b.example"]);
    expect(queries.attention(OWNER)).toMatchObject([
      { title: "2 lists are paused", action: { path: "/lists?status=running" } },
    ]);
    expect(queries.attention({ ...OWNER, accountId: OTHER_ACCOUNT })).toEqual([]);
  });

  test("is a list that failed, for a week", async () => {
    const harness = newHarness();
    const { queries } = queriesOf(harness);
    const job = await harness.order(["a@a.example", "b@b.example"]);
    const nowMs = harness.clock.nowMs();
    end(harness, job, nowMs - 7 * 86_400_000);
    expect(queries.attention(OWNER)).toEqual([]);
    end(harness, job, nowMs - 6 * 86_400_000);
    expect(queries.attention(OWNER)).toMatchObject([
      { severity: "bad", label: "Failed", sinceMs: nowMs - 6 * 86_400_000, action: { path: `/lists/${job.id}` } },
    ]);
    for (let count = 0; count < 10; count++) end(harness, await harness.order(["a@a.example"]), nowMs);
    expect(queries.attention(OWNER)).toHaveLength(5);
  });

  test("is an upload that costs more than is available", () => {
    const harness = newHarness();
    const draft = { id: "d", fileName: "big.csv", bytes: 1, expiresAtMs: 0, jobId: null };
    const attention = (required: number | null) =>
      queriesOf(harness, { drafts: [{ ...draft, required }] }).queries.attention(OWNER);
    expect(attention(null)).toEqual([]);
    expect(attention(1_000_000)).toEqual([]);
    expect(attention(1_000_001)).toMatchObject([
      {
        ...{ severity: "warn", label: "Credits", title: "big.csv waits for credits" },
        detail: expect.stringContaining("1,000,001 credits, 1,000,000 are available"),
        action: { path: "/lists/new?draft=d" },
      },
    ]);
  });
});
