import { type TargetState, stateOfTarget } from "../../blocklist/target-table.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import { severityOfRank } from "../../blocklist/lists/blocklist.ts";
import type { Severity } from "../../foundation/base/severity.ts";
import type { HealthState } from "../../blocklist/lists/list-client.ts";
import { Badge, type Kind } from "../components/badge.tsx";
import type { IconName } from "../components/icon.tsx";

export const STATE_WORDS: Readonly<Record<TargetState, string>> = {
  listed: "Listed",
  unknown: "Unknown",
  pending: "First check",
  clean: "Clean",
  paused: "Paused",
};

/** Listings of low severity rarely keep mail from being delivered. */
export const kindOfSeverity = (severity: Severity | null): Kind =>
  severity === "low" || severity === "info" ? "warn" : "bad";

const STATE_KINDS: Readonly<Record<Exclude<TargetState, "listed">, Kind>> = {
  unknown: "unknown",
  pending: "info",
  clean: "ok",
  paused: "unknown",
};

const STATE_ICONS: Partial<Readonly<Record<TargetState, IconName>>> = { paused: "pause", pending: "clock" };

/** The state of a target as an icon and a word. */
export const StateBadge = ({
  target,
}: {
  readonly target: Pick<TargetRow, "monitoringEnabled" | "severityRank" | "status">;
}) => {
  const state = stateOfTarget(target);
  const kind = state === "listed" ? kindOfSeverity(severityOfRank(target.severityRank)) : STATE_KINDS[state];
  const icon = STATE_ICONS[state];
  return (
    <Badge kind={kind} {...(icon === undefined ? {} : { icon })}>
      {STATE_WORDS[state]}
    </Badge>
  );
};

export const SEVERITY_OPTIONS: ReadonlyArray<readonly [Severity, string]> = [
  ["critical", "Critical"],
  ["high", "High"],
  ["medium", "Medium"],
  ["low", "Low"],
  ["info", "Info"],
];

export const HEALTH_WORDS: Readonly<Record<HealthState, readonly [Kind, string]>> = {
  healthy: ["ok", "Works"],
  refused: ["bad", "Refused"],
  silent: ["warn", "No data"],
  wildcard: ["bad", "Lists everything"],
  unreachable: ["warn", "No response"],
  unknown: ["unknown", "Not proven"],
};

export const HealthBadge = ({ state }: { readonly state: HealthState }) => {
  const [kind, word] = HEALTH_WORDS[state];
  return <Badge kind={kind}>{word}</Badge>;
};

export const KIND_WORDS = { ipv4: "IPv4", ipv6: "IPv6", domain: "domains" } as const;
