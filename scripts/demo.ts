/**
 * `npm run tool -- demo`: a Postwarden with ninety days of data in a world of its own on loopback, to look at. Prints how to sign in, ends
 * with SIGINT, SIGTERM or after `--minutes` (default 120), and leaves nothing behind. `--facts FILE` writes what tests need to
 * know, for `npm run browser -- --facts FILE`.
 */
import { rmSync, writeFileSync } from "node:fs";
import { ensurePackages } from "./dashboard/service.ts";
import { Stage } from "./dashboard/stage.ts";
import { readOptions } from "./harness/options.ts";

const { values } = readOptions(import.meta.path, {
  options: {
    minutes: { type: "string", default: "120" },
    facts: { type: "string" },
    "per-day": { type: "string", default: "40" },
  },
});
const minutes = Number(values.minutes);
if (!(minutes > 0 && minutes <= 24 * 60)) throw new Error("--minutes takes a number up to 1440");

ensurePackages(["faketime"]);
const status = await Stage.use(Number(values["per-day"]), async (facts, stage) => {
  const { facts: file } = values;
  if (file !== undefined) {
    writeFileSync(file, JSON.stringify(facts));
    stage.onClose(() => rmSync(file, { force: true }));
  }
  const { owner, member } = facts.users;
  console.log(`
${facts.url}/sign-in
  ${owner.email} (owner) or ${member.email} (member), password: ${facts.password}
API keys: ${facts.keys.live}, ${facts.keys.test}

A service that has just been started for the first time printed:
${facts.fresh.greeting}
Ctrl-C ends everything and removes it.`);
  await Bun.sleep(minutes * 60_000);
  return 0;
});
process.exit(status);
