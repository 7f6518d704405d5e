import type { z } from "zod";
import type { Clock } from "../base/clock.ts";
import { DAY_MS } from "../base/days.ts";
import { AppError } from "../base/errors.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Guard } from "../http/guard.ts";
import { sendJson } from "../http/response.ts";
import { handle, serveRoutes } from "../http/route.ts";
import type { UrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import { batchView, newTargetsOf, readBatch } from "./batch.ts";
import type { discoverRequestSchema } from "./batch-schemas.ts";
import type { Discovered, TargetDiscovery } from "./discovery.ts";
import { createTargets, discoverTargets, GET_OVERVIEW } from "./overview-operations.ts";
import type { Overview } from "./overview.ts";
import { parseTarget } from "./parse-target.ts";
import type { AddOutcome, NewTarget, Targets } from "./targets.ts";

export interface OverviewRouteDeps {
  readonly guard: Guard;
  readonly targets: Targets;
  readonly overview: Overview;
  readonly discovery: TargetDiscovery;
  readonly rules: UrlPolicy;
  readonly clock: Clock;
}

/** Serves what concerns many targets: the overview, batches, discovery. */
export const createOverviewRoutes = ({ guard, targets, overview, discovery, rules, clock }: OverviewRouteDeps) => {
  const webhookUrl = webhookUrlSchema(rules);
  return serveRoutes(guard, [
    handle(GET_OVERVIEW, async ({ query, caller, request }) =>
      sendJson(request, await overview.read(caller, query.since ?? clock.nowMs() - DAY_MS)),
    ),

    handle(createTargets(rules), async ({ query, caller, request }) => {
      const rows = await readBatch(request, query, webhookUrl);
      const outcomes = await targets.addMany(caller, newTargetsOf(rows));
      return sendJson(request, batchView(rows, outcomes));
    }),

    handle(discoverTargets(rules), async ({ body, caller, request }) => {
      const domain = body.domain === undefined ? null : readDomain(body.domain, caller.mode);
      const { found, unknown } = await discovery.discover({ domain, egress: body.egress === true, mode: caller.mode });
      const wanted = found.map((one) => newTargetOf(body, one));
      const outcomes = body.dry_run === true ? [] : await targets.addMany(caller, wanted);
      return sendJson(request, { found: found.map((one, at) => discoveredView(one, outcomes[at])), unknown });
    }),
  ]);
};

/** Normalizes a domain. Throws `Invalid request body` for anything else. */
const readDomain = (text: string, mode: KeyMode): string => {
  const parsed = parseTarget(text, mode);
  const message = parsed.ok ? "Must be a domain, not an address" : parsed.error;
  if (parsed.ok && parsed.value.kind === "domain") return parsed.value.value;
  throw new AppError("Invalid request body", { issues: [{ path: "domain", message }] });
};

const newTargetOf = (
  { label, webhook_url, alert_severity_min }: z.output<ReturnType<typeof discoverRequestSchema>>,
  { target }: Discovered,
): NewTarget => ({
  target,
  label: label ?? null,
  monitoringEnabled: true,
  webhookUrl: webhook_url ?? null,
  recipients: [],
  alertSeverityMin: alert_severity_min ?? null,
});

/** A found target with what happened; `found` when nothing was added. */
const discoveredView = ({ target, source }: Discovered, outcome: AddOutcome | undefined) => {
  if (outcome === undefined) return { target, source, status: "found", id: null, problem: null };
  const { status } = outcome;
  return outcome.status === "invalid"
    ? { target, source, status, id: null, problem: outcome.problem }
    : { target, source, status, id: outcome.target.id, problem: null };
};
