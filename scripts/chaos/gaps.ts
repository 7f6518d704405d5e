/** Three processes that write, delete and clear the gaps of pages at once, killed at random moments. */
import type { Database } from "bun:sqlite";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDb } from "../../src/foundation/db/open.ts";
import { clearPageGaps } from "../../src/foundation/db/page-gaps.ts";
import { chance, type Findings, integrityClaims, openDatabase } from "./claims.ts";

const PROCESSES = ["one", "two", "three"];
const KILLS = 60;
const UP_MS_MIN = 150;
const UP_MS_MAX = 1_200;
const CHILD = new URL("./gap-child.ts", import.meta.url).pathname;

/** What row `n` of a process holds: lengths that differ, so that SQLite moves rows between pages. */
export const emailOf = (prefix: string, n: number): string => `${prefix}-${n}@gaps.example`;

const EVIDENCE_CHARACTERS = 1_300;

export const evidenceOf = (prefix: string, n: number): string =>
  JSON.stringify({ email: emailOf(prefix, n), more: "x".repeat((n * 37) % EVIDENCE_CHARACTERS) });

/** What a process has said to be durable. */
class Told {
  next = 0;
  readonly inserted = new Set<number>();
  readonly deleted = new Set<number>();
  /** Cleared as a whole. */
  clearings = 0;

  read(output: string): void {
    for (const line of output.split("\n").slice(0, -1)) {
      const [what, from, to] = line.split(" ");
      if (what === "=" && from === "cleared") this.clearings++;
      for (let n = Number(from); n < Number(to); n++) (what === "+" ? this.inserted : this.deleted).add(n);
    }
  }
}

/** Runs one process again and again, killing it each time. */
const runKilled = async (path: string, prefix: string, kills: number): Promise<Told> => {
  const told = new Told();
  for (let done = 0; done < kills; done++) {
    const argv = [process.execPath, "--no-env-file", CHILD, path, prefix, String(told.next)];
    const child = Bun.spawn(argv, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
    const output = new Response(child.stdout).text();
    await Bun.sleep(UP_MS_MIN + chance(UP_MS_MAX - UP_MS_MIN));
    child.kill("SIGKILL");
    told.read(await output);
    // Transactions that were under way at the kill may be stored or not: their numbers are not used again.
    told.next = Math.max(told.next, ...told.inserted) + 1_000;
  }
  return told;
};

const wrongRows = (db: Database, prefix: string, told: Told): { lost: number; changed: number; back: number } => {
  const find = db.query<{ email: string; body: string }, [string]>(
    "SELECT v.email, e.body FROM verifications v JOIN verification_evidence e ON e.verification_id = v.id WHERE v.id = ?",
  );
  const wrong = { lost: 0, changed: 0, back: 0 };
  // A deletion that was under way may have been committed: rows that a deletion could concern may be gone.
  const kept = [...told.inserted].filter((n) => !told.deleted.has(n) && told.inserted.has(n + 300));
  for (const n of kept) {
    const row = find.get(`${prefix}-${n}`);
    if (row === null) wrong.lost++;
    else if (row.email !== emailOf(prefix, n) || row.body !== evidenceOf(prefix, n)) wrong.changed++;
  }
  for (const n of told.deleted) if (find.get(`${prefix}-${n}`) !== null) wrong.back++;
  return wrong;
};

/** Clears what is left, and counts the addresses of deleted rows in the file and its log. */
const tracesIn = async (path: string, told: ReadonlyMap<string, Told>): Promise<number> => {
  const opened = openDb(path);
  if (!opened.ok) throw new Error(opened.error.kind);
  const { outcome } = await clearPageGaps(opened.value);
  const there = new Set(opened.value.sqlite.query("SELECT email FROM verifications").values().flat());
  const text = readFileSync(path, "latin1") + readFileSync(`${path}-wal`, "latin1");
  opened.value.close();
  if (outcome !== "cleared") throw new Error(`the gaps were not cleared: ${outcome}`);
  const gone = [...told].flatMap(([prefix, { deleted }]) => [...deleted].map((n) => emailOf(prefix, n)));
  const found = new Set(text.match(/\w+-\d+@gaps\.example/g));
  return gone.filter((email) => !there.has(email) && found.has(email)).length;
};

/** `npm run chaos -- --only gaps`. */
export const runGaps = async (kills: number | null): Promise<Findings> => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-gaps-"));
  const path = join(folder, "postwarden.db");
  try {
    const opened = openDb(path);
    if (!opened.ok) throw new Error(opened.error.kind);
    opened.value.sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES ('a', 'a', 'scale', 0)");
    opened.value.close();
    const each = Math.ceil((kills ?? KILLS) / PROCESSES.length);
    const told = new Map(
      await Promise.all(PROCESSES.map(async (prefix) => [prefix, await runKilled(path, prefix, each)] as const)),
    );
    const db = openDatabase(folder);
    const wrong = [...told].map(([prefix, one]) => wrongRows(db, prefix, one));
    const sum = (what: "lost" | "changed" | "back"): number => wrong.reduce((all, one) => all + one[what], 0);
    const integrity = integrityClaims(db);
    db.close();
    const totals = (of: (one: Told) => number): number => [...told.values()].reduce((all, one) => all + of(one), 0);
    return {
      summary: `${each * PROCESSES.length} kills, ${totals((one) => one.inserted.size)} rows inserted, ${totals((one) => one.deleted.size)} deleted, ${totals((one) => one.clearings)} times all gaps cleared`,
      claims: [
        ["rows that were acknowledged and are gone", sum("lost")],
        ["rows that are not as they were written", sum("changed")],
        ["deleted rows that are back", sum("back")],
        ...integrity,
        ["addresses of deleted rows in the file after the last clearing", await tracesIn(path, told)],
        ["runs in which no process cleared all gaps", totals((one) => one.clearings) === 0 ? 1 : 0],
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
