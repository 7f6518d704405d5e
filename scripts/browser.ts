/**
 * `npm run browser`: the journeys of the page map in a real browser, and who may see what, against the binary with the data of a
 * told story. Arguments are names of test files (`npm run browser -- lists`), `--facts FILE` uses a running `npm run tool -- demo`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ensurePackages } from "./dashboard/service.ts";
import { Stage } from "./dashboard/stage.ts";
import { inOwnNamespace } from "./harness/namespace.ts";
import { readOptions } from "./harness/options.ts";

const TEST_MS_MAX = 180_000;
const PER_DAY = 8;

const { values, positionals } = readOptions(import.meta.path, {
  options: { facts: { type: "string" } },
  allowPositionals: true,
});

const runTests = async (facts: string, stage: Stage | null): Promise<number> => {
  const folder = join(import.meta.dir, "dashboard", "tests");
  const files = positionals.length === 0 ? [`${folder}/`] : positionals.map((name) => join(folder, `${name}.test.ts`));
  const options = ["--timeout", String(TEST_MS_MAX), "--preload", join(folder, "browser.ts")];
  const child = Bun.spawn([process.execPath, "--no-env-file", "test", ...options, ...files], {
    ...{ env: { ...process.env, DASHBOARD_FACTS: facts }, cwd: join(import.meta.dir, "..") },
    stdio: ["ignore", "inherit", "inherit"],
  });
  stage?.onClose(() => child.kill("SIGKILL"));
  return await child.exited;
};

ensurePackages(["chromium-headless-shell", "faketime", "iproute2"]);
const onStage = () => Stage.use(PER_DAY, (facts, stage) => runTests(JSON.stringify(facts), stage));
const status =
  values.facts === undefined
    ? ((await inOwnNamespace("net")) ?? (await onStage()))
    : await runTests(readFileSync(values.facts, "utf8"), null);
process.exit(status);
