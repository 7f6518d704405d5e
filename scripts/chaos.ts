/**
 * `npm run chaos -- [--only PART,PART] [--kills N]`: harms the binary while clients use it, and then proves that nothing it
 * acknowledged was lost. Needs `npm run build`. Prints a line for each claim, and `N passed, M failed` for each part. `--list` names
 * the parts. Those that go deeper into one feature, and `soak`, run only when they are named; `--rows`, `--mails` and `--minutes`
 * are for them.
 */
import { join } from "node:path";
import { type Findings, printFindings } from "./chaos/claims.ts";
import { runClock } from "./chaos/clock.ts";
import { runConnections } from "./chaos/connections.ts";
import { runFullDisk, runReadOnlyDisk } from "./chaos/disk.ts";
import { runEverything } from "./chaos/everything.ts";
import { runGaps } from "./chaos/gaps.ts";
import { inOwnNamespace } from "./harness/namespace.ts";
import { readOptions } from "./harness/options.ts";

const PARTS: Readonly<Record<string, (kills: number | null) => Promise<Findings>>> = {
  everything: (kills) => runEverything(kills ?? 200),
  disk: runFullDisk,
  "read-only": runReadOnlyDisk,
  clock: runClock,
  connections: runConnections,
  gaps: runGaps,
};

/** Programs of their own in `chaos/`, and the options that each takes. */
const PROGRAMS: Readonly<Record<string, ReadonlyArray<"kills" | "rows" | "mails" | "minutes">>> = {
  bulk: ["kills", "rows"],
  dmarc: ["kills", "mails"],
  webhooks: ["kills"],
  soak: ["minutes"],
};

const number = { type: "string" } as const;
const { values } = readOptions(import.meta.path, {
  options: {
    only: { type: "string" },
    list: { type: "boolean" },
    kills: number,
    rows: number,
    mails: number,
    minutes: number,
  },
});
const known = [...Object.keys(PARTS), ...Object.keys(PROGRAMS)];
if (values.list === true) {
  console.log(known.join("\n"));
  process.exit(0);
}
const names = values.only?.split(",") ?? Object.keys(PARTS);
const unknown = names.filter((name) => !known.includes(name));
if (unknown.length > 0) throw new Error(`--only takes some of ${known.join(", ")}`);
const kills = values.kills === undefined ? null : Number(values.kills);
if (kills !== null && !(Number.isInteger(kills) && kills > 0)) throw new Error("--kills takes a number from 1");

/** Runs a program to its end; 1 when it failed. */
const runProgram = async (name: string): Promise<number> => {
  const options = (PROGRAMS[name] ?? []).flatMap((option) => {
    const value = values[option];
    return value === undefined ? [] : [`--${option}`, value];
  });
  const program = [process.execPath, "--no-env-file", join(import.meta.dir, "chaos", `${name}.ts`), ...options];
  const child = Bun.spawn(program, { stdio: ["ignore", "inherit", "inherit"] });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill(signal));
  return (await child.exited) === 0 ? 0 : 1;
};

// The programs need no file system of their own, and no root.
const status = names.every((name) => name in PROGRAMS) ? null : await inOwnNamespace("mount");
if (status !== null) process.exit(status);
let failed = 0;
for (const name of names) {
  if (name in PROGRAMS) failed += await runProgram(name);
  const findings = await PARTS[name]?.(kills);
  if (findings !== undefined) failed += printFindings(name, findings);
}
process.exit(failed === 0 ? 0 : 1);
