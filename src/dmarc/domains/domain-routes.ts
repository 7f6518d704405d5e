import { Elysia } from "elysia";
import type { z } from "zod";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import { readJson } from "../../http/body.ts";
import type { Guard } from "../../http/guard.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import { pageParameters, readPage } from "../../http/query.ts";
import type { UrlPolicy } from "../../net/fetch-url.ts";
import { webhookUrlSchema } from "../../webhooks/webhook-urls.ts";
import {
  domainChangeSchema,
  domainFiltersSchema,
  enrolmentRequestSchema,
  noDomainFiltersSchema,
} from "./domain-schemas.ts";
import type { ReadFigures } from "./domain-figures.ts";
import type { DomainRow } from "./domain-store.ts";
import { historyView } from "./domain-view.ts";
import type { Domains, DomainSettingsChange } from "./domains.ts";
import { ALERT_RULES } from "./raise.ts";

export interface DomainRouteDeps {
  readonly guard: Guard;
  readonly domains: Domains;
  readonly figures: ReadFigures;
  readonly rules: UrlPolicy;
}

const PATH = "/v1/dmarc/domains";

/** An id out of a path; `not_found` for what cannot be one. */
export const knownId = (id: string): string => {
  if (isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such domain." });
};

/** The endpoints of monitored domains (specification, contract §6). */
export const createDomainRoutes = ({ guard, domains, figures, rules }: DomainRouteDeps) => {
  const webhookUrl = webhookUrlSchema(rules);
  const orderSchema = enrolmentRequestSchema(webhookUrl);
  const changeSchema = domainChangeSchema(webhookUrl);
  const read = { demand: { scope: "dmarc:read" } } as const;
  const listing = (filters: z.ZodObject) =>
    ({ demand: { scope: "dmarc:read", query: pageParameters(filters) } }) as const;
  const write = { parse: "none", demand: { scope: "dmarc:write" } } as const;

  const withFigures = (rows: readonly DomainRow[]) => {
    const read = figures(rows.map(({ number }) => number));
    return rows.map((row) => ({ id: row.id, row, figures: read.get(row.number) }));
  };

  const wishOf = async (request: Request): Promise<DomainSettingsChange> => {
    const body = await readJson(request, changeSchema);
    const given = {
      label: body.label,
      monitoringEnabled: body.monitoring_enabled,
      webhookUrl: body.webhook_url,
      recipients: body.recipients,
      alertThresholds: body.alert_thresholds,
      sourceRules: body.source_rules,
      digest: body.digest,
      retentionDays: body.retention_days,
      rawRetentionDays: body.raw_retention_days,
      sendsMail: body.sends_mail,
      requireAuthenticReports: body.require_authentic_reports,
      storeFailureReports: body.store_failure_reports,
      failureReportsRedact: body.failure_reports_redact,
      alerts:
        body.alerts &&
        Object.fromEntries(
          ALERT_RULES.flatMap((rule) => {
            const isOn = body.alerts?.[rule];
            return isOn === undefined ? [] : [[rule, isOn]];
          }),
        ),
    };
    return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  };

  return new Elysia({ name: "dmarc-domains" })
    .use(guard)
    .post(
      PATH,
      async ({ request, caller, set }) => {
        const { domain: name, label, webhook_url, recipients } = await readJson(request, orderSchema);
        const { created, domain, dnsRecords } = await domains.enrol(caller, {
          domain: name,
          label: label ?? null,
          webhookUrl: webhook_url ?? null,
          recipients: recipients ?? [],
        });
        if (created) {
          set.status = 201;
          set.headers.location = `${PATH}/${domain.id}`;
        }
        return { created, domain: domains.view(domain), dns_records: dnsRecords };
      },
      write,
    )
    .get(
      PATH,
      async ({ request, caller }) => {
        const page = readPage(request, domainFiltersSchema, isId);
        const { monitoring_enabled: monitoringEnabled, ...rest } = page.filters;
        const read = readPlainly((window) => withFigures(domains.list(caller, { ...rest, monitoringEnabled }, window)));
        return sendPage(
          request,
          { name: "domains", page },
          rowsById(read, ({ row, figures }) => ({ ...domains.view(row), figures })),
        );
      },
      listing(domainFiltersSchema),
    )
    .get(`${PATH}/:id`, async ({ params, caller }) => domains.view(domains.find(caller, knownId(params.id))), read)
    .patch(
      `${PATH}/:id`,
      async ({ request, params, caller }) => {
        const { id } = domains.find(caller, knownId(params.id));
        return domains.view(await domains.change(caller, id, await wishOf(request)));
      },
      write,
    )
    .delete(
      `${PATH}/:id`,
      async ({ params, caller, set }) => {
        await domains.remove(caller, knownId(params.id));
        set.status = 204;
      },
      write,
    )
    .post(
      `${PATH}/:id/verify`,
      async ({ params, caller }) => {
        const { domain, previousStatus, finding } = await domains.verify(caller, knownId(params.id));
        return {
          domain: domains.view(domain),
          previous_status: previousStatus,
          checks: finding.checks,
          dns_records: finding.dnsRecords,
        };
      },
      write,
    )
    .get(
      `${PATH}/:id/dns`,
      async ({ params, caller }) => {
        const { dnsRecords, serviceRecords } = await domains.dns(caller, knownId(params.id));
        return { dns_records: dnsRecords, service_records: serviceRecords };
      },
      read,
    )
    .get(
      `${PATH}/:id/history`,
      async ({ request, params, caller }) => {
        const { id } = domains.find(caller, knownId(params.id));
        const page = readPage(request, noDomainFiltersSchema, isId);
        const read = readPlainly((window) => domains.history(caller, id, window));
        return sendPage(request, { name: "history", page }, rowsById(read, historyView));
      },
      listing(noDomainFiltersSchema),
    );
};
