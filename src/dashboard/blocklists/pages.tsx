import type { BlocklistUseCases } from "./common.tsx";
import { listPages } from "./list-pages.tsx";
import { newTargetPages } from "./new-pages.tsx";
import { targetPages, csvFile } from "./target-pages.tsx";
import { AppError } from "../../foundation/base/errors.ts";
import { OWNER_ACTS } from "../roles.ts";
import { z } from "zod";
import { isoTime } from "../../foundation/base/clock.ts";
import type { ListingView } from "../../blocklist/listings.ts";
import { severityOfRank, isEnabled } from "../../blocklist/lists/blocklist.ts";
import type { TargetRow } from "../../blocklist/store.ts";
import { stateOfTarget } from "../../blocklist/target-table.ts";
import { listsByMode } from "../../blocklist/target-lookup.ts";
import { csvLine } from "../../foundation/http/csv.ts";
import { countText } from "../components/figures.tsx";
import { formAction, page, listOf } from "../page.ts";
import { type Viewer, redirectTo } from "../visit.ts";
import { TargetsPage, type TargetsQuery, targetsQuery } from "./targets-page.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { ButtonLink } from "../components/inline.tsx";
import { PageHead, Panel } from "../components/panel.tsx";

/** The pages about blocklists: targets, new targets, one target, the lists. */
export const createBlocklistPages = (useCases: BlocklistUseCases) => [
  ...tablePages(useCases),
  ...newTargetPages(useCases),
  ...listPages(useCases),
  ...targetPages(useCases),
];

const CHOSEN_MAX = 500;
const BACK_CHARACTERS_MAX = 2_000;
const ROWS_AT_ONCE = 500;

const bulkForm = z.object({
  ids: listOf(z.string().max(100)).pipe(z.array(z.string()).max(CHOSEN_MAX)),
  /** The menu of a row names none: a deletion asks first. */
  act: z.enum(["check", "pause", "resume", "delete", "delete-confirmed"]).default("delete"),
  back: z.string().max(BACK_CHARACTERS_MAX).default(""),
});

const DONE = {
  check: (count: string) => `${count} will be checked within a minute.`,
  pause: (count: string) => `${count} paused.`,
  resume: (count: string) => `${count} resumed.`,
  "delete-confirmed": (count: string) => `${count} deleted.`,
} as const;

/** Names of the acts in the audit log. The first form of a deletion only asks for confirmation. */
const ACTIONS = {
  check: "targets.check",
  pause: "targets.pause",
  resume: "targets.resume",
  delete: null,
  "delete-confirmed": "targets.remove",
} as const;

const CSV_COLUMNS = [
  "target",
  "label",
  "state",
  "severity",
  "listed_on",
  "since",
  "last_checked_at",
  "next_check_at",
  "notes",
];

/** The table of targets, its file, and what is done with chosen targets. */
const tablePages = (useCases: BlocklistUseCases) => [
  page({ path: "/blocklists", query: targetsQuery }, async ({ viewer, query }) => {
    const { table } = useCases;
    const { cursor, rows: perPage, ...filters } = filtersOf(useCases, viewer, query);
    const shown = await table.page(viewer.caller, { ...filters, page: cursor, perPage });
    const listings = useCases.targets.listingsOf(shown.targets, viewer.mode);
    const targets = shown.targets.map((row) => ({ row, listings: listings.get(row.id) ?? [] }));
    const lists = listsIn(useCases, viewer);
    const figures = table.figures(viewer.caller);
    const body = (
      <TargetsPage
        {...{
          figures,
          query,
          targets,
          lists,
          total: shown.total,
          labels: table.labels(viewer.caller),
          mode: viewer.mode,
        }}
      />
    );
    return { title: "Blocklists", section: "blocklists", body };
  }),

  page({ path: "/blocklists/export.csv", query: targetsQuery }, ({ request, viewer, query }) => {
    const { cursor: _, rows: __, ...filters } = filtersOf(useCases, viewer, query);
    const rows = async function* (): AsyncGenerator<string> {
      yield csvLine(CSV_COLUMNS);
      for await (const portion of useCases.table.all(viewer.caller, filters, ROWS_AT_ONCE)) {
        const listings = useCases.targets.listingsOf(portion, viewer.mode);
        yield portion.map((row) => csvLine(cellsOf(row, listings.get(row.id) ?? []))).join("");
      }
    };
    return csvFile(request, "blocklist-targets.csv", rows());
  }),

  formAction({ path: "/blocklists/bulk", form: bulkForm }, async ({ viewer, form, done }) => {
    const { ids, act } = form;
    done.action = ACTIONS[act];
    const back = new URLSearchParams(form.back).toString();
    const path = back === "" ? "/blocklists" : `/blocklists?${back}`;
    if (OWNER_ACTS.includes(act) && viewer.user.role !== "owner")
      throw new AppError("insufficient_scope", {
        message: "Only an owner of the account can pause, resume or delete targets. Ask one of the owners.",
      });
    if (ids.length === 0) return redirectTo(viewer, path, { bad: "Choose at least one target." });
    if (act === "delete") {
      const targets = ids.map((id) => useCases.targets.find(viewer.caller, id));
      return { title: "Delete targets", section: "blocklists", body: <ConfirmRemoval {...{ targets, back }} /> };
    }
    await perform(useCases, viewer, { act, ids });
    return redirectTo(viewer, path, { ok: DONE[act](countText(ids.length, "target")) });
  }),
];

