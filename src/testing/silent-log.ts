import { createLog } from "../foundation/base/log.ts";
import { createTestClock } from "./clock.ts";

/** A log that discards its lines. */
export const silentLog = createLog("error", createTestClock(), () => undefined);
