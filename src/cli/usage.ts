import {
  AccountUsage,
  type RequestedUsage,
  readUsageRange,
  USAGE_DAYS_MAX,
  USAGE_GROUPS,
  type UsageFigures,
  type UsageGrouping,
  usageCsv,
} from "../accounts/usage/account-usage.ts";
import { usageView } from "../accounts/usage/routes.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import { systemClock } from "../foundation/base/clock.ts";
import { type DayRange, daysOfMonth } from "../foundation/base/days.ts";
import { AppError } from "../foundation/base/errors.ts";
import { choice, command, day, parsed, toggle, withDefault } from "./command.ts";
import { inAccount } from "./data-directory.ts";
import { UsageError } from "./io.ts";

const rangeOf = (requested: RequestedUsage): DayRange => {
  try {
    return readUsageRange(requested, systemClock.nowMs());
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const [issue] = error.details.issues ?? [];
    if (issue?.path === "month") throw new UsageError(`--month: ${issue.message}.`, "month");
    throw new UsageError(`--from must not be after --to, and a range has at most ${USAGE_DAYS_MAX} days.`, "from");
  }
};

const MONTH = parsed("<month>", "calendar month in UTC such as 2026-01, instead of --from and --to", (text) => {
  const days = daysOfMonth(text);
  if (days === null) throw new UsageError(`--month: "${text}" is not a month such as 2026-01.`, "month");
  return days;
});

const HEADINGS: Readonly<Record<UsageGrouping, string>> = {
  day: "DAY",
  key: "KEY",
  verdict: "VERDICT",
  sub_status: "SUB_STATUS",
};

const cellsOf = ({ total, deliverable, risky, undeliverable, rateLimited, credits }: UsageFigures): string[] =>
  [total, deliverable, risky, undeliverable, rateLimited ?? "", credits].map(String);

const USAGE = command({
  description: "Show the verifications and credits of an account by day, key or result.",
  example: "usage --account acme --by key --month 2026-01",
  on: inAccount("verifications"),
  options: {
    by: withDefault(choice("<group>", USAGE_GROUPS, "how to group the figures"), "day"),
    from: day("first day in UTC (default: 29 days before --to)"),
    to: day("last day in UTC (default: today)"),
    month: MONTH,
    csv: { ...toggle("print CSV"), conflicts: "json" },
  },
  async run({ db, owner, io, print, table, callerName: nameOf }, { by, from, to, month, csv }) {
    const range = rangeOf({ from, to, month });
    const report = await new AccountUsage(new UsageStore(db)).report(owner, range, by);
    if (csv) return io.write(Buffer.from(usageCsv(report.groups, by, nameOf)));
    const rows = report.groups.map((one) => [
      by === "key" ? (nameOf(one.group) ?? one.group) : one.group,
      ...cellsOf(one),
    ]);
    const headings = [HEADINGS[by], "TOTAL", "DELIVERABLE", "RISKY", "UNDELIVERABLE", "RATE-LIMITED", "CREDITS"];
    print(usageView(report, { range, by, nameOf }), () =>
      table(headings, [...rows, ["total", ...cellsOf(report.total)]]),
    );
  },
});

export const USAGE_COMMANDS = { usage: USAGE };
