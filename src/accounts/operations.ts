import { z } from "zod";
import { PLAN_NAMES } from "../billing/plans.ts";
import type { Operation } from "../http/openapi.ts";

const accountSchema = z
  .object({
    id: z.uuid(),
    name: z.string(),
    plan: z.enum(PLAN_NAMES),
    mode: z.enum(["live", "test"]).meta({ description: "Mode of the calling key." }),
    credits: z.object({ available: z.int(), held: z.int() }),
    limits: z.object({ requests_per_second: z.int(), burst: z.int() }),
  })
  .meta({ title: "Account" });

/** What the OpenAPI document says about accounts. */
export const ACCOUNT_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/account",
    tag: "Account",
    summary: "The account, plan and credits of the calling key",
    responses: {
      200: {
        description: "The account.",
        schema: accountSchema,
        example: {
          id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
          name: "default",
          plan: "free",
          mode: "live",
          credits: { available: 99, held: 1 },
          limits: { requests_per_second: 1, burst: 2 },
        },
      },
    },
  },
];
