import { resolve } from "node:path";
import { z } from "zod";
import type { OutageCell } from "./outage.ts";
import { MINIMUM } from "./fleet/minimum.ts";

const SCRIPT = resolve(import.meta.dir, "../fleet.ts");
const DIGITS = 1_000;

const Result = z.object({ figures: z.record(z.string(), z.number()), shortfalls: z.array(z.string()) });

/** The simulated fleet of `npm run fleet`, its figures as claims of the lab. */
export const runFleet = async (): Promise<OutageCell[]> => {
  const child = Bun.spawn([process.execPath, "--no-env-file", SCRIPT, "--json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { figures, shortfalls } = Result.parse(JSON.parse(await new Response(child.stdout).text()));
  return Object.entries(MINIMUM).map(([name, least]): OutageCell => {
    const figure = Math.round((figures[name] ?? 0) * DIGITS) / DIGITS;
    const right = !shortfalls.some((text) => text.startsWith(`${name}:`));
    return { what: `fleet: ${name}`, expected: `${least} or better`, got: String(figure), right };
  });
};
