/** Runs the nightly purge on a data directory, as a process that can be watched. */
import { systemClock } from "../../src/base/clock.ts";
import { createLog } from "../../src/base/log.ts";
import { composeService } from "../../src/compose-service.ts";
import { systemPlatform } from "../../src/compose-platform.ts";
import { readConfig } from "../../src/config.ts";
import { openData } from "./stage.ts";

const config = readConfig(process.env);
if (!config.ok) throw new Error(config.error.join(" "));
const db = openData(config.value.dataDir);
const log = createLog("warn", systemClock, (line) => console.error(line));
const platform = systemPlatform(config.value);
const service = composeService({ config: config.value, db, log, platform, baseUrl: "http://127.0.0.1" });
process.send?.("ready");
const purged = await service.purge.run();
process.send?.({ purged: purged.verifications + purged.evidence + purged.lists });
