/**
 * `npm run tool -- fleet [--seed N] [--days N] [--scale N] [--only PATTERN] [--core] [--json]`: a simulated fleet of domains whose truth is known, and the
 * score of what the service says of it. Ends with status 1 when the score is below the minimum.
 */
import { orderClaim } from "./lab/fleet/order.ts";
import { scoreText } from "./lab/fleet/score-text.ts";
import { MINIMUM, figuresOf, scoreOf, shortfallsOf } from "./lab/fleet/score.ts";
import { simulate } from "./lab/fleet/simulate.ts";
import { readOptions } from "./harness/options.ts";

const { values } = readOptions(import.meta.path, {
  options: {
    seed: { type: "string", default: "1" },
    days: { type: "string", default: "75" },
    scale: { type: "string", default: "1" },
    only: { type: "string", default: "" },
    core: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const [seed, days] = [Number(values.seed), Number(values.days)];
const result = await simulate({
  seed,
  days,
  only: new RegExp(values.only, "i"),
  isCore: values.core,
  scale: Number(values.scale),
  tell: (text) => console.error(text),
});
const more = values.only === "" ? [await orderClaim(seed)] : [];
const score = scoreOf(result, { seed, days, more });
const shortfalls = shortfallsOf(score, MINIMUM);
console.log(values.json ? JSON.stringify({ figures: figuresOf(score), shortfalls, ...score }) : scoreText(score));
for (const line of result.logged.slice(0, 10)) console.error(line);
for (const shortfall of shortfalls) console.error(`below the minimum: ${shortfall}`);
process.exit(shortfalls.length === 0 ? 0 : 1);
