/**
 * `npm run shots`: a picture of every page, light and dark, wide and narrow, into `shots/`, named by page. Pages are found by following
 * links from the home page. Fails when a page violates the policy, logs an error, requests anything elsewhere, scrolls sideways or hides
 * a cell of a table at 1440, 1280, 1024, 390 or 360 px, violates axe-core, is larger than 150 kB, or when no link leads to a page of the map.
 * `--facts FILE` uses a running `npm run tool -- demo`; `--readme` takes the picture of the README and the one that messengers show beside links, alone.
 */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ensurePackages } from "./dashboard/service.ts";
import { shoot, shootReadme } from "./dashboard/shoot.ts";
import { Stage, type StageFacts } from "./dashboard/stage.ts";
import { inOwnNamespace } from "./harness/namespace.ts";
import { readOptions } from "./harness/options.ts";

const PER_DAY = 40;
const { values } = readOptions(import.meta.path, {
  options: { facts: { type: "string" }, only: { type: "string" }, readme: { type: "boolean", default: false } },
});
const folder = join(import.meta.dir, "..", "shots");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);

ensurePackages(["chromium-headless-shell", "faketime", "iproute2"]);
const README_PICTURE = join(import.meta.dir, "..", "fixtures/dashboard.png");
const SHARE_PICTURE = join(import.meta.dir, "..", "src/dashboard/assets/share.png");
const work = (facts: StageFacts): Promise<number> =>
  values.readme
    ? shootReadme(facts, { page: README_PICTURE, share: SHARE_PICTURE })
    : shoot(facts, { folder, only: values.only ?? null });
const status =
  values.facts === undefined
    ? ((await inOwnNamespace("net")) ?? (await Stage.use(PER_DAY, work)))
    : await work(JSON.parse(readFileSync(values.facts, "utf8")) as StageFacts);
process.exit(status);
