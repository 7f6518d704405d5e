import { join } from "node:path";
import type { Mark } from "./marks.ts";
import { keep, type Stage } from "./stage.ts";

const SECONDS_MAX = 120;
const ROOT = join(import.meta.dir, "../..");

/** How long all tests take. */
export const measureTests = async (stage: Stage): Promise<Mark[]> => {
  const startedMs = performance.now();
  const child = Bun.spawn(["npm", "test"], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
  const stop = keep(stage, child);
  // The test runner reports on its standard error, and says at its end: ` 12 fail`.
  const said = await new Response(child.stderr).text();
  const status = await child.exited;
  const seconds = (performance.now() - startedMs) / 1_000;
  await stop();
  const { user = 0, system = 0 } = child.resourceUsage()?.cpuTime ?? {};
  const failed = Number(/^ *(\d+) fail$/m.exec(said)?.[1] ?? (status === 0 ? 0 : Number.NaN));
  const group = "tests";
  return [
    { group, what: "npm test", value: seconds, unit: "s", limit: { most: SECONDS_MAX } },
    { group, what: "its processor time", value: Number(user) / 1e6 + Number(system) / 1e6, unit: "s" },
    { group, what: "tests that failed", value: failed, unit: "", limit: { most: 0 } },
  ];
};
