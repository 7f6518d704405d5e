import { AppError } from "../foundation/base/errors.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { Severity } from "../foundation/base/severity.ts";
import type { Discovered, TargetDiscovery } from "./discovery.ts";
import { parseTarget } from "./parse-target.ts";
import type { Owner } from "./store.ts";
import type { AddOutcome, NewTarget, Targets } from "./targets.ts";

/** What to look for, and the settings of what is added. */
export interface DiscoverRequest {
  readonly domain?: string | undefined;
  /** Whether the addresses that this service connects from are wanted. */
  readonly egress?: boolean | undefined;
  /** Adds nothing. */
  readonly dry_run?: boolean | undefined;
  readonly label?: string | null | undefined;
  readonly webhook_url?: string | null | undefined;
  readonly alert_severity_min?: Severity | null | undefined;
}

/** Finds targets and adds them. Throws `Invalid request body` for what is not a domain. */
export const discoverAndAdd = async (
  { discovery, targets }: { readonly discovery: TargetDiscovery; readonly targets: Targets },
  owner: Owner,
  request: DiscoverRequest,
) => {
  const { mode } = owner;
  const domain = request.domain === undefined ? null : readDomain(request.domain, mode);
  const { found, unknown } = await discovery.discover({ domain, egress: request.egress === true, mode });
  const wanted = found.map((one) => newTargetOf(request, one));
  const outcomes = request.dry_run === true ? [] : await targets.addMany(owner, wanted);
  return { found: found.map((one, at) => discoveredView(one, outcomes[at])), unknown };
};

/** Normalizes a domain. */
const readDomain = (text: string, mode: KeyMode): string => {
  const parsed = parseTarget(text, mode);
  const message = parsed.ok ? "Must be a domain, not an address" : parsed.error;
  if (parsed.ok && parsed.value.kind === "domain") return parsed.value.value;
  throw new AppError("Invalid request body", { issues: [{ path: "domain", message }] });
};

const newTargetOf = (
  { label, webhook_url, alert_severity_min }: DiscoverRequest,
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
