import type { Operation } from "../../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../../http/operation-errors.ts";
import { PAGE, pathId, query } from "../../http/parameters.ts";
import { createUrlPolicy } from "../../net/fetch-url.ts";
import { webhookUrlSchema } from "../../webhooks/webhook-urls.ts";
import {
  CHECKS_EXAMPLE,
  DOMAIN_EXAMPLE,
  ENROLLED_EXAMPLE,
  FIGURES_EXAMPLE,
  HISTORY_EXAMPLE,
  NONE_EXAMPLE,
  SERVICE_RECORDS_EXAMPLE,
  UPDATE_EXAMPLE,
} from "./domain-examples.ts";
import {
  dnsSchema,
  domainChangeSchema,
  enrolmentRequestSchema,
  domainSchema,
  enrolmentSchema,
  historySchema,
  verifiedSchema,
} from "./domain-schemas.ts";
import { domainsSchema } from "./domain-figures.ts";
import { DOMAIN_STATUSES } from "./domain-store.ts";

const TAG = "DMARC monitoring";
const PATH = "/v1/dmarc/domains";

const ID = pathId("Identifier of the domain.");

const webhookUrl = webhookUrlSchema(createUrlPolicy([]));

/** The routes of monitored domains, as the OpenAPI document describes them. */
export const DOMAIN_OPERATIONS: readonly Operation[] = [
  {
    method: "POST",
    path: PATH,
    tag: TAG,
    summary: "Enrol a domain; the answer says what to publish",
    description:
      "Each domain gets a reporting address of its own. `dns_records` holds the TXT record to publish: a new one, or the existing one with the address added to its `rua` and everything else untouched. Publish it, then call verify. When the DNS does not answer, the domain is enrolled all the same and the record is `conflict` with the reason `dns_failure`: ask again under `dns`.",
    body: { schema: enrolmentRequestSchema(webhookUrl), example: { domain: "example.com" } },
    responses: {
      201: {
        description: "It is enrolled.",
        schema: enrolmentSchema,
        example: { created: true, domain: ENROLLED_EXAMPLE, dns_records: [UPDATE_EXAMPLE] },
        headers: { Location: "The domain." },
      },
      200: {
        description: "It was enrolled already: the existing domain, unchanged.",
        schema: enrolmentSchema,
        example: { created: false, domain: DOMAIN_EXAMPLE, dns_records: [NONE_EXAMPLE] },
      },
    },
    errors: ["insufficient_scope", ...BODY_ERRORS, "conflict"],
  },
  {
    method: "GET",
    path: PATH,
    tag: TAG,
    summary: "Domains with the figures of the last 30 days, newest first",
    description: "`figures` counts mail whoever sent it, forged mail included.",
    parameters: [
      ...PAGE,
      query("status", "Only those.", { type: "string", enum: [...DOMAIN_STATUSES] }),
      query("domain", "Only this domain, in any spelling.", { type: "string" }),
      query("monitoring_enabled", "Only those that are, or are not, paused.", { type: "boolean" }),
    ],
    responses: {
      200: {
        description: "A page.",
        schema: domainsSchema,
        example: { domains: [{ ...DOMAIN_EXAMPLE, figures: FIGURES_EXAMPLE }], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "One domain",
    description: "With its settings and what the last check of the DNS found.",
    parameters: [ID],
    responses: { 200: { description: "The domain.", schema: domainSchema, example: DOMAIN_EXAMPLE } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "PATCH",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "Change the settings of a domain",
    description: "Only what is given changes. `recipients` and `digest` need a service that sends mail.",
    parameters: [ID],
    body: {
      schema: domainChangeSchema(webhookUrl),
      example: { digest: "weekly", recipients: ["ops@example.com"], alerts: { new_subdomain: false } },
    },
    responses: { 200: { description: "The domain.", schema: domainSchema, example: DOMAIN_EXAMPLE } },
    errors: ["insufficient_scope", "not_found", ...BODY_ERRORS],
  },
  {
    method: "DELETE",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "Delete a domain and revoke its reporting address",
    description:
      "Mail to the address is refused from this moment. The reports are removed in the background. The same domain may be enrolled again and gets a new address.",
    parameters: [ID],
    responses: { 204: { description: "It is gone." } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "POST",
    path: `${PATH}/:id/verify`,
    tag: TAG,
    summary: "Read the DNS again and move the status at once",
    description:
      "Takes up to 20 seconds when the DNS is slow. What it does not answer is `null` and moves nothing. When a check by this call runs already, this waits for that one.",
    parameters: [ID],
    responses: {
      200: {
        description: "The domain was checked.",
        schema: verifiedSchema,
        example: {
          domain: DOMAIN_EXAMPLE,
          previous_status: "pending",
          checks: CHECKS_EXAMPLE,
          dns_records: [NONE_EXAMPLE],
        },
      },
    },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
  {
    method: "GET",
    path: `${PATH}/:id/dns`,
    tag: TAG,
    summary: "The DNS records to publish, without changing anything",
    description: "Reads the DNS now. `dns_records` are yours to publish; `service_records` are the operator's.",
    parameters: [ID],
    responses: {
      200: {
        description: "As the DNS stands now.",
        schema: dnsSchema,
        example: { dns_records: [UPDATE_EXAMPLE], service_records: SERVICE_RECORDS_EXAMPLE },
      },
    },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
  {
    method: "GET",
    path: `${PATH}/:id/history`,
    tag: TAG,
    summary: "What the DNS said about a domain, whenever that changed, newest first",
    description: "An entry for each change of the record, the policy or the status; kept for 400 days.",
    parameters: [ID, ...PAGE],
    responses: {
      200: {
        description: "A page.",
        schema: historySchema,
        example: { history: [HISTORY_EXAMPLE], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", "not_found", ...PAGE_ERRORS],
  },
];
