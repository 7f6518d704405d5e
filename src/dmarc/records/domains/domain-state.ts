import { cached } from "../../../foundation/base/bounded-map.ts";
import { z } from "zod";
import {
  enumField,
  flagField,
  listField,
  namedResponse,
  nullableText,
  textField,
  timeField,
} from "../../../foundation/http/schema-fields.ts";
import { DOMAIN_STATUSES, type DomainRow, type DomainStatus } from "./domain-store.ts";

/** The kinds of changes of a domain. */
export const CHANGE_CODES = [
  "record_added",
  "record_removed",
  "record_changed",
  "policy_weakened",
  "reporting_address_removed",
  "reporting_address_added",
  "authorisation_lost",
  "authorisation_gained",
  "status",
] as const;
export type ChangeCode = (typeof CHANGE_CODES)[number];

/** The checks of a domain. Reports arrive when all three pass. */
export const CHECK_CODES = ["record", "reporting_address", "authorisation"] as const;

const policyOf = (names: string) => enumField(["none", "quarantine", "reject"], `The policy for ${names}.`);
const alignmentOf = (mechanism: string) =>
  enumField(["r", "s"], `${mechanism} alignment: \`r\` relaxed, \`s\` strict.`);

/** The policy that receivers apply. Old rows may lack `t` and `pct`. */
export const policySchema = namedResponse("DmarcPolicy", {
  p: policyOf("the domain"),
  sp: policyOf("subdomains"),
  np: policyOf("subdomains that do not exist"),
  adkim: alignmentOf("DKIM"),
  aspf: alignmentOf("SPF"),
  own: flagField("Whether the domain has its own record."),
  inherited_from: nullableText("The domain whose record applies; null when the domain has its own."),
  t: z.enum(["y", "n"]).default("n").meta({ description: "`y`: test mode; receivers apply the next weaker policy." }),
  pct: z.int().default(100).meta({
    description: "Percentage of failing mail that the policy applies to; RFC 9989 no longer defines it.",
  }),
});
export type StatePolicy = z.output<typeof policySchema>;

export const POLICY_EXAMPLE = {
  p: "reject",
  sp: "reject",
  np: "reject",
  adkim: "r",
  aspf: "r",
  own: true,
  inherited_from: null,
  t: "n",
  pct: 100,
} as const;

/** The definite DNS responses. A field without one is absent: an unknown value is not a negative one. */
export const observationSchema = z.object({
  /** The texts at the name that are DMARC records; only a single one counts. */
  records: z.array(z.string()).optional(),
  holds_ours: z.boolean().optional(),
  policy: policySchema.nullable().optional(),
  authorisation: z.enum(["authorised", "not_needed", "missing", "redirected"]).optional(),
  /** The domain above that declares itself a public suffix: see `findDeclaredSuffix`. It counts without confirmation. */
  declared_suffix: z.string().nullable().optional(),
});
export type DnsObservation = z.output<typeof observationSchema>;

export const OBSERVED_FIELDS = [
  "records",
  "holds_ours",
  "policy",
  "authorisation",
] as const satisfies (keyof DnsObservation)[];
export type ObservedField = (typeof OBSERVED_FIELDS)[number];

/** Since when a field is worse than its known state, in every response; a second check must confirm it. */
const doubtsSchema = z.partialRecord(z.enum(OBSERVED_FIELDS), z.int());
export type Unconfirmed = Readonly<z.output<typeof doubtsSchema>>;

/** The stored state of a domain: what is known, and what scheduled checks found that a second one must confirm. */
export const stateSchema = z.object({
  believed: observationSchema,
  doubts: doubtsSchema.default({}),
  /** The checks that have failed since `badSinceMs`, without a good result since. */
  failing: z.array(z.enum(CHECK_CODES)).default([]),
});
export type DomainState = Readonly<z.output<typeof stateSchema>>;

const text = z.string().nullable();

export const dnsCheckSchema = namedResponse("DmarcCheck", {
  code: enumField(
    CHECK_CODES,
    "`record`: there is exactly one valid DMARC record. `reporting_address`: it has the reporting address in `rua`. `authorisation`: receivers may send reports about the domain to the report host (RFC 9990 section 4).",
  ),
  ok: z.boolean().nullable().meta({ description: "Whether the check passed; null without a DNS response." }),
  observed: nullableText("What was found, one record per line; null for nothing."),
  expected: nullableText("What should be published; null where only the owner can decide."),
  message: textField("The result in a sentence."),
});
export type DnsCheck = z.output<typeof dnsCheckSchema>;

export const lastCheckSchema = namedResponse("DmarcLastCheck", {
  at: timeField("When the DNS was checked."),
  ok: z
    .boolean()
    .nullable()
    .meta({ description: "True when all checks passed, false when one failed, null when one is unknown." }),
  checks: listField(dnsCheckSchema, "The checks, in a fixed order."),
});
export type LastCheck = z.output<typeof lastCheckSchema>;

/** The JSON of a history entry. */
export const historyBodySchema = z.object({
  status: z.enum(DOMAIN_STATUSES),
  previous_status: z.enum(DOMAIN_STATUSES),
  record: text,
  policy: policySchema.nullable(),
  checks: z.array(dnsCheckSchema),
  changes: z.array(z.enum(CHANGE_CODES)),
});
export type HistoryBody = z.output<typeof historyBodySchema>;

