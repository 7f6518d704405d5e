import { z } from "zod";
import { nullableText, textField, timeField } from "../../../foundation/http/schema-fields.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { isId } from "../../../foundation/base/secrets.ts";
import type { Guard, Caller } from "../../../foundation/http/guard.ts";
import { readById } from "../../../foundation/base/walk.ts";
import { rowsById, sendPage } from "../../../foundation/http/list-page.ts";
import { declareRoute, handle, serveRoutes } from "../../../foundation/http/route.ts";
import { idParameter, pageQuery } from "../../../foundation/http/route-input.ts";
import type { DmarcAlertRow, DmarcAlertStore } from "../../records/domains/alert-store.ts";
import { readAlertBody } from "./alert-rule.ts";
import { alertRuleName } from "./alert-rules.ts";
import type { DomainPage, DomainRow } from "../../records/domains/domain-store.ts";

const alertSchema = z
  .object({
    id: z.uuid().meta({ description: "Identifier of the alert." }),
    rule: alertRuleName.meta({ description: "The rule that raised it." }),
    subject: textField("What it is about: a source, a name, a day."),
    at: timeField("When it was raised."),
    summary: textField("What happened, in one sentence."),
    data: z.record(z.string(), z.unknown()).meta({
      description: "As in the event `dmarc.<rule>`, without the fields about the domain.",
    }),
  })
  .meta({ title: "DmarcAlert" });

export const alertsSchema = z.object({
  alerts: z.array(alertSchema).meta({ description: "The alerts of the page, newest first." }),
  next_cursor: nullableText("`cursor` of the next page; null on the last page."),
});

export const LIST_DMARC_ALERTS = declareRoute({
  method: "GET",
  path: "/v1/dmarc/domains/:id/alerts",
  operationId: "listDmarcAlerts",
  tag: "DMARC monitoring",
  summary: "List the alerts of a domain",
  description:
    "Returns the alerts raised by the rules that are on, newest first, whether or not the domain has a webhook or recipients. An alert about the same subject is raised at most once in 24 hours.",
  scope: "dmarc:read",
  params: z.object({ id: idParameter("domain") }),
  query: pageQuery(isId, {}),
  responses: {
    200: {
      description: "A page of alerts.",
      schema: alertsSchema,
      example: {
        alerts: [
          {
            id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a61",
            rule: "reports_stopped",
            subject: "2026-01-01",
            at: "2026-01-04T05:15:00.000Z",
            summary: "no reports since 2026-01-01",
            data: { last_report_at: "2026-01-01T05:12:44.310Z", last_day: "2025-12-31" },
          },
        ],
        next_cursor: null,
      },
    },
  },
});

export interface AlertRouteOptions {
  readonly guard: Guard;
  readonly alerts: DomainAlerts;
}

const alertView = ({ id, rule, subject, atMs, body }: DmarcAlertRow) => ({
  id,
  rule,
  subject,
  at: isoTime(atMs),
  ...readAlertBody(body),
});

/** Serves the list of a domain's alerts. */
export const createAlertRoutes = ({ guard, alerts }: AlertRouteOptions) =>
  serveRoutes(guard, [
    handle(LIST_DMARC_ALERTS, ({ caller, params, query, request }) => {
      const read = readById((window) => [...alerts.list(caller, params.id)(window)]);
      return sendPage(request, { name: "alerts", page: query }, rowsById(read, alertView));
    }),
  ]);

/** Lists the alerts of the caller's domains. Throws `not_found` for a domain of another account. */
export class DomainAlerts {
  constructor(
    private readonly store: Pick<DmarcAlertStore, "listAlerts">,
    private readonly findDomain: (caller: Caller, id: string) => DomainRow,
  ) {}

  /** Newest first. */
  list(caller: Caller, id: string): (page: DomainPage) => readonly DmarcAlertRow[] {
    const { number } = this.findDomain(caller, id);
    return (page) => this.store.listAlerts(number, page);
  }
}
