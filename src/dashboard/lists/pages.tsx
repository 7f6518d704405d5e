import type { Clock } from "../../foundation/base/clock.ts";
import { type PageRoute, page, formAction } from "../page.ts";
import { createDraftPages } from "./draft-pages.tsx";
import { isOpenList, listFacts, type ListUseCases, rowNumber } from "./list-facts.tsx";
import { createListsPages, searchTextSchema } from "./lists-page.tsx";
import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { listTitle } from "../../bulk/attention.ts";
import { ROW_CHOICES, resultsWanted } from "../../bulk/job-queries.ts";
import type { JobRow } from "../../bulk/results/job-store.ts";
import { sendChanges } from "../../bulk/comparisons.ts";
import { EXPORT_COLUMNS, PRESETS } from "../../bulk/results/results-csv.ts";
import { resultOfRow, rowHints } from "../../bulk/results/job-rows.ts";
import { CHANGES } from "../../bulk/results/schemas.ts";
import { SUB_STATUSES, UNSETTLED, type VerificationResult } from "../../verify/result.ts";
import { type View, type Viewer, redirectTo } from "../visit.ts";
import type { DownloadChoice } from "./list-download.tsx";
import { type Confirmation, CONFIRMATIONS, AddressListPage, type ShownTab } from "./list-page.tsx";
import type { EarlierResult, ReasonCounts } from "./list-result.tsx";
import { LIST_TABS } from "./list-tabs.tsx";
import type { ListRowFilter, WaitingRow } from "../../bulk/results/row-store.ts";
import type { Evidence } from "../../verify/evidence.ts";
import { Link } from "../components/inline.tsx";
import { Callout, Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { rowsParameter } from "../components/pager.tsx";
import { PrintButton, PrintHead } from "../components/print.tsx";
import { Time } from "../components/figures.tsx";
import { Conclusion, ScoresPanel, SignalsPanel } from "../verify/verification-body.tsx";
import { EvidenceView } from "../verify/evidence-view.tsx";

/** The pages of lists: all of them, a new one, one list with its rows. */
export const createListPages = (useCases: ListUseCases, clock: Clock): PageRoute[] => [
  ...createListsPages(useCases),
  ...createDraftPages(useCases, clock),
  ...createListViews(useCases),
  ...createListActions(useCases),
];

const listParams = z.object({ id: z.string() });

const rowIndexText = z
  .string()
  .regex(/^\d{1,9}$/)
  .transform(Number);

/** What narrows the rows of a list. */
const rowFilters = {
  show: z.enum(ROW_CHOICES).optional(),
  reason: z.enum(SUB_STATUSES).optional(),
  q: searchTextSchema.optional(),
  host: rowIndexText.optional(),
};

const downloadOptions = {
  columns: z.enum(EXPORT_COLUMNS).optional(),
  preset: z.enum(PRESETS).optional(),
  distinct: z.literal("true").optional(),
  clean: z.literal("true").optional(),
};

const rowsQuery = z.object({
  ...rowFilters,
  ...downloadOptions,
  tab: z.enum(LIST_TABS).default("rows"),
  order: z.enum(["first", "last"]).default("first"),
  cursor: rowIndexText.optional(),
  rows: rowsParameter,
  confirm: z.enum(CONFIRMATIONS).optional(),
  /** The list to compare with. */
  with: z.uuid().optional(),
});
type RowsQuery = z.output<typeof rowsQuery>;

const downloadQuery = z.object({ ...rowFilters, ...downloadOptions });

const changesQuery = z.object({ with: z.uuid().optional(), change: z.enum(CHANGES).default("became_undeliverable") });

const filterOf = ({ show, reason, q, host }: Pick<RowsQuery, "show" | "reason" | "q" | "host">): ListRowFilter => ({
  results: resultsWanted(show, reason),
  text: q ?? null,
  trouble: host,
});

/** The download that the panel offers. The form names the columns: without them it has not been sent yet, and everything is ticked. */
const downloadChoice = async ({ queries }: ListUseCases, job: JobRow, query: RowsQuery): Promise<DownloadChoice> => {
  const { reason, q, host, preset, columns = "all" } = query;
  const isFirst = query.columns === undefined;
  const show = isFirst ? (query.show ?? "deliverable") : query.show;
  const isDistinct = isFirst || query.distinct === "true";
  const isClean = isFirst || query.clean === "true";
  const options = { columns, preset, distinct: isDistinct, clean: isClean };
  const rows = await queries.countDownload(job, filterOf({ show, reason, q, host }), options);
  const names = queries.downloadColumns(job, options);
  return { show: show ?? "", reason, q, host, preset, columns, isDistinct, isClean, rows, names };
};

/** What is asked; null when the state of the list does not allow it any more. */
const confirmationOf = async (useCases: ListUseCases, job: JobRow, query: RowsQuery): Promise<Confirmation | null> => {
  const { queries } = useCases;
  const kind = query.confirm;
  const isOpen = isOpenList({ job });
  if (kind === "download") return { kind, choice: await downloadChoice(useCases, job, query) };
  if (kind === "cancel") return isOpen ? { kind } : null;
  if (kind === "delete") return isOpen ? null : { kind };
  if (kind !== "retry" || job.status !== "completed") return null;
  const addresses = await queries.unsettled(job);
  return addresses === 0 ? null : { kind, addresses, available: queries.availableCredits(job) };
};

/** The rows that a page shows. */
const rowsOf = async ({ queries }: ListUseCases, job: JobRow, query: RowsQuery) => {
  const { show, reason, q, host, order, cursor, rows: limit } = query;
  const filter = filterOf(query);
  const { rows, next } = await queries.rows(job, filter, { behind: cursor ?? null, order, limit });
  return {
    job,
    filters: { show, reason, q, host, order },
    count: rows.length === 0 ? null : await queries.countRows(job, filter),
    limit,
    next: next === null ? null : String(next),
    rows: rows.map((row) => ({ ...row, suggestion: rowHints(row).suggestion })),
  };
};

const HOSTS_SHOWN = 100;
/** Earlier lists that are offered: those of the same name, then the newest others. */
const NAMESAKES_OFFERED = 20;
const OTHERS_OFFERED = 20;

/** The comparison with an earlier list; one that is gone counts as not chosen. */
const comparisonOf = async ({ comparisons, bulk }: ListUseCases, viewer: Viewer, job: JobRow, chosen?: string) => {
  const { caller } = viewer;
  const namesakes = comparisons.namesakes(job, NAMESAKES_OFFERED);
  const others = bulk
    .list(caller, {}, { before: job.id, limit: OTHERS_OFFERED })
    .filter((other) => !isOpenList({ job: other }) && !namesakes.some(({ id }) => id === other.id));
  const other = chosen ?? namesakes[0]?.id;
  const choices = [...namesakes, ...others];
  const known = other === undefined ? null : await unlessMissing(() => comparisons.compare(caller, job.id, other));
  if (known !== null && !choices.some(({ id }) => id === known.earlier.id)) choices.push(known.earlier);
  return { choices, comparison: known };
};

const tabOf = async (
  useCases: ListUseCases,
  viewer: Viewer,
  { job, query, reasons }: { readonly job: JobRow; readonly query: RowsQuery; readonly reasons: ReasonCounts },
): Promise<ShownTab> => {
  const name = query.tab;
  if (name === "hosts") return { name, ...useCases.queries.troubles(job, HOSTS_SHOWN) };
  if (name === "compare") return { name, ...(await comparisonOf(useCases, viewer, job, query.with)) };
  return name === "about" ? { name } : { name, ...(await rowsOf(useCases, job, query)), reasons };
};

/** The result of the list of the same name before one that has completed. */
const earlierResult = ({ comparisons, bulk }: ListUseCases, job: JobRow): EarlierResult | null => {
  const [earlier] = job.status === "completed" ? comparisons.namesakes(job, 1) : [];
  if (earlier?.status !== "completed") return null;
  const { deliverable, risky, undeliverable } = bulk.describe(earlier).verdicts;
  const rows = deliverable + risky + undeliverable;
  return rows === 0 ? null : { createdAtMs: earlier.createdAtMs, share: deliverable / rows };
};

const isUnsettled = (subStatus: string): boolean => UNSETTLED.some((one) => one === subStatus);

const viewList = async (useCases: ListUseCases, viewer: Viewer, id: string, query: RowsQuery): Promise<View> => {
  const { bulk, queries } = useCases;
  const job = bulk.find(viewer.caller, id);
  const { sub_statuses, format, credits } = bulk.describe(job);
  const reasons = Object.entries(sub_statuses)
    .flatMap(([name, rows]) => {
      const subStatus = SUB_STATUSES.find((one) => one === name);
      return subStatus === undefined ? [] : [{ subStatus, rows: rows ?? 0 }];
    })
    .toSorted((a, b) => b.rows - a.rows);
  const props = {
    ...listFacts(useCases, job),
    reasons,
    format,
    credits,
    isTest: viewer.mode === "test",
    pace: queries.pace(job),
    earlier: earlierResult(useCases, job),
    unsettledRows: reasons.reduce((sum, { subStatus, rows }) => sum + (isUnsettled(subStatus) ? rows : 0), 0),
    confirm: await confirmationOf(useCases, job, query),
    tab: await tabOf(useCases, viewer, { job, query, reasons }),
  };
  return { title: listTitle(job.name), section: "lists", body: <AddressListPage {...props} /> };
};

/** Null in place of a 404. */
const unlessMissing = async <T,>(find: () => Promise<T>): Promise<T | null> => {
  try {
    return await find();
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
};

const viewRow = async (
  useCases: ListUseCases,
  viewer: Viewer,
  { id, row: index }: { readonly id: string; readonly row: number },
): Promise<View> => {
  const job = useCases.bulk.find(viewer.caller, id);
  const row = useCases.queries.row(job, index);
  // Null when it has expired.
  const evidence = await unlessMissing(() => useCases.bulk.evidence(viewer.caller, id, index));
  const props = { job, row, result: resultOfRow(row), evidence, account: viewer.account.name };
  return { title: `Row ${index + 1}, ${listTitle(job.name)}`, section: "lists", body: <RowPage {...props} /> };
};

/** One list, its rows one by one, and its results as a file. */
const createListViews = (useCases: ListUseCases): PageRoute[] => {
  const { bulk, queries, comparisons } = useCases;
  return [
    page({ path: "/lists/:id", params: listParams, query: rowsQuery }, ({ viewer, params, query }) =>
      viewList(useCases, viewer, params.id, query),
    ),
    page(
      { path: "/lists/:id/results.csv", params: listParams, query: downloadQuery },
      ({ request, viewer, params, query }) => {
        const { show, reason, columns, preset, ...switches } = query;
        const job = bulk.find(viewer.caller, params.id);
        return queries.download(request, job, {
          filter: filterOf(query),
          part: [reason ?? show ?? "results", ...(preset === undefined ? [] : [preset])].join("-"),
          options: { columns, preset, distinct: switches.distinct === "true", clean: switches.clean === "true" },
        });
      },
    ),
    page(
      { path: "/lists/:id/comparison.csv", params: listParams, query: changesQuery },
      async ({ request, viewer, params, query }) => {
        const comparison = await comparisons.compare(viewer.caller, params.id, query.with);
        return sendChanges(request, comparisons, { comparison, change: query.change });
      },
    ),
    page({ path: "/lists/:id/rows/:row", params: listParams.extend({ row: rowIndexText }) }, ({ viewer, params }) =>
      viewRow(useCases, viewer, params),
    ),
  ];
};

/** Performs it and returns to the list; a state that does not allow it is said there. */
const onList = async (
  viewer: Viewer,
  id: string,
  done: { readonly act: () => Promise<unknown>; readonly ok: string },
) => {
  try {
    await done.act();
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "not_found") throw error;
    return redirectTo(viewer, `/lists/${id}`, { bad: error.message });
  }
  return redirectTo(viewer, `/lists/${id}`, { ok: done.ok });
};

/** What can be done with a list: cancel, verify again, delete. */
const createListActions = ({ bulk }: ListUseCases): PageRoute[] => [
  formAction({ path: "/lists/:id/cancel", params: listParams }, ({ viewer, params: { id } }) =>
    onList(viewer, id, {
      act: () => bulk.cancel(viewer.caller, id),
      ok: "The list is cancelled. The credits of the other addresses are released.",
    }),
  ),
  formAction({ path: "/lists/:id/retry", params: listParams }, ({ viewer, params: { id } }) =>
    onList(viewer, id, {
      act: () => bulk.retry(viewer.caller, id, null),
      ok: "The unsettled addresses are verified again.",
    }),
  ),
  formAction({ path: "/lists/:id/delete", params: listParams }, async ({ viewer, params: { id } }) => {
    await bulk.remove(viewer.caller, id);
    return redirectTo(viewer, "/lists", { ok: "The list is deleted." });
  }),
];

interface RowPageProps {
  readonly job: JobRow;
  readonly row: WaitingRow;
  /** Null until the address is finished. */
  readonly result: VerificationResult | null;
  /** Null when it has expired. */
  readonly evidence: Evidence | null;
  /** The name of the account. */
  readonly account: string;
}

const NotFinished = ({ job, row }: Pick<RowPageProps, "job" | "row">) =>
  isOpenList({ job }) ? (
    <Callout kind="unknown" label="Waiting" title="This address is not verified yet">
      {row.dueAtMs > 0 && (
        <>
          The next attempt is <Time atMs={row.dueAtMs} />: the mail server asked to try again later.
        </>
      )}
    </Callout>
  ) : (
    <Callout kind="unknown" label="Not verified" title="The list ended before this address was verified">
      <p>It cost no credit.</p>
    </Callout>
  );

const AboutRow = ({ job, row }: Pick<RowPageProps, "job" | "row">) => (
  <Panel title="Row" isFlush>
    <Rows>
      <Row label="List">
        <Link href={`/lists/${job.id}`}>{listTitle(job.name)}</Link>
      </Row>
      <Row label="Row">{rowNumber(row.rowIndex)}</Row>
      {row.normalizedEmail !== "" && (
        <Row label="Verified as">
          <code>{row.normalizedEmail}</code>
        </Row>
      )}
      {row.subStatus !== null && (
        <Row label="Verified">
          <Time atMs={row.verifiedAtMs} style="full" />
        </Row>
      )}
    </Rows>
  </Panel>
);

/** `/lists/:id/rows/:row`: the result of one row, and how we know. */
const RowPage = ({ job, row, result, evidence, account }: RowPageProps) => {
  const { rowIndex, submittedEmail } = row;
  const path = `/lists/${job.id}/rows`;
  return (
    <>
      <PageHead
        title={submittedEmail.trim() === "" ? "Row without an address" : submittedEmail}
        isMono
        crumbs={[
          ["Lists", "/lists"],
          [listTitle(job.name), `/lists/${job.id}`],
        ]}
        meta={
          <>
            <span>row {rowNumber(rowIndex)}</span>
            {rowIndex > 0 && <Link href={`${path}/${rowIndex - 1}`}>Previous row</Link>}
            {rowIndex < job.rowsTotal - 1 && <Link href={`${path}/${rowIndex + 1}`}>Next row</Link>}
          </>
        }
        actions={<PrintButton />}
      />
      <PrintHead
        what={`Row ${rowNumber(rowIndex)} of ${listTitle(job.name)}`}
        id={`${job.id}, row ${rowNumber(rowIndex)}`}
        account={account}
        requestedMs={job.createdAtMs}
        finishedMs={result === null ? null : row.verifiedAtMs}
      />
      {result === null ? <NotFinished {...{ job, row }} /> : <Conclusion result={result} evidence={evidence} />}
      <Columns
        side={
          <>
            {result !== null && <ScoresPanel result={result} />}
            {result !== null && <SignalsPanel result={result} />}
            <AboutRow {...{ job, row }} />
          </>
        }
      >
        {evidence === null ? (
          <Panel title="How we know">
            <p class="soft">The evidence of this row has expired.</p>
          </Panel>
        ) : (
          <EvidenceView evidence={evidence} />
        )}
      </Columns>
    </>
  );
};
