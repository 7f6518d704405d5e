import { z } from "zod";
import type { ReadFigures } from "./insight/queries/summary.ts";
import { historyView, type Domains } from "./records/domains/domains.ts";
import { camelKeys } from "../foundation/base/key-case.ts";
import { isId } from "../foundation/base/secrets.ts";
import { readById } from "../foundation/base/walk.ts";
import { rowsById, sendPage } from "../foundation/http/list-page.ts";
import { declareRoute, handle, type AnyRoute } from "../foundation/http/route.ts";
import { idParameter, pageQuery } from "../foundation/http/route-input.ts";
import { createUrlPolicy, type UrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import {
  CHECKS_EXAMPLE,
  DOMAIN_EXAMPLE,
  ENROLLED_EXAMPLE,
  FIGURES_EXAMPLE,
  HISTORY_EXAMPLE,
  NONE_EXAMPLE,
  SERVICE_RECORDS_EXAMPLE,
  UPDATE_EXAMPLE,
  dnsSchema,
  domainChangeSchema,
  domainFilters,
  domainSchema,
  domainsSchema,
  enrolmentRequestSchema,
  enrolmentSchema,
  historySchema,
  type DomainChangeBody,
  verifiedSchema,
} from "./domain-schemas.ts";
import type { DomainRow } from "./records/domains/domain-store.ts";

const TAG = "DMARC monitoring";
const PATH = "/v1/dmarc/domains";
const params = z.object({ id: idParameter("domain") });
const READ_DOMAIN = { method: "GET", tag: TAG, scope: "dmarc:read", params } as const;
const domainResponse = { 200: { description: "The domain.", schema: domainSchema, example: DOMAIN_EXAMPLE } };

const enrolRoute = (policy: UrlPolicy) =>
  declareRoute({
    method: "POST",
    path: PATH,
    operationId: "enrolDmarcDomain",
    tag: TAG,
    subjectField: "domain",
    summary: "Enroll a domain",
    description:
      "Each domain gets its own reporting address. `dns_records` holds the TXT record to publish: a new one, or the existing one with the address added to its `rua` and everything else unchanged. Publish it, then call verify. If there is no DNS response, the domain is enrolled nevertheless and the record is `conflict` with the reason `dns_failure`: request it again from `dns`.",
    scope: "dmarc:write",
    body: { schema: enrolmentRequestSchema(webhookUrlSchema(policy)), example: { domain: "example.com" } },
    responses: {
      201: {
        description: "The domain is enrolled.",
        schema: enrolmentSchema,
        example: { created: true, domain: ENROLLED_EXAMPLE, dns_records: [UPDATE_EXAMPLE] },
        headers: { Location: "The URL of the domain." },
      },
      200: {
        description: "The domain was enrolled already; it is returned unchanged.",
        schema: enrolmentSchema,
        example: { created: false, domain: DOMAIN_EXAMPLE, dns_records: [NONE_EXAMPLE] },
      },
    },
    errors: ["conflict"],
  });

const LIST_DOMAINS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listDmarcDomains",
  tag: TAG,
  summary: "List domains with their figures of the last 30 days",
  description: "Newest first. `figures` counts all mail in reports, forged mail included.",
  scope: "dmarc:read",
  query: pageQuery(isId, domainFilters),
  responses: {
    200: {
      description: "A page of domains.",
      schema: domainsSchema,
      example: { domains: [{ ...DOMAIN_EXAMPLE, figures: FIGURES_EXAMPLE }], next_cursor: null },
    },
  },
});

const GET_DOMAIN = declareRoute({
  ...READ_DOMAIN,
  path: `${PATH}/:id`,
  operationId: "getDmarcDomain",
  summary: "Get a domain",
  description: "Returns its settings, its status and the result of the last DNS check.",
  responses: domainResponse,
});

const changeRoute = (policy: UrlPolicy) =>
  declareRoute({
    method: "PATCH",
    path: `${PATH}/:id`,
    operationId: "updateDmarcDomain",
    tag: TAG,
    summary: "Change the settings of a domain",
    description: "Absent fields are unchanged. `recipients` and `digest` require that the service can send mail.",
    scope: "dmarc:write",
    params,
    responses: domainResponse,
    body: {
      schema: domainChangeSchema(webhookUrlSchema(policy)),
      example: { digest: "weekly", recipients: ["ops@example.com"], alerts: { new_subdomain: false } },
    },
  });

const DELETE_DOMAIN = declareRoute({
  method: "DELETE",
  path: `${PATH}/:id`,
  operationId: "deleteDmarcDomain",
  tag: TAG,
  summary: "Delete a domain and revoke its reporting address",
  description:
    "Mail to the address is refused from now on. The reports are deleted in the background. The domain can be enrolled again and then gets a new address.",
  scope: "dmarc:write",
  params,
  responses: { 204: { description: "The domain is deleted." } },
});

