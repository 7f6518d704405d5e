import { z } from "zod";
import type { Guard } from "../../foundation/http/guard.ts";
import { declareRoute, handle, serveRoutes } from "../../foundation/http/route.ts";
import { idParameter } from "../../foundation/http/route-input.ts";
import {
  enumField,
  idField,
  listField,
  namedBody,
  namedResponse,
  nullableTime,
  okResponse,
  textField,
  timeField,
} from "../../foundation/http/schema-fields.ts";
import { WEEKDAYS } from "./window-times.ts";
import type { MaintenanceWindows } from "./windows.ts";

const PATH = "/v1/notifications/windows";
const TAG = "Notifications";

const weekly = z.object({
  days: listField(z.enum(WEEKDAYS), "The days on which it begins."),
  from: textField("When it begins, such as `22:00`."),
  to: textField("When it ends, such as `06:00`; a time before `from` is on the next day."),
  time_zone: textField("The time zone of these times, such as `Europe/Berlin`."),
});

/** Body of `POST /v1/notifications/windows`. */
export const newWindowSchema = namedBody("NewMaintenanceWindow", {
  until: z.iso
    .datetime({ offset: true })
    .optional()
    .meta({ description: "The end of a window that begins now; at most 7 days from now." }),
  weekly: weekly.optional().meta({ description: "A window that comes back every week, in place of `until`." }),
});

const windowSchema = z.object({
  id: idField("The id of the window."),
  set_by: enumField(["account", "operator"], "`operator`: it is for all accounts, and only the operator removes it."),
  until: nullableTime("The end of a single window; null for a weekly one."),
  weekly: weekly.nullable().meta({ description: "The times of a weekly window; null for a single one." }),
  on_until: nullableTime("When it ends, if it is on now; null otherwise."),
  created_at: timeField("When it was set."),
});

const windowsSchema = namedResponse("MaintenanceWindows", {
  quiet_until: nullableTime("Until when no mail and no messages are sent; null when no window is on."),
  windows: listField(windowSchema, "Those of the account and mode, and of the operator, the oldest first."),
});

const EXAMPLE = {
  quiet_until: "2026-01-02T05:00:00.000Z",
  windows: [
    {
      id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a70",
      set_by: "account",
      until: null,
      weekly: { days: ["mon", "tue", "wed", "thu", "fri"], from: "22:00", to: "06:00", time_zone: "Europe/Berlin" },
      on_until: "2026-01-02T05:00:00.000Z",
      created_at: "2026-01-01T00:00:00.000Z",
    },
  ],
};
const responses = { 200: okResponse("The windows after the call.", windowsSchema, EXAMPLE) };

export const LIST_WINDOWS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listMaintenanceWindows",
  tag: TAG,
  summary: "List maintenance windows",
  description: "Returns the windows of the account and the key's mode, and those of the operator.",
  scope: "webhooks:read",
  responses,
});

export const ADD_WINDOW = declareRoute({
  method: "POST",
  path: PATH,
  operationId: "addMaintenanceWindow",
  tag: TAG,
  summary: "Set a maintenance window",
  description:
    "While a window is on, no mail and no messages to channels are sent; what happened is in one message after it. Webhooks are not delayed. Nothing waits longer than 7 days.",
  scope: "webhooks:write",
  body: { schema: newWindowSchema, example: { until: "2026-01-02T06:00:00+01:00" } },
  responses,
  errors: ["conflict"],
});

export const REMOVE_WINDOW = declareRoute({
  method: "DELETE",
  path: `${PATH}/:id`,
  operationId: "removeMaintenanceWindow",
  tag: TAG,
  summary: "End a maintenance window",
  description: "Ends a single window, or removes a weekly one. Events that wait are sent if no other window is on.",
  scope: "webhooks:write",
  params: z.object({ id: idParameter("maintenance window") }),
  responses,
});

/** Serves the maintenance windows of the key's account and mode. */
export const createWindowRoutes = ({ guard, windows }: { guard: Guard; windows: MaintenanceWindows }) =>
  serveRoutes(guard, [
    handle(LIST_WINDOWS, ({ caller }) => windows.view(caller)),

    handle(ADD_WINDOW, async ({ body, caller }) => {
      await windows.add(caller, body);
      return windows.view(caller);
    }),

    handle(REMOVE_WINDOW, async ({ params, caller }) => {
      await windows.remove(caller, params.id);
      return windows.view(caller);
    }),
  ]);
