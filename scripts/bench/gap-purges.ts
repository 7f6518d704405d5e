import { join } from "node:path";
import { type GapMeter, spawnWatched } from "./gap-meter.ts";
import { environment, openData, type Settings, type Stage } from "./stage.ts";

const DAY_MS = 86_400_000;
/** Older ones are purged: about a third of the checks, and two thirds of the evidence. */
const RETENTION: Settings = {
  POSTWARDEN_VERIFICATION_RETENTION_DAYS: "60",
  POSTWARDEN_EVIDENCE_RETENTION_DAYS: "30",
};

interface Purge {
  readonly meter: GapMeter;
  readonly dataDir: string;
  readonly what: "nightly" | "keys";
}

/** A purge, in a process of its own. */
const watchPurge = async (stage: Stage, what: string, { meter, dataDir, what: kind }: Purge): Promise<void> => {
  const env = environment({ ...RETENTION, POSTWARDEN_DATA_DIR: dataDir });
  const purge = spawnWatched(stage, [join(import.meta.dir, "purge-child.ts"), kind], env);
  await purge.ready;
  await meter.during(what, purge, () => purge.said);
  await purge.stop();
};

/** One API key at 25 requests/s for an hour, and some hours of that after a stop. */
const EXPIRED_KEYS = [90_000, 300_000];
const FILL_KEYS = `INSERT INTO idempotency_keys (key_id, idempotency_key, request_hash, resource_id, created_at_ms)
  WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
  SELECT 'bench', lower(hex(randomblob(16))), lower(hex(randomblob(32))), lower(hex(randomblob(16))), ?2 + i FROM n`;

/** The hourly purge of Idempotency-Keys. */
export const measureKeyPurge = async (stage: Stage, { meter, dataDir }: Omit<Purge, "what">): Promise<void> => {
  for (const keys of EXPIRED_KEYS) {
    const db = openData(dataDir);
    try {
      db.sqlite.query(FILL_KEYS).run(keys, Date.now() - 2 * DAY_MS);
    } finally {
      db.close();
    }
    const what = `purging ${keys.toLocaleString("en")} Idempotency-Keys`;
    await watchPurge(stage, what, { meter, dataDir, what: "keys" });
  }
};

/** The nightly purge, and the hourly one of Idempotency-Keys. */
export const measurePurges = async (stage: Stage, { meter, dataDir }: Omit<Purge, "what">): Promise<void> => {
  await watchPurge(stage, "purging", { meter, dataDir, what: "nightly" });
  await measureKeyPurge(stage, { meter, dataDir });
};