const VERIFY_DOMAIN = declareRoute({
  method: "POST",
  path: `${PATH}/:id/verify`,
  operationId: "verifyDmarcDomain",
  tag: TAG,
  summary: "Check the DNS of a domain now",
  description:
    "Updates the status immediately. Takes up to 20 seconds when the DNS is slow. A check without a DNS response is `null` and does not change the status. If such a request is in progress, this one waits for its result.",
  scope: "dmarc:write",
  params,
  responses: {
    200: {
      description: "The result of the check.",
      schema: verifiedSchema,
      example: {
        domain: DOMAIN_EXAMPLE,
        previous_status: "pending",
        checks: CHECKS_EXAMPLE,
        dns_records: [NONE_EXAMPLE],
      },
    },
  },
  errors: ["conflict"],
});

const GET_DNS = declareRoute({
  ...READ_DOMAIN,
  path: `${PATH}/:id/dns`,
  operationId: "getDmarcDnsRecords",
  summary: "Get the DNS records to publish",
  description:
    "Reads the DNS now and changes nothing. You publish `dns_records`; the operator of the service publishes `service_records`.",
  responses: {
    200: {
      description: "The records.",
      schema: dnsSchema,
      example: { dns_records: [UPDATE_EXAMPLE], service_records: SERVICE_RECORDS_EXAMPLE },
    },
  },
  errors: ["conflict"],
});

const LIST_HISTORY = declareRoute({
  ...READ_DOMAIN,
  path: `${PATH}/:id/history`,
  operationId: "listDmarcHistory",
  summary: "List the changes of a domain's DNS and status",
  description: "Newest first. The first entry of a domain is the result of its first check.",
  query: pageQuery(isId, {}),
  responses: {
    200: {
      description: "A page of changes.",
      schema: historySchema,
      example: { history: [HISTORY_EXAMPLE], next_cursor: null },
    },
  },
});

const documented = createUrlPolicy([]);

/** The routes of monitored domains, as they are declared. */
export const DOMAIN_ROUTES: readonly AnyRoute[] = [
  enrolRoute(documented),
  LIST_DOMAINS,
  GET_DOMAIN,
  changeRoute(documented),
  DELETE_DOMAIN,
  VERIFY_DOMAIN,
  GET_DNS,
  LIST_HISTORY,
];

/** The same routes with their handlers. Webhook URLs must be allowed by `policy`. */
export const createDomainRoutes = (domains: Domains, readFigures: ReadFigures, policy: UrlPolicy) => [
  ...createSettingsRoutes(domains, policy),
  ...createDnsRoutes(domains),
  handle(LIST_DOMAINS, ({ request, caller, query: { limit, cursor, monitoring_enabled, ...rest } }) => {
    const filters = { ...rest, monitoringEnabled: monitoring_enabled };
    const read = readById((window) => withFigures(domains.list(caller, filters, window), readFigures));
    const rows = rowsById(read, ({ row, figures }) => ({ ...domains.view(row), figures }));
    return sendPage(request, { name: "domains", page: { limit, cursor } }, rows);
  }),
];

const createSettingsRoutes = (domains: Domains, policy: UrlPolicy) => [
  handle(enrolRoute(policy), async ({ caller, body, set }) => {
    const { created, domain, dnsRecords } = await domains.enrol(caller, {
      domain: body.domain,
      label: body.label ?? null,
      webhookUrl: body.webhook_url ?? null,
      recipients: body.recipients ?? [],
      tags: body.tags ?? [],
    });
    if (created) {
      set.status = 201;
      set.headers.location = `${PATH}/${domain.id}`;
    }
    return { created, domain: domains.view(domain), dns_records: dnsRecords };
  }),

  handle(GET_DOMAIN, ({ caller, params }) => domains.view(domains.find(caller, params.id))),

  handle(changeRoute(policy), async ({ caller, params, body }) =>
    domains.view(await domains.change(caller, params.id, settingsOf(body))),
  ),

  handle(DELETE_DOMAIN, async ({ caller, params, set }) => {
    await domains.remove(caller, params.id);
    set.status = 204;
  }),
];

const createDnsRoutes = (domains: Domains) => [
  handle(VERIFY_DOMAIN, async ({ caller, params }) => {
    const { domain, previousStatus, result } = await domains.verify(caller, params.id);
    return {
      domain: domains.view(domain),
      previous_status: previousStatus,
      checks: result.checks,
      dns_records: result.dnsRecords,
    };
  }),

  handle(GET_DNS, async ({ caller, params }) => {
    const { dnsRecords, serviceRecords } = await domains.dns(caller, params.id);
    return { dns_records: dnsRecords, service_records: serviceRecords };
  }),

  handle(LIST_HISTORY, ({ request, caller, params, query }) => {
    const { id } = domains.find(caller, params.id);
    const read = readById((window) => domains.history(caller, id, window));
    return sendPage(request, { name: "history", page: query }, rowsById(read, historyView));
  }),
];

const withFigures = (rows: readonly DomainRow[], readFigures: ReadFigures) => {
  const figures = readFigures(rows.map(({ number }) => number));
  return rows.map((row) => ({ id: row.id, row, figures: figures.get(row.number) }));
};

/** The settings of a request body. Absent fields are left out, so that their settings are unchanged. */
const settingsOf = (body: DomainChangeBody) => {
  const given = Object.entries(body).filter(([, value]) => value !== undefined);
  return camelKeys(Object.fromEntries(given));
};
