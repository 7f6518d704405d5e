import { type Command, Option } from "commander";
import { AccountsSlice } from "../accounts/open.ts";
import { systemClock } from "../foundation/base/clock.ts";
import type { DayRange } from "../foundation/base/days.ts";
import { AppError } from "../foundation/base/errors.ts";
import { parseDay, readDayRange } from "../foundation/http/day-range.ts";
import {
  AccountUsage,
  USAGE_DAYS_MAX,
  USAGE_GROUPS,
  type UsageFigures,
  type UsageGrouping,
  usageCsv,
} from "../accounts/usage/account-usage.ts";
import { usageView } from "../accounts/usage/routes.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import { type AccountOptions, addCommand, ofAccount } from "./command.ts";
import { accountIdOf, withDatabaseUntilDone } from "./data-directory.ts";
import { type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";

interface UsageOptions extends AccountOptions {
  readonly by: UsageGrouping;
  readonly from?: string;
  readonly to?: string;
  readonly csv?: boolean;
}

const dayOption = (name: "from" | "to", text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const day = parseDay(text);
  if (day === null) throw new UsageError(`--${name}: "${text}" is not a date such as 2026-01-31.`, name);
  return day;
};

const rangeOfOptions = ({ from, to }: UsageOptions): DayRange => {
  const requested = { from: dayOption("from", from), to: dayOption("to", to) };
  try {
    return readDayRange(requested, systemClock.nowMs(), USAGE_DAYS_MAX);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new UsageError(`--from must not be after --to, and a range has at most ${USAGE_DAYS_MAX} days.`, "from");
  }
};

const HEADINGS: Readonly<Record<UsageGrouping, string>> = {
  day: "DAY",
  key: "KEY",
  verdict: "VERDICT",
  sub_status: "SUB_STATUS",
};

const cellsOf = ({ total, deliverable, risky, undeliverable, rateLimited, credits }: UsageFigures): string[] =>
  [total, deliverable, risky, undeliverable, rateLimited ?? "", credits].map(String);

/** `usage` */
export const addUsageCommand = (program: Command, io: Io): void => {
  const command = addCommand(program, "usage", {
    description: "Show the verifications and credits of an account by day, key or result.",
    example: "usage --account acme --by key --from 2026-01-01",
  });
  ofAccount(command, "verifications")
    .addOption(new Option("--by <group>", "how to group the figures").choices([...USAGE_GROUPS]).default("day"))
    .option("--from <date>", "first day in UTC (default: 29 days before --to)")
    .option("--to <date>", "last day in UTC (default: today)")
    .addOption(new Option("--csv", "print CSV").conflicts("json"))
    .action((options: UsageOptions) =>
      withDatabaseUntilDone(io, async (db) => {
        const range = rangeOfOptions(options);
        const owner = { accountId: accountIdOf(db, options.account), mode: options.mode };
        const { callerName: nameOf } = new AccountsSlice({ db, clock: systemClock });
        const report = await new AccountUsage(new UsageStore(db)).report(owner, range, options.by);
        if (options.csv === true) return io.write(Buffer.from(usageCsv(report.groups, options.by, nameOf)));
        print(io, options.json, usageView(report, { range, by: options.by, nameOf }), () =>
          table(
            [HEADINGS[options.by], "TOTAL", "DELIVERABLE", "RISKY", "UNDELIVERABLE", "RATE-LIMITED", "CREDITS"],
            [
              ...report.groups.map((one) => [
                options.by === "key" ? (nameOf(one.group) ?? one.group) : one.group,
                ...cellsOf(one),
              ]),
              ["total", ...cellsOf(report.total)],
            ],
            io.columns,
          ),
        );
      }),
    );
};
