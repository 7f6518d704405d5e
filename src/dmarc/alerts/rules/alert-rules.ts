import { z } from "zod";
import { nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import type { EventDoc } from "../../../foundation/http/openapi.ts";
import type { AlertRule } from "./alert-rule.ts";
import { EXCESSIVE_REPORTER } from "./excessive-reporters.ts";
import { FAILURE_SPIKE } from "./failure-spikes.ts";
import { MTA_STS_CHANGED } from "./mta-sts-changed.ts";
import { NEW_SOURCE } from "./new-sources.ts";
import { NEW_SUBDOMAIN } from "./new-subdomains.ts";
import { POLICY_WEAKENED } from "./policy-weakened.ts";
import { RECORD_CHANGED } from "./record-changed.ts";
import { REPORTS_STOPPED } from "./reports-stopped.ts";
import { SPOOFING_CAMPAIGN } from "./spoofing-campaign.ts";
import { STATUS_CHANGED } from "./status-changed.ts";
import { TLS_FAILURES } from "./tls-failures.ts";
import { VOLUME_SPIKE } from "./volume-spike.ts";

/** The alert rules, in the order in which they are shown. Everything else about a rule is in its file. */
export const ALERT_RULES: readonly AlertRule[] = [
  STATUS_CHANGED,
  RECORD_CHANGED,
  POLICY_WEAKENED,
  NEW_SOURCE,
  NEW_SUBDOMAIN,
  FAILURE_SPIKE,
  SPOOFING_CAMPAIGN,
  VOLUME_SPIKE,
  REPORTS_STOPPED,
  TLS_FAILURES,
  MTA_STS_CHANGED,
  EXCESSIVE_REPORTER,
];

export const alertRuleName = z.enum(ALERT_RULES.map(({ name }) => name));

/** The rule of a stored alert; undefined for one of another version. */
export const findAlertRule = (rule: string | null): AlertRule | undefined =>
  ALERT_RULES.find(({ name }) => name === rule);

/** The fields about the domain in the data of every event. */
const domainSchema = z.object({
  domain_id: z.uuid().describe("Identifier of the domain."),
  domain: textField("Name of the domain."),
  label: nullableText("Your label of the domain."),
  mode: z.enum(["live", "test"]).describe("Mode of the key that enrolled the domain."),
});

const DOMAIN = {
  domain_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
  domain: "example.com",
  label: "shop",
  mode: "live",
} as const;

const schemaTitleOf = (rule: string) =>
  `Dmarc${rule.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`;

/** The events of DMARC monitoring. */
export const DMARC_EVENTS: readonly EventDoc[] = ALERT_RULES.map(
  ({ name, summary, title, incident, data, example }) => ({
    type: `dmarc.${name}`,
    tag: "DMARC monitoring",
    summary,
    title: (text) => `${text("domain")}: ${typeof title === "string" ? title : title(text)}`,
    incident(text, values) {
      const one = incident?.(text, values) ?? null;
      return one === null ? null : { ...one, about: ["dmarc", text("domain_id"), name, ...one.about] };
    },
    data: domainSchema.extend(data.shape).meta({ title: schemaTitleOf(name) }),
    example: { ...DOMAIN, ...example },
  }),
);
