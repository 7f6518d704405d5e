import { resolve } from "node:path";
import { MINIMUM } from "./fleet/score.ts";
import type { Claim } from "./claims.ts";
import type { Supervisor } from "./processes.ts";
import { z } from "zod";

const SCRIPTS = resolve(import.meta.dir, "..");
const DIGITS = 1_000;

const Result = z.object({ figures: z.record(z.string(), z.number()), shortfalls: z.array(z.string()) });

/** A quiet machine needs ten minutes, one that tests other things meanwhile twice as long. */
const TIMEOUT_MS = 40 * 60_000;

/** The core of the simulated fleet of `npm run tool -- fleet`, its figures as claims of the lab. */
export const runFleet = async (supervisor: Supervisor): Promise<Claim[]> => {
  const tool = [`${SCRIPTS}/run.mjs`, "--no-env-file", `${SCRIPTS}/tool.ts`, "fleet"];
  const argv = ["nice", "-n", "10", Bun.which("node") ?? "node", ...tool, "--core", "--json"];
  const { stdout, stderr } = await supervisor.finish(argv, { timeoutMs: TIMEOUT_MS });
  if (stdout === "") throw new Error(`The fleet ended without a result: ${stderr.slice(-2_000)}`);
  const { figures, shortfalls } = Result.parse(JSON.parse(stdout));
  return Object.entries(MINIMUM).map(([name, least]): Claim => {
    const figure = Math.round((figures[name] ?? 0) * DIGITS) / DIGITS;
    const right = !shortfalls.some((text) => text.startsWith(`${name}:`));
    return { theme: "fleet", what: name, expected: `${least} or better`, got: String(figure), right };
  });
};