const perform = (
  { actions }: BlocklistUseCases,
  { caller }: Viewer,
  { act, ids }: { readonly act: keyof typeof DONE; readonly ids: readonly string[] },
): Promise<void> => {
  switch (act) {
    case "check":
      return actions.checkSoon(caller, ids);
    case "pause":
    case "resume":
      return actions.setMonitoring(caller, ids, act === "resume");
    case "delete-confirmed":
      return actions.remove(caller, ids);
    default:
      return act satisfies never;
  }
};

/** The lists in use, for the filter. */
const listsIn = ({ catalogue }: BlocklistUseCases, { mode }: Viewer) =>
  listsByMode(catalogue.lists.filter(isEnabled))
    [mode].map(({ id, name }) => [id, name] as const)
    .toSorted(([, a], [, b]) => a.localeCompare(b, "en"));

/** The filters of the page as the table has them; a list stands for all of its listings. */
const filtersOf = ({ statuses }: BlocklistUseCases, { caller }: Viewer, query: TargetsQuery) => {
  const { list, q, sort, ...rest } = query;
  const found = list === undefined ? undefined : statuses.listingsOf(caller, list);
  return { ...rest, text: q, order: sort, listings: found };
};

const cellsOf = (row: TargetRow, listings: readonly ListingView[]) => [
  row.value,
  row.label,
  stateOfTarget(row),
  severityOfRank(row.severityRank),
  row.listedOn.join(" "),
  listings.map(({ since }) => since).toSorted()[0] ?? null,
  row.lastCheckedAtMs === null ? null : isoTime(row.lastCheckedAtMs),
  row.monitoringEnabled ? isoTime(row.nextCheckAtMs) : null,
  listings.flatMap(({ note }) => (note === null ? [] : [note.text])).join(" | "),
];

/** Asks before targets are removed: their history goes with them. */
const ConfirmRemoval = ({
  targets,
  back,
  action = "/blocklists/bulk",
}: {
  readonly targets: readonly TargetRow[];
  readonly back: string;
  readonly action?: string;
}) => (
  <>
    <PageHead
      title={`Delete ${countText(targets.length, "target")}?`}
      crumbs={[["Blocklists", "/blocklists"]]}
      meta="Their history is deleted, too. This cannot be undone; to keep the history, pause them instead."
    />
    <Panel>
      <ul class="names">
        {targets.map(({ id, value, label, members }) => (
          <li key={id}>
            <span class="mono">{value}</span>
            {members !== null && <span class="soft"> {countText(members, "address", "addresses")}</span>}
            {label !== null && <span class="soft"> {label}</span>}
          </li>
        ))}
      </ul>
      <PostForm action={action} class="actions">
        {targets.map(({ id }) => (
          <input key={id} type="hidden" name="ids" value={id} />
        ))}
        <input type="hidden" name="back" value={back} />
        <input type="hidden" name="act" value="delete-confirmed" />
        <Button kind="danger" icon="trash-2">
          Delete
        </Button>
        <ButtonLink href={back === "" ? "/blocklists" : `/blocklists?${back}`}>Keep them</ButtonLink>
      </PostForm>
    </Panel>
  </>
);
