import { resolve } from "node:path";
import { z } from "zod";
import { type Claim, claim } from "./claims.ts";

const THEME = "webhooks";
const SCRIPT = resolve(import.meta.dir, "../chaos/webhooks.ts");
const KILLS = 2;
const PROMPT_MS_MAX = 25_000;

const Result = z.object({
  lost: z.number(),
  subjects_out_of_order: z.number(),
  requests_within_a_limit: z.number(),
  cancelled: z.number(),
  hanging_receivers_called: z.number(),
  prompt_ms: z.number(),
});

/**
 * Receivers that reject, hang, fail and limit their rate, and what of it the binary made: the run of `npm run chaos -- --only webhooks`,
 * with few kills, as claims of the lab.
 */
export const runWebhooks = async (): Promise<Claim[]> => {
  const child = Bun.spawn([process.execPath, "--no-env-file", SCRIPT, "--kills", String(KILLS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const text = await new Response(child.stdout).text();
  const result = Result.parse(JSON.parse(text.trim().split("\n").at(-1) ?? ""));
  const cell = (what: string, expected: string, got: string): Claim => claim(THEME, what, expected, got);
  const { prompt_ms: promptMs } = result;
  return [
    cell("events lost over kills", "0", String(result.lost)),
    cell("subjects out of order", "0", String(result.subjects_out_of_order)),
    cell("requests within the time of a Retry-After", "0", String(result.requests_within_a_limit)),
    cell("300 receivers hang, and each is called", "300", String(result.hanging_receivers_called)),
    cell("others wait for them", "no", promptMs < PROMPT_MS_MAX ? "no" : `${promptMs} ms`),
  ];
};
