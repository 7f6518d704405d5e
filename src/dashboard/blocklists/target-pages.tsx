import { z } from "zod";
import { nextTurn } from "../../foundation/base/clock.ts";
import { DAY_MS } from "../../foundation/base/days.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { waitFor } from "../../foundation/base/wait.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { formAction, page } from "../page.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import { HistoryPage, type HistoryQuery, historyQuery } from "./history-page.tsx";
import { MUTE_DAYS } from "./target-panels.tsx";
import { settingsFields, type BlocklistUseCases, namesIn } from "./common.tsx";
import { TargetPage } from "./target-page.tsx";
import { streamRows } from "../../foundation/http/response.ts";

const CHANGES_SHOWN = 12;
const MEMBERS_MAX = 1_024;
/** Longer checks go on after the response, and the page shows that they run. */
const CHECK_WAIT_MS = 1_000;
const CSV_ROWS_AT_ONCE = 200;
const NOTE_CHARACTERS_MAX = 1_000;
const REASON_CHARACTERS_MAX = 200;
const LISTING_CHARACTERS_MAX = 100;

const params = z.object({ id: z.string().refine(isId) });
const listingParams = params.extend({ listing: z.string().max(LISTING_CHARACTERS_MAX) });
const yesOrNo = z.object({ is: z.enum(["yes", "no"]) });

/** One target, its history, and everything that can be done with it. */
export const targetPages = (useCases: BlocklistUseCases) => [
  page({ path: "/blocklists/:id", params }, ({ viewer, params: { id } }) => targetView(useCases, viewer, id)),
  ...historyPages(useCases),
  ...targetActions(useCases),
  ...noteActions(useCases),
  ...muteActions(useCases),
];

const targetView = (useCases: BlocklistUseCases, viewer: Viewer, id: string): View => {
  const { targets, history, mutes, monitor, rangeChecks, catalogue } = useCases;
  const { caller } = viewer;
  const target = targets.find(caller, id);
  const isRange = target.members !== null;
  const [last] = isRange ? [] : history.page(id, {}, { page: 1, perPage: 1 }).checks;
  const props = {
    target,
    range: target.rangeId === "" ? null : targets.find(caller, target.rangeId),
    listings: target.listedOn.length === 0 ? [] : targets.view(target).listings,
    responses: new Map(last?.results.map(({ list, codes, text }) => [list, { codes, text }])),
    isChecking: isRange ? rangeChecks.isChecking(id) : monitor.isChecking(id),
    timelines: isRange ? [] : history.timelines(target),
    members: isRange ? targets.list(caller, { rangeId: id })(null, MEMBERS_MAX + 1, MEMBERS_MAX).rows : [],
    changes: history.changes(target, CHANGES_SHOWN),
    mutes: mutes.of(target),
    names: namesIn(catalogue, target.mode),
  };
  return { title: target.value, section: "blocklists", body: <TargetPage {...props} /> };
};

const filterOf = ({ status, trigger, changes }: HistoryQuery) => ({
  ...(status === undefined ? {} : { status }),
  ...(trigger === undefined ? {} : { trigger }),
  ...(changes === "yes" ? { isChange: true } : {}),
});

const historyPages = ({ targets, history, catalogue }: BlocklistUseCases) => [
  page({ path: "/blocklists/:id/history", params, query: historyQuery }, ({ viewer, params: { id }, query }) => {
    const target = targets.find(viewer.caller, id);
    const shown = history.page(id, filterOf(query), { page: query.cursor, perPage: query.rows });
    const names = namesIn(catalogue, target.mode);
    return {
      title: `Checks of ${target.value}`,
      section: "blocklists",
      body: <HistoryPage {...{ target, query, names, page: shown }} />,
    };
  }),

  page(
    { path: "/blocklists/:id/history.csv", params, query: historyQuery },
    ({ request, viewer, params: { id }, query }) => {
      const target = targets.find(viewer.caller, id);
      return csvFile(request, `${target.value}-checks.csv`, historyLines({ history }, target, query));
    },
  ),
];

const HISTORY_COLUMNS = [
  "finished_at",
  "trigger",
  "status",
  "listed_on",
  "added",
  "removed",
  "address",
  "listed",
  "not_listed",
  "unproven",
  "refused",
  "failed",
  "unusable_lists",
];

const historyLines = async function* (
  { history }: Pick<BlocklistUseCases, "history">,
  { id }: TargetRow,
  query: HistoryQuery,
): AsyncGenerator<string> {
  yield csvLine(HISTORY_COLUMNS);
  for (let at = 1; ; at++) {
    const { checks } = history.page(id, filterOf(query), { page: at, perPage: CSV_ROWS_AT_ONCE });
    yield checks
      .map(({ finished_at, trigger, status, listed_on, added, removed, address = null, counts, results }) => {
        const unusable = results.filter(({ outcome }) => outcome !== "listed").map(({ list }) => list);
        return csvLine([
          finished_at,
          trigger,
          status,
          listed_on.join(" "),
          added.join(" "),
          removed.join(" "),
          address,
          counts.listed,
          counts.not_listed,
          counts.unproven,
          counts.refused,
          counts.failed,
          unusable.join(" "),
        ]);
      })
      .join("");
    if (checks.length < CSV_ROWS_AT_ONCE) return;
    await nextTurn();
  }
};

