import { z } from "zod";
import type { DomainSettingsChange, DomainView } from "../../dmarc/records/domains/domains.ts";
import { DIGESTS, type DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { webhookUrlSchema } from "../../notifications/webhooks/url-store.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { camelKeys } from "../../foundation/base/key-case.ts";
import { manualHint } from "../../foundation/base/manual-hint.ts";
import { Button, CheckField, Field, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { ButtonLink, HelpText, Link } from "../components/inline.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import { formAction, page, type PageRoute, flag, optionalText } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { domainParameters } from "./domain-page.tsx";
import { DomainHead } from "./domain-head.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";
import { NO_MAIL_PROBLEM } from "../../foundation/mail/recipients.ts";
import { DEFAULT_THRESHOLDS } from "../../dmarc/records/domains/alert-store.ts";
import { domainChangeSchema } from "../../dmarc/domain-schemas.ts";

const TEXT_MAX = 2_000;
const number = z
  .string()
  .trim()
  .transform((text) => (text === "" ? Number.NaN : Number(text)));

const form = z.object({
  label: optionalText(TEXT_MAX),
  webhook_url: optionalText(TEXT_MAX),
  tags: z.string().default(""),
  recipients: z.string().default(""),
  digest: z.enum(DIGESTS),
  sends_mail: z.enum(["unset", "yes", "no"]),
  require_authentic_reports: flag,
  store_failure_reports: flag,
  failure_reports_redact: flag,
  retention_days: number,
  raw_retention_days: number,
  new_source_messages: number,
  new_source_percent: number,
  failure_spike_messages: number,
  failure_spike_percent: number,
  spoofing_messages: number,
  volume_spike_messages: number,
  volume_spike_factor: number,
  volume_spike_addresses: number,
});
type GivenSettings = z.output<typeof form>;

/** The settings of a domain; pausing and deleting it. */
export const settingsPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => {
  const { domains, rules } = useCases;
  const schema = domainChangeSchema(webhookUrlSchema(rules));
  const view = (viewer: Viewer, id: string): View => settingsView(domains.find(viewer.caller, id), useCases);
  return [
    page({ path: "/dmarc/:id/settings", params: domainParameters }, ({ viewer, params: { id } }) => view(viewer, id)),
    formAction(
      { path: "/dmarc/:id/settings", params: domainParameters, form },
      async ({ viewer, params: { id }, form: given }) => {
        const read = schema.safeParse(bodyOf(given));
        if (!read.success) throw invalidSettings(read.error);
        const before = domains.find(viewer.caller, id);
        const change: DomainSettingsChange = camelKeys(read.data);
        await domains.change(viewer.caller, id, unchangedLeftOut(before, change));
        return redirectTo(viewer, `/dmarc/${id}/settings`, { ok: "Settings saved." });
      },
      { rerender: ({ viewer, params: { id } }) => view(viewer, id) },
    ),
    ...deletePages(useCases),
  ];
};

/** The form as the body of a PATCH request, so that the same schema checks both. */
const bodyOf = (given: GivenSettings) => {
  const { sends_mail, recipients, tags, ...rest } = given;
  const thresholds = new Set<string>(Object.keys(DEFAULT_THRESHOLDS));
  const split = Object.groupBy(Object.entries(rest), ([name]) => (thresholds.has(name) ? "thresholds" : "plain"));
  return {
    ...Object.fromEntries(split.plain ?? []),
    tags: tags.split(/[\s,;]+/).filter((text) => text !== ""),
    recipients: recipients.split(/[\s,;]+/).filter((text) => text !== ""),
    sends_mail: sends_mail === "unset" ? null : sends_mail === "yes",
    alert_thresholds: Object.fromEntries(split.thresholds ?? []),
  };
};

/** Says each problem beside its field: the last name of its path that a field has. */
const invalidSettings = (error: z.ZodError): AppError =>
  new AppError("Invalid request body", {
    issues: error.issues.map(({ path, message }) => ({
      path: String((path[0] === "alert_thresholds" ? path[1] : path[0]) ?? ""),
      message,
    })),
  });

/** The webhook URL and the recipients are changed only when they differ: setting a URL again enables it after a 410. */
const unchangedLeftOut = (before: DomainRow, change: DomainSettingsChange): DomainSettingsChange => {
  const { recipients, digest, ...rest } = change;
  const isSame = JSON.stringify(recipients) === JSON.stringify(before.recipients);
  return {
    ...rest,
    ...(recipients === undefined || isSame ? {} : { recipients }),
    ...(digest === undefined || digest === before.digest ? {} : { digest }),
  };
};

const settingsView = (row: DomainRow, { domains, hasMail }: DmarcPageUseCases): View => ({
  title: `Settings of ${row.domain}`,
  section: "dmarc",
  body: (
    <>
      <DomainHead domain={row} current="settings" title={`Settings of ${row.domain}`} />
      <SettingsForm row={row} settings={domains.view(row).settings} hasMail={hasMail} />
      <Panel title={row.monitoringEnabled ? "Pause monitoring" : "Monitoring is paused"}>
        <p class="soft">
          While monitoring is paused the DNS is not checked. Reports are still accepted, and everything is kept.
        </p>
        <PostForm action={`/dmarc/${row.id}/pause`}>
          <input type="hidden" name="monitoring" value={row.monitoringEnabled ? "off" : "on"} />
          <Button icon={row.monitoringEnabled ? "pause" : "play"}>
            {row.monitoringEnabled ? "Pause monitoring" : "Resume monitoring"}
          </Button>
        </PostForm>
      </Panel>
      <Panel title="Delete this domain">
        <p class="soft">Mail to its reporting address is refused from then on, and its reports are deleted.</p>
        <div class="actions">
          <ButtonLink href={`/dmarc/${row.id}/delete`} icon="trash-2">
            Delete {row.domain}
          </ButtonLink>
        </div>
      </Panel>
    </>
  ),
});

const deletePages = ({ domains }: DmarcPageUseCases): readonly PageRoute[] => [
  page({ path: "/dmarc/:id/delete", params: domainParameters }, ({ viewer, params: { id } }) => {
    const { domain } = domains.find(viewer.caller, id);
    return {
      title: `Delete ${domain}`,
      section: "dmarc",
      body: (
        <>
          <PageHead
            title={`Delete ${domain}`}
            crumbs={[
              ["DMARC", "/dmarc"],
              [domain, `/dmarc/${id}`],
            ]}
          />
          <Callout
            kind="bad"
            title={`All reports about ${domain} will be deleted`}
            actions={
              <>
                <PostForm action={`/dmarc/${id}/delete`}>
                  <Button kind="danger" icon="trash-2">
                    Delete {domain}
                  </Button>
                </PostForm>
                <ButtonLink href={`/dmarc/${id}/settings`}>Keep it</ButtonLink>
              </>
            }
          >
            <p>
              Its reporting address is revoked: receivers that still send reports to it get a refusal. Remove the
              address from <span class="mono">rua</span> in the DMARC record as well. If you enroll the domain again, it
              gets a new address.
            </p>
          </Callout>
        </>
      ),
    };
  }),
  formAction({ path: "/dmarc/:id/delete", params: domainParameters }, async ({ viewer, params: { id } }) => {
    const { domain } = domains.find(viewer.caller, id);
    await domains.remove(viewer.caller, id);
    return redirectTo(viewer, "/dmarc", { ok: `${domain} is deleted.` });
  }),
];

interface SettingsProps {
  readonly row: DomainRow;
  readonly settings: DomainView["settings"];
  readonly hasMail: boolean;
}

/** Every setting of a domain that can be changed. */
const SettingsForm = (props: SettingsProps) => (
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
      <Field
        name="tags"
        label="Tags"
        value={row.tags.join(" ")}
        hint="Groups of domains, such as one for each client: up to ten words."
      />
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

const recipientsHint = ({ mode }: DomainRow, hasMail: boolean): string => {
  if (mode === "test") return "No mail is sent about test domains. Addresses are kept as on a live domain.";
  return hasMail
    ? "One address a line. The recipients of the account get all alerts as well."
    : `${NO_MAIL_PROBLEM} See ${manualHint("webhooks-and-mail#mail-relay")}.`;
};

const NotificationSettings = ({ row, settings, hasMail }: SettingsProps) => (
  <Panel title="Notifications">
    <div class="form">
      <TextAreaField
        name="recipients"
        label="Recipients of alert mail and digests"
        value={settings.recipients.join("\n")}
        rows={3}
        hint={<HelpText text={recipientsHint(row, hasMail)} />}
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
            ? "Disabled, because the receiver responded that the URL is gone. Enter the URL again to enable it."
            : "For events about this domain. Empty: that of the account."
        }
      />
    </div>
  </Panel>
);

/** A share may have decimals. */
const THRESHOLDS = [
  ["new_source_messages", "New sender: messages in 7 days", "number"],
  ["new_source_percent", "New sender: % of the domain's mail", "text"],
  ["failure_spike_messages", "Failures: failing messages", "number"],
  ["failure_spike_percent", "Failures: rise in percentage points", "text"],
  ["spoofing_messages", "Spoofing: messages a day", "number"],
  ["volume_spike_messages", "Volume: messages a day", "number"],
  ["volume_spike_factor", "Volume: times the largest day", "text"],
  ["volume_spike_addresses", "Volume: new addresses a day", "number"],
] as const satisfies ReadonlyArray<readonly [keyof SettingsProps["settings"]["alert_thresholds"], string, string]>;

const AlertSettings = ({ row, settings }: SettingsProps) => {
  const { alert_thresholds: thresholds } = settings;
  return (
    <Panel title="Alert thresholds" aside={<Link href={`/dmarc/${row.id}/alerts`}>Turn rules on and off</Link>}>
      <div class="fields">
        {THRESHOLDS.map(([name, label, type]) => (
          <Field key={name} {...{ name, label, type, value: thresholds[name] }} />
        ))}
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
