import { type TargetState, stateOfTarget, type TargetTable } from "../../blocklist/target-table.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import { severityOfRank, type Catalogue } from "../../blocklist/lists/blocklist.ts";
import { type Severity, SEVERITIES } from "../../foundation/base/severity.ts";
import type { HealthState } from "../../blocklist/lists/list-client.ts";
import type { IconName } from "../components/icon.tsx";
import { Badge, type Kind } from "../components/inline.tsx";
import { z } from "zod";
import { labelSchema } from "../../foundation/http/schema-fields.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../../notifications/webhooks/url-store.ts";
import { Field, SelectField } from "../components/form.tsx";
import type { Clock } from "../../foundation/base/clock.ts";
import type { TargetDiscovery } from "../../blocklist/discovery.ts";
import type { ListStatuses } from "../../blocklist/list-status.ts";
import type { ListingNotesEditor } from "../../blocklist/listings.ts";
import type { BlocklistMonitor, RangeChecks } from "../../blocklist/monitor.ts";
import type { Mutes } from "../../blocklist/muting.ts";
import type { TargetActions, Targets } from "../../blocklist/targets.ts";
import type { TargetHistory } from "../../blocklist/target-history.ts";
import { listsByMode } from "../../blocklist/target-lookup.ts";
import type { KeyMode } from "../../foundation/base/secrets.ts";

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

const RECIPIENTS_MAX = 10;

const emptyIsNull = (text: unknown): unknown => (typeof text === "string" && text.trim() === "" ? null : text);

/** The settings of targets, as the forms send them: empty fields are null. */
export const settingsFields = (policy: UrlPolicy) => ({
  label: z.preprocess(emptyIsNull, labelSchema("outbound 1").nullable()).default(null),
  alert_severity_min: z.preprocess(emptyIsNull, z.enum(SEVERITIES).nullable()).default(null),
  webhook_url: z.preprocess(emptyIsNull, webhookUrlSchema(policy).nullable()).default(null),
  recipients: z
    .string()
    .max(4_000)
    .default("")
    .transform((text) => [...new Set(text.split(/[\s,;]+/).filter((address) => address !== ""))])
    .refine((addresses) => addresses.length <= RECIPIENTS_MAX, `At most ${RECIPIENTS_MAX} recipients`),
});

export interface Settings {
  readonly label: string | null;
  readonly alert_severity_min: string | null;
  readonly webhook_url: string | null;
  readonly recipients: string;
}

export const settingsOf = ({ label, alertSeverityMin, webhookUrl, recipients }: TargetRow): Settings => ({
  label,
  alert_severity_min: alertSeverityMin,
  webhook_url: webhookUrl,
  recipients: recipients.join(", "),
});

/** The fields that new and known targets share. */
export const SettingsFields = ({ settings }: { readonly settings: Partial<Settings> }) => (
  <>
    <Field
      name="label"
      label="Label"
      value={settings.label ?? null}
      hint="Free text of your own, such as outbound 1."
    />
    <Field
      name="recipients"
      label="Mail to"
      value={settings.recipients ?? null}
      hint={`Up to ${RECIPIENTS_MAX} addresses, in addition to those of the account.`}
    />
    <SelectField
      name="alert_severity_min"
      label="Notify from this severity"
      value={settings.alert_severity_min ?? ""}
      options={[["", "As the account is set"], ...SEVERITY_OPTIONS]}
      hint="Listings of a lower severity are in the history only."
    />
    <Field
      name="webhook_url"
      label="Webhook"
      type="url"
      value={settings.webhook_url ?? null}
      placeholder="https://example.com/hook"
      hint="Receives every listing and delisting, signed, in addition to the webhook of the account."
    />
  </>
);

/** What the pages about blocklists use. */
export interface BlocklistUseCases {
  readonly clock: Clock;
  /** Which webhook URLs are allowed. */
  readonly rules: UrlPolicy;
  readonly catalogue: Catalogue;
  readonly targets: Targets;
  readonly table: TargetTable;
  readonly history: TargetHistory;
  readonly statuses: ListStatuses;
  readonly mutes: Mutes;
  readonly actions: TargetActions;
  readonly notes: ListingNotesEditor;
  readonly monitor: BlocklistMonitor;
  readonly rangeChecks: RangeChecks;
  readonly discovery: TargetDiscovery;
}

/** List or listing → name. */
export const namesIn = ({ lists }: Catalogue, mode: KeyMode): ReadonlyMap<string, string> =>
  new Map(
    listsByMode(lists)[mode].flatMap(({ id, name, codes }) => [
      ...codes.map((code) => [code.id, code.name] as const),
      [id, name] as const,
    ]),
  );