const targetActions = (useCases: BlocklistUseCases) => {
  const { targets, monitor, rangeChecks, clock } = useCases;
  return [
    formAction({ path: "/blocklists/:id/check", params }, async ({ viewer, params: { id }, request }) => {
      const target = targets.find(viewer.caller, id);
      const running = target.members === null ? monitor.checkOnDemand(target) : rangeChecks.check(target);
      const limits = { timeoutMs: CHECK_WAIT_MS, signal: request.signal };
      const waited = await waitFor(clock, running.done, limits);
      return redirectTo(viewer, `/blocklists/${id}`, waited.ok ? { ok: "Checked." } : undefined);
    }),

    formAction(
      { path: "/blocklists/:id/monitoring", params, form: yesOrNo },
      async ({ viewer, params: { id }, form }) => {
        await targets.change(viewer.caller, id, { monitoringEnabled: form.is === "yes" });
        const ok = form.is === "yes" ? "Resumed. The next check runs within a minute." : "Paused.";
        return redirectTo(viewer, `/blocklists/${id}`, { ok });
      },
    ),

    formAction(
      { path: "/blocklists/:id/settings", params, form: z.object(settingsFields(useCases.rules)) },
      async ({ viewer, params: { id }, form }) => {
        const { label, alert_severity_min: alertSeverityMin, webhook_url: webhookUrl, recipients } = form;
        await targets.change(viewer.caller, id, { label, alertSeverityMin, webhookUrl, recipients });
        return redirectTo(viewer, `/blocklists/${id}`, { ok: "Saved." });
      },
      { rerender: ({ viewer, params: { id } }) => targetView(useCases, viewer, id) },
    ),
  ];
};

/** Marks and notes about a listing. */
const noteActions = (useCases: BlocklistUseCases) => {
  const { targets, notes } = useCases;
  const change = async (
    viewer: Viewer,
    { id, listing }: z.output<typeof listingParams>,
    what: Parameters<typeof notes.change>[2]["change"],
  ): Promise<Response> => {
    const target = targets.find(viewer.caller, id);
    await notes.change(target, listing, { by: viewer.user.email, change: what });
    return redirectTo(viewer, `/blocklists/${id}`, { ok: "Saved." });
  };
  const path = (what: string) => `/blocklists/:id/listings/:listing/${what}`;
  return [
    formAction({ path: path("requested"), params: listingParams, form: yesOrNo }, ({ viewer, params: of, form }) =>
      change(viewer, of, { delisting_requested: form.is === "yes" }),
    ),
    formAction({ path: path("acknowledged"), params: listingParams, form: yesOrNo }, ({ viewer, params: of, form }) =>
      change(viewer, of, { acknowledged: form.is === "yes" }),
    ),
    formAction(
      {
        path: path("note"),
        params: listingParams,
        form: z.object({ note: z.string().trim().max(NOTE_CHARACTERS_MAX).default("") }),
      },
      ({ viewer, params: of, form }) => change(viewer, of, { note: form.note === "" ? null : form.note }),
      { rerender: ({ viewer, params: { id } }) => targetView(useCases, viewer, id) },
    ),
  ];
};

const MUTE_VALUES = MUTE_DAYS.map(([value]) => value);

const muteForm = z.object({
  days: z.string().refine((value) => MUTE_VALUES.includes(value), "Choose for how long"),
  reason: z
    .string()
    .trim()
    .max(REASON_CHARACTERS_MAX)
    .default("")
    .transform((text) => (text === "" ? null : text)),
});

const muteActions = (useCases: BlocklistUseCases) => {
  const { mutes, clock } = useCases;
  return [
    formAction(
      { path: "/blocklists/:id/listings/:listing/mute", params: listingParams, form: muteForm },
      async ({ viewer, params: { id, listing }, form: { days, reason } }) => {
        const untilMs = days === "never" ? null : clock.nowMs() + Number(days) * DAY_MS;
        await mutes.mute(viewer.caller, id, listing, { by: viewer.user.email, reason, untilMs });
        return redirectTo(viewer, `/blocklists/${id}`, { ok: "Muted." });
      },
      { rerender: ({ viewer, params: { id } }) => targetView(useCases, viewer, id) },
    ),

    formAction(
      { path: "/blocklists/:id/unmute", params, form: z.object({ muted: z.string().max(LISTING_CHARACTERS_MAX) }) },
      async ({ viewer, params: { id }, form: { muted } }) => {
        await mutes.unmute(viewer.caller, id, muted);
        return redirectTo(viewer, `/blocklists/${id}`, { ok: "Unmuted. The next check shows what is listed." });
      },
    ),
  ];
};

const encoder = new TextEncoder();

async function* encoded(lines: AsyncGenerator<string>): AsyncGenerator<Uint8Array> {
  for await (const text of lines) yield encoder.encode(text);
}

/** A CSV file, sent as its lines are read. */
export const csvFile = (request: Request, name: string, lines: AsyncGenerator<string>): Response =>
  streamRows(request, encoded(lines), {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${name.replace(/[^A-Za-z0-9._-]+/g, "_")}"`,
  });
