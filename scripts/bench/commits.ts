import { join } from "node:path";
import { openDb, SERVER_BUSY_TIMEOUT_MS } from "../../src/foundation/db/open.ts";
import { type Mark, median } from "./marks.ts";
import type { Stage } from "./stage.ts";

const WRITES = 300;
const ROUNDS = 15;

/** What one write that throws costs the 300 others of its transaction. */
export const measureCommits = async ({ directory }: Stage): Promise<Mark[]> => {
  const opened = openDb(join(directory, "commits.db"), SERVER_BUSY_TIMEOUT_MS);
  if (!opened.ok) throw new Error("the database cannot be opened");
  const db = opened.value;
  const insert = db.sqlite.prepare("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES (?, ?, 'free', 0)");
  let serial = 0;
  const round = async (throwing: number): Promise<number> => {
    const works = Array.from({ length: WRITES + throwing }, (_, at) => () => {
      if (at >= WRITES / 2 && at < WRITES / 2 + throwing) throw new Error("a bug");
      const id = `account ${++serial}`;
      insert.run(id, id);
    });
    const startedMs = performance.now();
    const ends = await Promise.allSettled(works.map((work) => db.commit(work)));
    const tookMs = performance.now() - startedMs;
    const written = ends.filter(({ status }) => status === "fulfilled").length;
    if (written !== WRITES) throw new Error(`${written} of ${WRITES} writes were written`);
    return tookMs;
  };
  const rounds = async (throwing: number): Promise<number> => {
    const times: number[] = [];
    for (let n = 0; n < ROUNDS; n++) times.push(await round(throwing));
    return median(times);
  };
  try {
    await rounds(0);
    const group = "commits";
    const [alone, withOne, withMany] = [await rounds(0), await rounds(1), await rounds(WRITES)];
    const note = `median of ${ROUNDS} transactions`;
    return [
      { group, what: `${WRITES} writes`, value: alone, unit: "ms", note },
      { group, what: "and one that throws", value: withOne, unit: "ms", limit: { most: 50 } },
      { group, what: "as many times as long", value: withOne / alone, unit: "", limit: { most: 3 } },
      { group, what: `and ${WRITES} that throw`, value: withMany, unit: "ms", limit: { most: 50 } },
    ];
  } finally {
    db.close();
  }
};
