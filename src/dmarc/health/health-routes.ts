import { Elysia } from "elysia";
import { z } from "zod";
import type { Caller, Guard } from "../../http/guard.ts";
import { namesOf, parametersOf, readParameters } from "../../http/query.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { HealthRuns } from "./health-runs.ts";
import { isSelector } from "./selectors.ts";

export interface HealthRouteDeps {
  readonly guard: Guard;
  readonly runs: Pick<HealthRuns, "healthOf">;
  /** The caller's domain; throws `not_found` for one that is not there, or not the caller's. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
}

/** Selectors that a caller may name. */
export const REQUESTED_SELECTORS_MAX = 10;

const querySchema = z.strictObject({
  refresh: z
    .enum(["true", "false"], { error: "Must be true or false" })
    .transform((text) => text === "true")
    .optional(),
  selectors: z
    .string("Must not be repeated: separate selectors by commas")
    .transform((text) => text.split(",").map((selector) => selector.trim()))
    .refine((selectors) => selectors.length <= REQUESTED_SELECTORS_MAX, {
      error: `At most ${REQUESTED_SELECTORS_MAX} selectors`,
    })
    .refine((selectors) => selectors.every(isSelector), {
      error: "Must be DKIM selectors, separated by commas, such as mail,google",
    })
    .optional(),
});

/** `GET /v1/dmarc/domains/{id}/health`. */
export const createHealthRoutes = ({ guard, runs, findDomain }: HealthRouteDeps) =>
  new Elysia({ name: "dmarc-health" }).use(guard).get(
    "/v1/dmarc/domains/:id/health",
    ({ request, params, caller }) => {
      const domain = findDomain(caller, params.id);
      const { refresh = false, selectors = [] } = readParameters(parametersOf(request), querySchema);
      return runs.healthOf(domain, { refresh, selectors, priority: "realtime" });
    },
    { demand: { scope: "dmarc:read", query: namesOf(querySchema) } },
  );
