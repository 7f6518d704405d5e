import { z } from "zod";
import { CHANGE_CODES, policySchema, dnsCheckSchema } from "../../records/domains/domain-state.ts";
import { DOMAIN_STATUSES } from "../../records/domains/domain-store.ts";
import type { AlertRule } from "../../records/domains/raise.ts";
import { SOURCE_KINDS } from "../../insight/sources/source-identity.ts";
import { sourceSchema } from "../../insight/sources/source-response.ts";
import { CAUSE_CODES } from "./failure-incidents.ts";

const day = z.iso.date();
const time = z.iso.datetime({ precision: 3 });
const share = z.number().min(0).max(1);
const firstDay = day.meta({ description: "The first day in any report (UTC)." });
const messages = z.int().meta({ description: "Messages of the last seven days." });
const aligned = z.int().meta({ description: "Messages of these that passed DMARC." });
const status = z.enum(DOMAIN_STATUSES);
const checkedAt = time.meta({ description: "When the DNS was checked." });
const trigger = z.enum(["enrolled", "scheduled", "manual"]).meta({ description: "What started the check of the DNS." });
const record = z
  .string()
  .nullable()
  .meta({ description: "The text of the DMARC record at the domain; null when there is none, or more than one." });

const eventSourceSchema = z.object({
  key: z.string().meta({ description: "Key of the source, as in `GET …/sources`." }),
  name: z.string().meta({ description: "Display name of the source." }),
  kind: z.enum(SOURCE_KINDS).meta({ description: "Kind of the source, as in `GET …/sources`." }),
  service: z.string().nullable().meta({ description: "The sending service; null when it is not a known one." }),
  classification: z
    .enum(["authorized", "misconfigured", "forwarder", "unknown", "threat"])
    .meta({ description: "Classification of the source." }),
  first_day: firstDay,
  messages,
  aligned,
  dkim: sourceSchema.shape.dkim,
  spf: sourceSchema.shape.spf,
  addresses: sourceSchema.shape.addresses,
});

const failingShares = {
  failing: z.int().meta({ description: "Messages of these that failed DMARC." }),
  failing_share: share.meta({ description: "`failing` divided by `messages`." }),
  usual_failing_share: share.meta({ description: "The share that failed before, on the same weekdays." }),
};

export const failureCauseSchema = z.object({
  code: z.enum(CAUSE_CODES).meta({ description: "Which authentication fails or is missing." }),
  domain: z.string().meta({ description: "Domain of the DKIM signature, or of the envelope sender." }),
  selector: z
    .string()
    .nullable()
    .meta({ description: "DKIM selector; null for SPF and where reports do not give it." }),
  result: z.string().nullable().meta({ description: "The result that receivers gave; null for what is missing." }),
});

