import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { DomainView } from "../../dmarc/records/domains/domain-schemas.ts";
import { NO_MAIL_PROBLEM } from "../../foundation/mail/recipients.ts";
import { ALERT_RULES } from "../../dmarc/records/domains/raise.ts";
import { Button, CheckField, Field, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { Panel } from "../components/panel.tsx";
import { RULE_WORDS } from "./alerts-page.tsx";

interface SettingsProps {
  readonly row: DomainRow;
  readonly settings: DomainView["settings"];
  readonly hasMail: boolean;
}

/** Every setting of a domain that can be changed. */
export const SettingsForm = (props: SettingsProps) => (
  <PostForm action={`/dmarc/${props.row.id}/settings`} class="stack">
    <GeneralSettings {...props} />
    <NotificationSettings {...props} />
    <AlertSettings {...props} />
    <ReportSettings {...props} />
    <div class="actions">
      <Button kind="main">Save the settings</Button>
    </div>
  </PostForm>
);

const sendsMailOf = (sendsMail: boolean | null): string => (sendsMail === null ? "unset" : sendsMail ? "yes" : "no");

const GeneralSettings = ({ row, settings }: SettingsProps) => (
  <Panel title="General">
    <div class="form">
      <Field name="label" label="Label" value={row.label} hint="Your own text, shown in lists." />
      <SelectField
        name="sends_mail"
        label="Does this domain send mail?"
        value={sendsMailOf(settings.sends_mail)}
        options={[
          ["unset", "Not specified"],
          ["yes", "Yes"],
          ["no", "No, all mail from it is forged"],
        ]}
        hint="A domain that sends no mail can go to p=reject at once."
      />
    </div>
  </Panel>
);

const NotificationSettings = ({ row, settings, hasMail }: SettingsProps) => (
  <Panel title="Notifications">
    <div class="form">
      <TextAreaField
        name="recipients"
        label="Recipients of alert mail and digests"
        value={settings.recipients.join("\n")}
        rows={3}
        hint={hasMail ? "One address a line. The recipients of the account get all alerts as well." : NO_MAIL_PROBLEM}
      />
      <SelectField
        name="digest"
        label="Digest"
        value={settings.digest}
        options={[
          ["off", "Off"],
          ["daily", "Daily"],
          ["weekly", "Weekly"],
          ["monthly", "Monthly"],
        ]}
      />
      <Field
        name="webhook_url"
        label="Webhook URL"
        value={row.webhookUrl}
        placeholder="https://example.com/hook"
        hint={
          row.webhookUrl !== null && !settings.webhook_configured
            ? "Disabled, because the endpoint responded 410. Enter the URL again to enable it."
            : "For events about this domain. Empty: that of the account."
        }
      />
    </div>
  </Panel>
);

const AlertSettings = ({ settings }: SettingsProps) => {
  const { alert_thresholds: thresholds } = settings;
  return (
    <Panel title="Alerts">
      <fieldset class="checks">
        <legend>Alert when</legend>
        {ALERT_RULES.map((rule) => (
          <CheckField
            key={rule}
            name="alerts"
            value={rule}
            label={RULE_WORDS[rule]}
            isChecked={settings.alerts[rule]}
          />
        ))}
      </fieldset>
      <div class="fields">
        <Field
          name="new_source_messages"
          label="New sender: messages in 7 days"
          type="number"
          value={thresholds.new_source_messages}
        />
        <Field
          name="new_source_percent"
          label="New sender: % of the domain's mail"
          value={thresholds.new_source_percent}
        />
        <Field
          name="failure_spike_messages"
          label="Failures: failing messages"
          type="number"
          value={thresholds.failure_spike_messages}
        />
        <Field
          name="failure_spike_percent"
          label="Failures: rise in percentage points"
          value={thresholds.failure_spike_percent}
        />
        <Field
          name="spoofing_messages"
          label="Spoofing: messages a day"
          type="number"
          value={thresholds.spoofing_messages}
        />
      </div>
    </Panel>
  );
};

const ReportSettings = ({ settings }: SettingsProps) => (
  <Panel title="Reports">
    <CheckField
      name="require_authentic_reports"
      label="Accept authenticated reports only"
      isChecked={settings.require_authentic_reports}
      hint="Reports whose mail is not authenticated as the reporter's by SPF, DKIM and DMARC are quarantined. Advice never uses them in any case."
    />
    <CheckField
      name="store_failure_reports"
      label="Store failure reports"
      isChecked={settings.store_failure_reports}
      hint="They are about single messages (RFC 9991) and can hold personal data."
    />
    <CheckField
      name="failure_reports_redact"
      label="Redact failure reports"
      isChecked={settings.failure_reports_redact}
      hint="Removes local parts, names and subjects before they are stored."
    />
    <div class="fields">
      <Field name="retention_days" label="Keep reports for days" type="number" value={settings.retention_days} />
      <Field
        name="raw_retention_days"
        label="Keep the report mails for days"
        type="number"
        value={settings.raw_retention_days}
      />
    </div>
  </Panel>
);
