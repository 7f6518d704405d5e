/** Runs a purge on a data directory, as a process that can be watched: the nightly one, or that of Idempotency-Keys. */
import { join } from "node:path";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { createLog } from "../../src/foundation/base/log.ts";
import { CheckpointThread } from "../../src/foundation/db/checkpoint-thread.ts";
import { Service } from "../../src/service/compose.ts";
import { systemPlatform } from "../../src/service/platform.ts";
import { readConfig } from "../../src/service/config.ts";
import { openData } from "./stage.ts";

const config = readConfig(process.env);
if (!config.ok) throw new Error(config.error.join(" "));
const db = openData(config.value.dataDir);
const log = createLog("warn", systemClock, (line) => console.error(line));
const platform = systemPlatform(config.value);
db.checkpoints.use(
  new CheckpointThread(db.path, { log, clock: systemClock, program: join(import.meta.dir, "../../src/main.ts") }),
);
const service = new Service({ config: config.value, db, log, platform, baseUrl: "http://127.0.0.1" });

const purgeNightly = async (): Promise<number> => {
  const { verifications, evidence, lists } = await service.purge.run();
  return verifications + evidence + lists;
};

// The first reading of the watch begins the measurement: the purge must not be over before.
const watched = new Promise<unknown>((resolve) => {
  process.once("message", resolve);
});
process.send?.("ready");
await watched;
const purged = await (process.argv[2] === "keys" ? service.verification.idempotency.purge() : purgeNightly());
process.send?.({ purged });
