import { z } from "zod";
import type { TargetRow } from "../../blocklist/store.ts";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import { labelSchema } from "../../foundation/http/schema-fields.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../../notifications/webhooks/url-store.ts";
import { Field, SelectField } from "../components/form.tsx";
import { SEVERITY_OPTIONS } from "./words.tsx";

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
