import { z } from "zod";
import {
  dayField,
  nullableText,
  textField,
  enumField,
  integerField,
  listField,
  namedResponse,
  nullableInteger,
  okResponse,
} from "../../foundation/http/schema-fields.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { type DayRange, daysOfMonth, isoDay } from "../../foundation/base/days.ts";
import { rangeFields } from "../../foundation/http/day-range.ts";
import type { Guard } from "../../foundation/http/guard.ts";
import { declareRoute, handle, serveRoutes } from "../../foundation/http/route.ts";
import {
  type AccountUsage,
  USAGE_DAYS_MAX,
  USAGE_GROUPS,
  type UsageFigures,
  type UsageGrouping,
  type UsageReport,
  type NameOfKey,
  readUsageRange,
} from "./account-usage.ts";

const count = (description: string) => integerField(description);

const figuresSchema = {
  total: count("Verifications that ended: single ones, and distinct addresses of lists."),
  deliverable: count("Those with the verdict `deliverable`."),
  risky: count("Those with the verdict `risky`."),
  undeliverable: count("Those with the verdict `undeliverable`."),
  rate_limited: nullableInteger(
    "Requests refused by the rate limit (429). Null by verdict and sub_status: they have no result.",
  ),
  credits: count("Credits charged."),
};

const usageSchema = namedResponse("Usage", {
  from: dayField("The first UTC day."),
  to: dayField("The last UTC day, inclusive."),
  by: enumField(USAGE_GROUPS, "What the groups are."),
  total: z.object(figuresSchema).meta({ description: "The figures of the whole range." }),
  groups: listField(
    z.object({
      group: textField("The day, the id of the API key, the verdict or the sub_status."),
      name: nullableText("The name of the API key, or the user of the dashboard; null for other groups."),
      ...figuresSchema,
    }),
    "By day: every day, oldest first. Otherwise: the largest group first.",
  ),
});

const EXAMPLE_FIGURES = { total: 3, deliverable: 2, risky: 0, undeliverable: 1, rate_limited: 0, credits: 3 };

const monthParameter = z
  .string()
  .transform((text, context) => {
    const days = daysOfMonth(text);
    if (days !== null) return days;
    context.addIssue({ code: "custom", message: "Must be a month (YYYY-MM)" });
    return z.NEVER;
  })
  .optional()
  .meta({
    description: "A calendar month in UTC, until today, instead of `from` and `to`: what an invoice needs.",
    examples: ["2026-01"],
  });

export const GET_USAGE = declareRoute({
  method: "GET",
  path: "/v1/usage",
  operationId: "getUsage",
  tag: "Account",
  summary: "Get the usage of the account",
  description: `Returns the verifications of the account, of all its keys of the mode of the calling key, by UTC day, key, verdict or sub_status, for at most ${USAGE_DAYS_MAX} days. A single verification counts on the day it ended. An address of a list counts once however many rows have it, on the day of its latest result. Rate-limited requests are counted within 5 seconds.`,
  scope: "verifications:read",
  query: z.strictObject({
    ...rangeFields,
    month: monthParameter,
    by: z.enum(USAGE_GROUPS).default("day").meta({ description: "How to group the figures." }),
  }),
  responses: {
    200: okResponse("The usage.", usageSchema, {
      from: "2026-01-01",
      to: "2026-01-01",
      by: "day",
      total: EXAMPLE_FIGURES,
      groups: [{ group: "2026-01-01", name: null, ...EXAMPLE_FIGURES }],
    }),
  },
});

/** The routes of usage. */
export const USAGE_ROUTES = [GET_USAGE] as const;

const figuresView = ({ rateLimited, ...figures }: UsageFigures) => {
  const { total, deliverable, risky, undeliverable, credits } = figures;
  return { total, deliverable, risky, undeliverable, rate_limited: rateLimited, credits };
};

/** A report as the API shows it; `nameOf` says how a key is called. */
export const usageView = (
  { groups, total }: UsageReport,
  { range, by, nameOf }: { range: DayRange; by: UsageGrouping; nameOf: NameOfKey },
) => ({
  from: isoDay(range.fromDay),
  to: isoDay(range.toDay),
  by,
  total: figuresView(total),
  groups: groups.map((one) => ({
    group: one.group,
    name: by === "key" ? nameOf(one.group) : null,
    ...figuresView(one),
  })),
});

/** Serves the usage of accounts. */
export const createUsageRoutes = (
  guard: Guard,
  {
    usage,
    clock,
    nameOf,
  }: {
    usage: AccountUsage;
    clock: Clock;
    nameOf: NameOfKey;
  },
) =>
  serveRoutes(guard, [
    handle(GET_USAGE, async ({ caller, query: { by, ...days } }) => {
      const range = readUsageRange(days, clock.nowMs());
      return usageView(await usage.report(caller, range, by), { range, by, nameOf });
    }),
  ]);
