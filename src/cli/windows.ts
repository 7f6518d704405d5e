import type { Owner } from "../foundation/base/secrets.ts";
import { systemClock } from "../foundation/base/clock.ts";
import { WEEKDAYS } from "../notifications/windows/window-times.ts";
import { MaintenanceWindows } from "../notifications/windows/windows.ts";
import { accountOptions, argument, command, group, option, severalOf, type Terminal, toggle } from "./command.ts";
import { accountIdOf, type DatabaseContext, inDatabase } from "./data-directory.ts";
import { UsageError } from "./io.ts";
import { tableTime } from "./terminal-text.ts";

const options = {
  ...accountOptions("windows"),
  allAccounts: toggle("the windows of the operator, which are for all accounts"),
};

interface Chosen {
  readonly account: string | undefined;
  readonly mode: "live" | "test";
  readonly allAccounts: boolean;
}

const ownerOf = ({ db }: DatabaseContext, { account, mode, allAccounts }: Chosen): Owner | null => {
  if (allAccounts && account !== undefined) throw new UsageError("Pass either --account or --all-accounts.");
  return allAccounts ? null : { accountId: accountIdOf(db, account), mode };
};

const windowsOf = ({ db }: DatabaseContext) => new MaintenanceWindows({ db, clock: systemClock });

const show = (context: DatabaseContext & Terminal, owner: Owner | null) => {
  const windows = windowsOf(context);
  const view = owner === null ? { quiet_until: null, windows: windows.viewOfOperator() } : windows.view(owner);
  const rows = view.windows.map(({ id, set_by, until, weekly, on_until }) => [
    ...[id, set_by, on_until === null ? "off" : "on"],
    weekly === null
      ? `until ${tableTime(until)}`
      : `${weekly.days.join(",")} ${weekly.from} to ${weekly.to} ${weekly.time_zone}`,
  ]);
  context.print(view, () => context.table(["ID", "SET BY", "NOW", "WHEN"], rows));
};

/** Changes windows, with an entry in the audit log, and shows them. */
const change = async (
  context: DatabaseContext & Terminal,
  { owner, act }: { owner: Owner | null; act: "add" | "remove" },
  work: () => Promise<unknown>,
) => {
  const action = `notifications.windows.${act}`;
  const accountId = owner?.accountId ?? null;
  await context.audit.perform({ action: { action, accountId, subject: owner?.mode ?? "all accounts" }, work });
  show(context, owner);
};

/** Times in which no mail and no messages are sent. */
export const WINDOWS = group(
  {
    description: "Set times in which no mail and no messages are sent.",
    example: "notifications windows list --account acme",
  },
  {
    list: command({
      description: "List maintenance windows.",
      example: "notifications windows list --account acme",
      on: inDatabase,
      options,
      run(context, chosen) {
        show(context, ownerOf(context, chosen));
      },
    }),
    add: command({
      description: "Send nothing from now until a time, or every week.",
      example: "notifications windows add --until 2026-01-02T06:00:00+01:00 --account acme",
      on: inDatabase,
      options: {
        ...options,
        until: option("<time>", "the end, at most 7 days from now (ISO 8601)"),
        day: severalOf("<day...>", WEEKDAYS, "days on which a weekly window begins"),
        from: option("<time>", "when it begins, such as 22:00"),
        to: option("<time>", "when it ends, such as 06:00"),
        timeZone: option("<zone>", "the time zone of these times, such as Europe/Berlin (default: UTC)"),
      },
      async run(context, { until, day, from, to, timeZone, ...chosen }) {
        const owner = ownerOf(context, chosen);
        const isWeekly = [day, from, to, timeZone].some((given) => given !== undefined);
        if (until !== undefined && Number.isNaN(Date.parse(until)))
          throw new UsageError(`--until: "${until}" is not a time.`, "until");
        const weekly = { days: day ?? [], from: from ?? "", to: to ?? "", time_zone: timeZone ?? "UTC" };
        const window = { until, weekly: isWeekly ? weekly : undefined };
        await change(context, { owner, act: "add" }, () => windowsOf(context).add(owner, window));
      },
    }),
    remove: command({
      description: "End a maintenance window; what waits is sent within a minute.",
      example: "notifications windows remove 019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a70 --account acme",
      on: inDatabase,
      args: { id: argument("<id>", "the id of the window") },
      options,
      async run(context, { id, ...chosen }) {
        const owner = ownerOf(context, chosen);
        await change(context, { owner, act: "remove" }, () => windowsOf(context).remove(owner, id));
      },
    }),
  },
);
