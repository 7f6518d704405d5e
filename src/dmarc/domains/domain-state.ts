import { z } from "zod";
import { CHANGE_CODES } from "./dns-changes.ts";
import { DOMAIN_STATUSES } from "./domain-store.ts";

/** The questions of a check. All three must be answered with yes before reports come. */
export const CHECK_CODES = ["record", "reporting_address", "authorisation"] as const;

const policy = z.enum(["none", "quarantine", "reject"]);
const alignment = z.enum(["r", "s"]);

/** The policy that receivers apply, with what softens it. */
export const statePolicySchema = z.object({
  p: policy,
  sp: policy,
  np: policy,
  adkim: alignment,
  aspf: alignment,
  /** Test mode: one step softer. Rows of old may lack it. */
  t: z.enum(["y", "n"]).default("n"),
  /** Historic: for how many percent of the failing mail. Rows of old may lack it. */
  pct: z.int().default(100),
  own: z.boolean(),
  inherited_from: z.string().nullable(),
});
export type StatePolicy = z.output<typeof statePolicySchema>;

/** What the DNS definitely said. What was never answered is absent: unknown is not no. */
export const observationSchema = z.object({
  /** The texts at the name that are DMARC records; only a single one counts. */
  records: z.array(z.string()).optional(),
  holds_ours: z.boolean().optional(),
  policy: statePolicySchema.nullable().optional(),
  authorisation: z.enum(["authorised", "not_needed", "missing", "redirected"]).optional(),
});
export type DnsObservation = z.output<typeof observationSchema>;

export const OBSERVED_FIELDS = [
  "records",
  "holds_ours",
  "policy",
  "authorisation",
] as const satisfies (keyof DnsObservation)[];
export type ObservedField = (typeof OBSERVED_FIELDS)[number];

/** Since when a field is worse than what is believed of it, by every answer; a second look must confirm that. */
const doubtsSchema = z.partialRecord(z.enum(OBSERVED_FIELDS), z.int());
export type Unconfirmed = Readonly<z.output<typeof doubtsSchema>>;

/** What is remembered of a domain: what is believed, and what scheduled checks said that others must confirm. */
export const stateSchema = z.object({
  believed: observationSchema,
  doubts: doubtsSchema.default({}),
  /** The checks whose bad answers make the domain bad since `badSinceMs`, and that had no good one since. */
  failing: z.array(z.enum(CHECK_CODES)).default([]),
});
export type DomainState = z.output<typeof stateSchema>;

const time = z.iso.datetime({ precision: 3 });
const text = z.string().nullable();

export const dnsCheckSchema = z
  .object({
    code: z.enum(CHECK_CODES).meta({
      description:
        "`record`: exactly one valid DMARC record stands at the name. `reporting_address`: ours is in its `rua`. `authorisation`: receivers may send reports about the domain to the report host (RFC 9990 section 4).",
    }),
    ok: z.boolean().nullable().meta({ description: "Null when the DNS did not answer: unknown is not no." }),
    observed: text.meta({ description: "What was found; several records one a line." }),
    expected: text.meta({
      description: "What should be there: of the record the text to publish. Null where only the owner can say.",
    }),
    message: z.string(),
  })
  .meta({ title: "DmarcCheck" });
export type DnsCheck = z.output<typeof dnsCheckSchema>;

export const lastCheckSchema = z
  .object({
    at: time,
    ok: z
      .boolean()
      .nullable()
      .meta({ description: "False when a check failed, null when none did but one is unknown." }),
    checks: z.array(dnsCheckSchema),
  })
  .meta({ title: "DmarcLastCheck" });
export type LastCheck = z.output<typeof lastCheckSchema>;

/** What of a change is kept as JSON. */
export const historyBodySchema = z.object({
  status: z.enum(DOMAIN_STATUSES),
  previous_status: z.enum(DOMAIN_STATUSES),
  record: text,
  policy: statePolicySchema.nullable(),
  checks: z.array(dnsCheckSchema),
  changes: z.array(z.enum(CHANGE_CODES)),
});
export type HistoryBody = z.output<typeof historyBodySchema>;

/** Reads what is remembered of a domain; null before its DNS first answered. */
export const readState = (json: string | null): DomainState | null =>
  json === null ? null : stateSchema.parse(JSON.parse(json));

export const readLastCheck = (json: string | null): LastCheck | null =>
  json === null ? null : lastCheckSchema.parse(JSON.parse(json));

/** The one record that counts, null when there is none or more than one. */
export const recordOf = ({ records = [] }: Pick<DnsObservation, "records">): string | null =>
  records.length === 1 ? (records[0] ?? null) : null;