/** Parses the stored state of a domain; null before the first definite response. */
export const readState = (json: string | null): DomainState | null => (json === null ? null : parseState(json));

/** Advice, alerts and lists read the same few texts again and again. */
const CACHED_MAX = 1_000;
const parseState = cached(CACHED_MAX, (json): DomainState => stateSchema.parse(JSON.parse(json)));

export const readLastCheck = (json: string | null): LastCheck | null =>
  json === null ? null : lastCheckSchema.parse(JSON.parse(json));

/** The one record that counts, null when there is none or more than one. */
export const recordOf = ({ records = [] }: Pick<DnsObservation, "records">): string | null =>
  records.length === 1 ? (records[0] ?? null) : null;

/** What started a check: the enrolment, the schedule, or a user. */
export type Trigger = "enrolled" | "scheduled" | "manual";
/** `bad`: a check failed. `indefinite`: none failed, but a query got no response. */
export type CheckOutcome = "good" | "bad" | "indefinite";

export interface StatusTransition {
  readonly status: DomainStatus;
  /** When the first bad outcome was seen that has not changed the status yet. */
  readonly badSinceMs: number | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A bad scheduled check counts when a second one this much later confirms it: one name server may be behind the others. */
export const CONFIRMATION_MS = 30 * MINUTE_MS;
/** When the confirming check runs; a little later, so that it is never too early. */
const CONFIRMING_CHECK_MS = 35 * MINUTE_MS;
const RETRY_MS = 30 * MINUTE_MS;
const REGULAR_MS = DAY_MS;
/** When an enforced policy lapses, forged mail is delivered immediately. */
const ENFORCED_MS_MIN = HOUR_MS;
/** Checks of enforced domains per hour, all together; with more domains each is checked less often. */
const ENFORCED_CHECKS_PER_HOUR_MAX = 6_000;
/** While the owner is about to publish the record. */
const PENDING_MS = HOUR_MS;
const PENDING_DAYS = 14;
const JITTER_SHARE = 0.05;
/** Domains of test keys are never due: the last year that ISO 8601 can write with four digits. */
export const NEVER_CHECKED_MS = Date.UTC(9999, 0, 1);

/** The status of a domain after a check (contract §6). Pure. */
export const nextStatus = (
  { status, badSinceMs }: Pick<DomainRow, "status" | "badSinceMs">,
  outcome: CheckOutcome,
  { trigger, nowMs }: { trigger: Trigger; nowMs: number },
): StatusTransition => {
  if (outcome === "indefinite" || trigger === "enrolled") return { status, badSinceMs };
  if (outcome === "good") return { status: "active", badSinceMs: null };
  if (trigger === "manual") return { status: "action_required", badSinceMs: null };
  if (status !== "active") return { status, badSinceMs: null };
  if (badSinceMs === null) return { status, badSinceMs: nowMs };
  return nowMs - badSinceMs >= CONFIRMATION_MS
    ? { status: "action_required", badSinceMs: null }
    : { status, badSinceMs };
};

export interface CheckTiming extends Pick<DomainRow, "id" | "mode" | "status" | "createdAtMs"> {
  /** Whether the DNS left a query unanswered. */
  readonly isIndefinite: boolean;
  /** Since when a change waits for its confirmation; null when none does. */
  readonly unconfirmedSinceMs: number | null;
  /** The interval of checks of an enforced policy: see `enforcedCheckMs`; null unless the policy is enforced. */
  readonly enforcedEveryMs: number | null;
}

/**
 * The interval of checks of a domain with an enforced policy: an hour, and more where the service monitors so many domains that
 * this would be more than 6,000 checks an hour; at most a day.
 */
export const enforcedCheckMs = (monitoredDomains: number): number =>
  Math.min(REGULAR_MS, Math.max(ENFORCED_MS_MIN, (monitoredDomains / ENFORCED_CHECKS_PER_HOUR_MAX) * HOUR_MS));

/** When a domain is checked next; the jitter spreads the checks of all domains. */
export const nextDnsCheckMs = (timing: CheckTiming, nowMs: number): number => {
  const { id, mode, status, createdAtMs, isIndefinite, unconfirmedSinceMs, enforcedEveryMs } = timing;
  if (mode === "test") return NEVER_CHECKED_MS;
  if (isIndefinite) return nowMs + RETRY_MS;
  if (unconfirmedSinceMs !== null) return Math.max(nowMs + MINUTE_MS, unconfirmedSinceMs + CONFIRMING_CHECK_MS);
  const isAwaited = status === "pending" && nowMs - createdAtMs < PENDING_DAYS * DAY_MS;
  const settledMs = status === "pending" ? REGULAR_MS : (enforcedEveryMs ?? REGULAR_MS);
  const everyMs = isAwaited ? PENDING_MS : settledMs;
  return Math.round(nowMs + everyMs * (1 - JITTER_SHARE + 2 * JITTER_SHARE * spreadOf(id)));
};

/** A fixed number between 0 and 1 for an id: the last eight digits of a UUIDv7 are random. */
export const spreadOf = (id: string): number => Number.parseInt(id.slice(-8), 16) / 0xff_ff_ff_ff;
