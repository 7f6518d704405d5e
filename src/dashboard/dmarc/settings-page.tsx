import { z } from "zod";
import type { DomainSettingsChange } from "../../dmarc/records/domains/domains.ts";
import { type DomainRow, DIGESTS } from "../../dmarc/records/domains/domain-store.ts";
import { ALERT_RULES } from "../../dmarc/records/domains/raise.ts";
import { domainChangeSchema } from "../../dmarc/records/domains/domain-settings-schemas.ts";
import { webhookUrlSchema } from "../../notifications/webhooks/webhook-urls.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { camelKeys } from "../../foundation/base/key-case.ts";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink } from "../components/link.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import { flag, listOf, optionalText } from "../form-input.ts";
import { formAction, page, type PageRoute } from "../page.ts";
import type { View, Viewer } from "../visit.ts";
import { redirectTo } from "../redirect.ts";
import { domainParameters } from "./domain-page.tsx";
import { DomainHead } from "./domain-head.tsx";
import { SettingsForm } from "./settings-form.tsx";
import type { DmarcPageUseCases } from "./page-use-cases.ts";

const TEXT_MAX = 2_000;
const number = z
  .string()
  .trim()
  .transform((text) => (text === "" ? Number.NaN : Number(text)));

const form = z.object({
  label: optionalText(TEXT_MAX),
  webhook_url: optionalText(TEXT_MAX),
  recipients: z.string().default(""),
  digest: z.enum(DIGESTS),
  alerts: listOf(z.enum(ALERT_RULES)),
  sends_mail: z.enum(["unset", "yes", "no"]),
  ...{ require_authentic_reports: flag, store_failure_reports: flag, failure_reports_redact: flag },
  ...{ retention_days: number, raw_retention_days: number },
  ...{ new_source_messages: number, new_source_percent: number },
  ...{ failure_spike_messages: number, failure_spike_percent: number, spoofing_messages: number },
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
  const { alerts, sends_mail, recipients, ...rest } = given;
  const { new_source_messages, new_source_percent, failure_spike_messages, ...more } = rest;
  const { failure_spike_percent, spoofing_messages, ...plain } = more;
  return {
    ...plain,
    recipients: recipients.split(/[\s,;]+/).filter((text) => text !== ""),
    sends_mail: sends_mail === "unset" ? null : sends_mail === "yes",
    alerts: Object.fromEntries(ALERT_RULES.map((rule) => [rule, alerts.includes(rule)])),
    alert_thresholds: {
      ...{ new_source_messages, new_source_percent, failure_spike_messages },
      ...{ failure_spike_percent, spoofing_messages },
    },
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
