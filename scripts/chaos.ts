/**
 * `npm run chaos -- [--only PART,PART] [--kills N]`: harms the binary while clients use it, and then proves that nothing it
 * acknowledged was lost. Needs `npm run build`. Prints a line for each claim, and `N passed, M failed` for each part.
 */
import { parseArgs } from "node:util";
import { type Findings, printFindings } from "./chaos/claims.ts";
import { runClock } from "./chaos/clock.ts";
import { runConnections } from "./chaos/connections.ts";
import { runFullDisk, runReadOnlyDisk } from "./chaos/disk.ts";
import { runEverything } from "./chaos/everything.ts";
import { runGaps } from "./chaos/gaps.ts";
import { inOwnNamespace } from "./chaos/small-disk.ts";

const PARTS: Readonly<Record<string, (kills: number | null) => Promise<Findings>>> = {
  everything: (kills) => runEverything(kills ?? 200),
  disk: runFullDisk,
  "read-only": runReadOnlyDisk,
  clock: runClock,
  connections: runConnections,
  gaps: runGaps,
};

const { values } = parseArgs({ options: { only: { type: "string" }, kills: { type: "string" } } });
const names = values.only?.split(",") ?? Object.keys(PARTS);
const unknown = names.filter((name) => PARTS[name] === undefined);
if (unknown.length > 0) throw new Error(`--only takes some of ${Object.keys(PARTS).join(", ")}`);
const kills = values.kills === undefined ? null : Number(values.kills);
if (kills !== null && !(Number.isInteger(kills) && kills > 0)) throw new Error("--kills takes a number from 1");

const status = await inOwnNamespace();
if (status !== null) process.exit(status);
let failed = 0;
for (const name of names) {
  const findings = await PARTS[name]?.(kills);
  if (findings !== undefined) failed += printFindings(name, findings);
}
process.exit(failed === 0 ? 0 : 1);
