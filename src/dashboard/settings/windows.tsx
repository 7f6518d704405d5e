import { z } from "zod";
import { DAY_MS } from "../../foundation/base/days.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { msOfLocalTime, QUIET_MS_MAX, WEEKDAYS } from "../../notifications/windows/window-times.ts";
import type { MaintenanceWindows, NewWindow } from "../../notifications/windows/windows.ts";
import { exactText, Time } from "../components/figures.tsx";
import { Button, CheckField, Field, GroupError, MoreForm, PostForm } from "../components/form.tsx";
import { Badge } from "../components/inline.tsx";
import { Callout, Empty, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { flag, formAction, listOf } from "../page.ts";
import { redirectTo, usePage, type View, type Viewer } from "../visit.ts";

type Windows = ReturnType<MaintenanceWindows["view"]>;

const PAGE = "/settings/notifications";
const PATH = `${PAGE}/windows`;

const DAY_NAMES = { mon: "Mon", tue: "Tue", wed: "Wed", thu: "Thu", fri: "Fri", sat: "Sat", sun: "Sun" } as const;

const untilForm = z.object({ day: z.string().trim(), until: z.string().trim(), everyone: flag });
const weeklyForm = z.object({
  days: listOf(z.enum(WEEKDAYS)),
  from: z.string().trim(),
  to: z.string().trim(),
  time_zone: z.string().trim(),
  everyone: flag,
});
const removeForm = z.object({ id: z.string().refine(isId), everyone: flag });

/** Forms that set and end maintenance windows. `view` is the page that they stand on. */
export const createWindowActions = (windows: MaintenanceWindows, view: (viewer: Viewer) => View) => {
  const rerender = ({ viewer }: { readonly viewer: Viewer }) => view(viewer);
  const ownerOf = (viewer: Viewer, everyone: boolean) => {
    if (everyone && !viewer.user.isOperator) throw new AppError("insufficient_scope");
    return everyone ? null : { accountId: viewer.account.id, mode: viewer.mode };
  };
  const add = async (viewer: Viewer, everyone: boolean, window: NewWindow) => {
    await windows.add(ownerOf(viewer, everyone), window);
    return redirectTo(viewer, PAGE, { ok: "Set. What happens meanwhile is in one message after it." });
  };
  return [
    formAction(
      { path: PATH, form: untilForm },
      ({ viewer, form: { day, until: time, everyone }, done }) => {
        const untilMs = msOfLocalTime(`${day}T${time}`, viewer.timeZone);
        if (untilMs === null)
          throw new AppError("Invalid request body", {
            issues: [{ path: "until", message: "A day and a time such as 06:00 are needed." }],
          });
        const until = new Date(untilMs).toISOString();
        done.after = { mode: viewer.mode, everyone, until };
        return add(viewer, everyone, { until }).catch(throwBesideFields);
      },
      { rerender },
    ),
    formAction(
      { path: `${PATH}/weekly`, form: weeklyForm },
      ({ viewer, form: { everyone, ...weekly }, done }) => {
        done.after = { mode: viewer.mode, everyone, weekly };
        return add(viewer, everyone, { weekly }).catch(throwBesideFields);
      },
      { rerender },
    ),
    formAction(
      { path: `${PATH}/remove`, form: removeForm },
      async ({ viewer, form: { id, everyone }, done }) => {
        done.after = { mode: viewer.mode, everyone };
        await windows.remove(ownerOf(viewer, everyone), id);
        return redirectTo(viewer, PAGE, { ok: "Removed. What waited is sent within a minute." });
      },
      { rerender },
    ),
  ];
};

/** Shows a problem of `weekly.days`, as the API names it, beside the field `days`, and one of the moment `until` beside its day. */
const throwBesideFields = (error: unknown): never => {
  if (!(error instanceof AppError)) throw error;
  const issues = error.details.issues?.map(({ path, message }) => ({
    path: path === "until" ? "day" : path.replace(/^weekly\./, ""),
    message,
  }));
  throw new AppError(error.code, { ...error.details, ...(issues === undefined ? {} : { issues }) });
};

/** Says that a window is on; nothing otherwise. */
export const QuietCallout = ({ quietUntil }: { readonly quietUntil: string | null }) =>
  quietUntil === null ? null : (
    <Callout
      kind="warn"
      label="Maintenance"
      title={
        <>
          No mail and no messages are sent until <Time atMs={Date.parse(quietUntil)} style="full" />
        </>
      }
    >
      <p>What happens meanwhile is in one message after it. Webhooks are not delayed.</p>
    </Callout>
  );

interface PanelProps {
  readonly windows: Windows;
  readonly isOwner: boolean;
  readonly isOperator: boolean;
}

/** The windows, and the forms to set one. */
export const WindowPanels = ({ windows: { windows }, isOwner, isOperator }: PanelProps) => (
  <Panel title="Maintenance windows" isFlush>
    {windows.length === 0 ? (
      <Empty title="Mail and messages are sent at any time">
        <p>In a maintenance window nothing is sent; what happened is in one message after it.</p>
      </Empty>
    ) : (
      <Table
        caption="Maintenance windows"
        columns={[
          { title: "When", isMain: true, isText: true },
          { title: "Now" },
          { title: "Set by" },
          { title: "Remove", isTitleHidden: true, align: "end" },
        ]}
        rows={windows.map(({ id, until, weekly, on_until, set_by }) => ({
          key: id,
          cells: [
            weekly === null ? (
              <>
                until <Time key="until" atMs={Date.parse(until ?? "")} style="full" />
              </>
            ) : (
              `${weekly.days.map((day) => DAY_NAMES[day]).join(", ")} from ${weekly.from} to ${weekly.to}, ${weekly.time_zone}`
            ),
            on_until === null ? (
              "off"
            ) : (
              <Badge key="on" kind="warn">
                On
              </Badge>
            ),
            set_by === "operator" ? "the operator, for all accounts" : "this account",
            (set_by === "operator" ? isOperator : isOwner) ? (
              <RemoveForm key="remove" id={id} everyone={set_by === "operator"} isSingle={weekly === null} />
            ) : (
              ""
            ),
          ],
        }))}
      />
    )}
    {isOwner && (
      <div class="panel-body actions">
        <UntilForm isOperator={isOperator} />
        <WeeklyForm isOperator={isOperator} />
      </div>
    )}
  </Panel>
);

const RemoveForm = (props: { readonly id: string; readonly everyone: boolean; readonly isSingle: boolean }) => (
  <PostForm action={`${PATH}/remove`}>
    <input type="hidden" name="id" value={props.id} />
    {props.everyone && <input type="hidden" name="everyone" value="on" />}
    <Button>{props.isSingle ? "End now" : "Remove"}</Button>
  </PostForm>
);

const Everyone = ({ isOperator }: Pick<PanelProps, "isOperator">) =>
  isOperator && <CheckField name="everyone" label="For all accounts of this service" isChecked={false} />;

const UntilForm = ({ isOperator }: Pick<PanelProps, "isOperator">) => {
  const { timeZone, nowMs } = usePage();
  const dayAt = (atMs: number): string => exactText(atMs, timeZone).slice(0, 10);
  return (
    <MoreForm label="Send nothing until…" action={PATH}>
      <div class="inline-form">
        <Field
          name="day"
          type="date"
          label="Day"
          value={dayAt(nowMs + DAY_MS)}
          min={dayAt(nowMs)}
          max={dayAt(nowMs + QUIET_MS_MAX)}
          isRequired
        />
        <Field name="until" type="time" label="Time" value="06:00" isRequired />
      </div>
      <p class="hint">From now on, in {timeZone}, for at most 7 days.</p>
      <Everyone isOperator={isOperator} />
      <Button icon="bell-off">Start now</Button>
    </MoreForm>
  );
};

const WeeklyForm = ({ isOperator }: Pick<PanelProps, "isOperator">) => {
  const { timeZone } = usePage();
  return (
    <MoreForm label="Send nothing every week…" action={`${PATH}/weekly`}>
      <fieldset class="days">
        <legend>Begins on</legend>
        {WEEKDAYS.map((day) => (
          <CheckField key={day} name="days" value={day} label={DAY_NAMES[day]} isChecked={false} />
        ))}
        <GroupError name="days" />
      </fieldset>
      <div class="inline-form">
        <Field name="from" type="time" label="From" value="22:00" isRequired />
        <Field name="to" type="time" label="To" value="06:00" isRequired />
        <Field name="time_zone" label="Time zone" value={timeZone} isRequired />
      </div>
      <p class="hint">A time before the beginning is on the next day.</p>
      <Everyone isOperator={isOperator} />
      <Button>Add</Button>
    </MoreForm>
  );
};
