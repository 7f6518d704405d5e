import { z } from "zod";
import type { EventDoc } from "../../http/openapi.ts";
import type { AlertRule } from "../domains/raise.ts";

const TAG = "DMARC monitoring";

/** What every event says about its domain. */
const aboutSchema = z.object({
  domain_id: z.uuid(),
  domain: z.string(),
  label: z.string().nullable(),
  mode: z.enum(["live", "test"]),
});

const ABOUT = {
  domain_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
  domain: "example.com",
  label: "shop",
  mode: "live",
} as const;

/** An event with the fields of its own, and an example of them. */
export const eventDoc = (
  rule: AlertRule,
  summary: string,
  data: z.ZodObject,
  example: Record<string, unknown>,
): EventDoc => ({
  type: `dmarc.${rule}`,
  tag: TAG,
  summary,
  data: aboutSchema.extend(data.shape).meta({ title: titleOf(rule) }),
  example: { ...ABOUT, ...example },
});

const titleOf = (rule: AlertRule): string =>
  `Dmarc${rule
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")}`;
