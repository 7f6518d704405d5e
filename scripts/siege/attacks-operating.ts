import { join } from "node:path";
import { environment, openData } from "../bench/stage.ts";
import { type Attack, type AttackContext, type Finding, type SeedContext, tallyOf } from "./attack.ts";

const ROWS = 150_000;
/** Long ago. */
const ENDED_MS = 1;

/** An old list of another account, whose rows have all expired, and an account that is disabled. */
const seed = async ({ dataDir }: Pick<SeedContext, "dataDir">): Promise<void> => {
  const db = openData(dataDir);
  const id = "019b7600-0000-7000-8000-000000000001";
  db.sqlite.run(
    `INSERT INTO bulk_jobs (id, account_id, key_id, mode, status, format, created_at_ms, completed_at_ms)
      SELECT ?, id, 'k', 'live', 'completed', '{}', ?, ? FROM accounts WHERE name = 'withoutcredits'`,
    [id, ENDED_MS, ENDED_MS],
  );
  db.sqlite.run(
    `WITH RECURSIVE counted (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)
      INSERT INTO bulk_rows (job, row_index, position, cells) SELECT j.number, n, n, '["name","value"]' FROM counted, bulk_jobs j WHERE j.id = ?`,
    [ROWS - 1, id],
  );
  db.sqlite.run("UPDATE accounts SET disabled_at_ms = 1 WHERE name = 'withoutcredits'");
  db.close();
};

/** Runs a command of the binary beside its service; returns its exit status, and for how many seconds it ran. */
const runBeside = async ({ service, dataDir, signal }: AttackContext, words: readonly string[]) => {
  const startedMs = performance.now();
  const child = Bun.spawn([`/proc/${service.pid}/exe`, ...words], {
    env: environment({ POSTWARDEN_DATA_DIR: dataDir }),
    stdio: ["ignore", "ignore", "inherit"],
    signal,
  });
  return { status: await child.exited, seconds: (performance.now() - startedMs) / 1_000 };
};

const operating: Attack = {
  name: "operating",
  about: `the operator writes an account with ${ROWS} rows to a file, then counts and removes them as expired, beside the service`,
  isQuick: false,
  seconds: 120,
  seed,
  prepare: async (context) => async (): Promise<readonly Finding[]> => {
    const moved = await runBeside(context, [
      "accounts",
      "move",
      "withoutcredits",
      join(context.dataDir, "moved.account"),
    ]);
    const counted = await runBeside(context, ["purge", "--dry-run"]);
    const purged = await runBeside(context, ["purge", "--now"]);
    const all = [moved, counted, purged];
    const failed = all.filter(({ status }) => status !== 0).length;
    return [
      {
        what: "commands that failed",
        value: failed,
        unit: "",
        limit: { most: 0 },
        note: tallyOf(all.map(({ status }) => status)),
      },
      { what: "an account is written", value: moved.seconds, unit: "s" },
      { what: "expired rows are counted", value: counted.seconds, unit: "s" },
      { what: "expired rows are removed", value: purged.seconds, unit: "s" },
    ];
  },
};

/** What operators do beside the running service. */
export const operatingAttacks: readonly Attack[] = [operating];
