import { Elysia } from "elysia";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import type { Caller, Guard } from "../../http/guard.ts";
import type { Operation } from "../../http/openapi.ts";
import { PAGE_ERRORS } from "../../http/operation-errors.ts";
import { PAGE, pathId } from "../../http/parameters.ts";
import { readPlainly, rowsById, sendPage } from "../../http/list-page.ts";
import { pageParameters, readPage } from "../../http/query.ts";
import type { DmarcAlertStore } from "../domains/alert-store.ts";
import { alertsSchema, alertView, noAlertFiltersSchema } from "./alert-view.ts";
import type { DomainRow } from "../domains/domain-store.ts";

export interface AlertRouteDeps {
  readonly guard: Guard;
  readonly store: Pick<DmarcAlertStore, "listAlerts">;
  /** The caller's domain; throws `not_found` for one that is not there, or not the caller's. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
}

/** The endpoint that lists what a domain's owner was told. */
export const createAlertRoutes = ({ guard, store, findDomain }: AlertRouteDeps) =>
  new Elysia({ name: "dmarc-alerts" }).use(guard).get(
    "/v1/dmarc/domains/:id/alerts",
    ({ request, params, caller }) => {
      if (!isId(params.id)) throw new AppError("not_found", { message: "There is no such domain." });
      const { number } = findDomain(caller, params.id);
      const page = readPage(request, noAlertFiltersSchema, isId);
      const read = readPlainly((window) => store.listAlerts(number, window));
      return sendPage(request, { name: "alerts", page }, rowsById(read, alertView));
    },
    { demand: { scope: "dmarc:read", query: pageParameters(noAlertFiltersSchema) } },
  );

/** The routes of alerts, as the OpenAPI document describes them. */
export const ALERT_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/dmarc/domains/:id/alerts",
    tag: "DMARC monitoring",
    summary: "Alerts of a domain, newest first",
    description:
      "What was raised by the rules that are on, whether or not the domain has a webhook or recipients. The same thing is raised once in 24 hours at most.",
    parameters: [pathId("Identifier of the domain."), ...PAGE],
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
    errors: ["insufficient_scope", "not_found", ...PAGE_ERRORS],
  },
];