/** The `data` of each alert, without the fields about its domain that every event has. */
export const ALERT_DATA = {
  status_changed: z.object({
    previous_status: status.meta({ description: "Status before the check." }),
    status: status.meta({ description: "Status since the check." }),
    checks: z.array(dnsCheckSchema).meta({ description: "The DNS checks and their results." }),
    trigger,
    checked_at: checkedAt,
  }),
  record_changed: z.object({
    changes: z.array(z.enum(CHANGE_CODES)).meta({ description: "What changed, as in `GET …/history`." }),
    previous_record: record,
    record,
    trigger,
    checked_at: checkedAt,
  }),
  policy_weakened: z.object({
    previous_policy: policySchema.nullable().meta({ description: "The policy before; null when there was none." }),
    policy: policySchema.nullable().meta({ description: "The weaker policy; null when there is none." }),
    record,
    checked_at: checkedAt,
    trigger: z.enum(["enrolled", "scheduled", "manual", "reports"]).meta({
      description:
        "`reports`: trusted reports say that receivers found a weaker policy between two checks; `record` is what the last check found.",
    }),
    reported: z
      .object({
        first_day: day.meta({ description: "First day on which reporters found the weaker policy." }),
        last_day: day.meta({ description: "Last day on which reporters found the weaker policy." }),
        reporters: z.array(z.string()).meta({ description: "The reporters that found it." }),
      })
      .optional()
      .meta({ description: "With `trigger` `reports`: who found the weaker policy, and when." }),
  }),
  new_source: z.object({
    count: z.int().meta({ description: "Number of new sources; more than ten come as one event." }),
    sources: z.array(eventSourceSchema).meta({ description: "The ten with the most messages." }),
  }),
  new_subdomain: z.object({
    count: z.int().meta({ description: "Number of new subdomains; more than ten come as one event." }),
    names: z
      .array(
        z.object({
          name: z.string().meta({ description: "The domain in the From header field." }),
          first_day: firstDay,
          messages,
          aligned,
        }),
      )
      .meta({ description: "The ten with the most messages." }),
  }),
  failure_spike: z.object({
    state: z
      .enum(["started", "grew", "ended"])
      .meta({ description: "`grew`: the failing share doubled since the last event." }),
    started_day: day.meta({ description: "First day of the incident." }),
    day: day.meta({ description: "The last day that was evaluated." }),
    messages: z.int().meta({
      description: "Messages since the incident started; when it ended, on that day. Without forwarded messages.",
    }),
    ...failingShares,
    sources: z
      .array(
        eventSourceSchema.extend({
          started_day: day.meta({ description: "First day of the incident of this source." }),
          ...failingShares,
          causes: z
            .array(failureCauseSchema.extend({ message: z.string().meta({ description: "The cause in a sentence." }) }))
            .meta({ description: "What usually passed and now fails or is missing." }),
        }),
      )
      .meta({ description: "At most a hundred, those with the most failing messages first." }),
  }),
  spoofing_campaign: z.object({
    started_day: day.meta({ description: "First day of the campaign." }),
    day: day.meta({ description: "The last day of it so far." }),
    messages: z.int().meta({ description: "Unauthenticated messages of the campaign." }),
    networks: z.int().meta({ description: "Networks that sent them." }),
    quarantined: z.int().meta({ description: "Messages of these that receivers quarantined." }),
    rejected: z.int().meta({ description: "Messages of these that receivers rejected." }),
  }),
  reports_stopped: z.object({
    last_report_at: time.meta({ description: "When the last report arrived." }),
    last_day: day.meta({ description: "The last day that a report is about." }),
  }),
  tls_failures: z.object({
    state: z.enum(["began", "ended"]).meta({ description: "Whether the failures began or ended." }),
    policy_domain: z.string().meta({ description: "The domain whose policy applied." }),
    policy_type: z.string().nullable().meta({ description: "`sts`, `tlsa` or `no-policy-found`." }),
    result_type: z
      .string()
      .meta({ description: "As in RFC 8460 section 4.3; `unspecified` where reports do not say." }),
    meaning: z.string().meta({ description: "What the result type means." }),
    advice: z.string().meta({ description: "What to do." }),
    sessions: z.int().meta({ description: "All sessions under the policy on the last two days with reports." }),
    failed_sessions: z.int().meta({ description: "Sessions of these that failed for this reason." }),
    failing_share: share.meta({ description: "`failed_sessions` divided by `sessions`." }),
    mx_hosts: z
      .array(
        z.object({
          host: z.string().meta({ description: "Name of the MX host." }),
          sessions: z.int().meta({ description: "Failed sessions with it." }),
        }),
      )
      .meta({ description: "MX hosts with failed sessions." }),
    reporters: z.array(z.string()).meta({ description: "Reporters of the failures." }),
    first_day: day.meta({ description: "First day of the failures." }),
    last_day: day.meta({ description: "Last day that reports are about." }),
  }),
  excessive_reporter: z.object({
    count: z.int().meta({ description: "Number of unknown reporters whose counts are far above all others." }),
    reporters: z
      .array(
        z.object({
          name: z
            .string()
            .meta({ description: "The organizational domain that the mail of its reports is authenticated as." }),
          messages: z.int().meta({ description: "Messages in its reports." }),
        }),
      )
      .meta({ description: "The ten with the most messages." }),
    compared_with: z.enum(["known_reporters", "other_reporters"]).meta({
      description:
        "`known_reporters` where these cover the domain; otherwise `other_reporters`, the known ones and those whose counts are not far above the others.",
    }),
    other_messages: z.int().meta({ description: "Messages in the reports of all of these together." }),
    first_day: day.meta({ description: "First day that is compared." }),
    last_day: day.meta({ description: "Last day that is compared." }),
  }),
} satisfies Readonly<Record<AlertRule, z.ZodObject>>;

/** The `data` of an alert of one rule. */
export type AlertData<R extends AlertRule> = z.output<(typeof ALERT_DATA)[R]>;

const bodySchema = z.object({ summary: z.string(), data: z.record(z.string(), z.unknown()) });

/** Reads the stored body of an alert: its summary and the `data` of its event. */
export const readAlertBody = (body: string): z.output<typeof bodySchema> => bodySchema.parse(JSON.parse(body));

const SHARE_DIGITS = 10_000;

/** A share from 0 to 1 with four digits; 0 of nothing. */
export const shareOf = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round((part / whole) * SHARE_DIGITS) / SHARE_DIGITS;
