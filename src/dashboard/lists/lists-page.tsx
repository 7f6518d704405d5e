import { z } from "zod";
import { JOB_STATUSES } from "../../bulk/results/schemas.ts";
import { type PageRoute, page } from "../page.ts";
import { usePage, type View, type Viewer } from "../visit.ts";
import {
  isOpenList,
  listFacts,
  type ListFacts,
  ListTable,
  type ListUseCases,
  STATUS_OPTIONS,
  TEST_NAMES_TEXT,
} from "./list-facts.tsx";
import type { Draft } from "../../bulk/arrival/drafts.ts";
import { Empty, PageHead, Panel, Live } from "../components/panel.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { HelpText, Link, withParameters } from "../components/inline.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { Time, bytesText } from "../components/figures.tsx";
import { UploadForms } from "./draft-pages.tsx";
import type { JobQueries } from "../../bulk/job-queries.ts";
import { isoTime } from "../../foundation/base/clock.ts";
import { attachment, streamRows } from "../../foundation/http/response.ts";
import { csvLine } from "../../foundation/http/csv.ts";

const SEARCH_CHARACTERS_MAX = 200;

/** A text that is looked for. */
export const searchTextSchema = z.string().trim().min(1).max(SEARCH_CHARACTERS_MAX);

const listsQuery = z.object({
  status: z.enum(JOB_STATUSES).optional(),
  q: searchTextSchema.optional(),
  cursor: z.uuid().optional(),
  rows: rowsParameter,
});

const filtersOf = ({ status, q }: Pick<z.output<typeof listsQuery>, "status" | "q">) => ({
  ...(status === undefined ? {} : { status }),
  text: q ?? null,
});

/** `/lists` with these filters. */
const viewLists = async (
  useCases: ListUseCases,
  viewer: Viewer,
  { status, q, cursor, rows: limit }: z.output<typeof listsQuery>,
): Promise<View> => {
  const { caller } = viewer;
  const filters = filtersOf({ status, q });
  const window = { before: cursor ?? null, limit };
  const { rows, next } = await useCases.queries.search(caller, filters, window);
  const props = {
    lists: rows.map((job) => listFacts(useCases, job)),
    drafts: useCases.bulk.drafts.waiting(caller),
    filters: { status, q },
    cursor,
    limit,
    next,
    isTest: viewer.mode === "test",
  };
  return { title: "Lists", section: "lists", body: <AddressListsPage {...props} /> };
};

/** `/lists`, and the same lists as a file. */
export const createListsPages = (useCases: ListUseCases): PageRoute[] => [
  page({ path: "/lists", query: listsQuery }, ({ viewer, query }) => viewLists(useCases, viewer, query)),
  page({ path: CSV_PATH, query: listsQuery.omit({ cursor: true, rows: true }) }, ({ request, viewer, query }) =>
    sendLists(useCases, request, viewer, filtersOf(query)),
  ),
];

const LIVE_S = 5;
const CSV_PATH = "/lists/all.csv";

interface AddressListsPageProps {
  readonly lists: readonly ListFacts[];
  readonly drafts: readonly Draft[];
  readonly filters: { readonly status: string | undefined; readonly q: string | undefined };
  readonly cursor: string | undefined;
  readonly limit: number;
  readonly next: string | null;
  readonly isTest: boolean;
}

const TEACHES =
  "Upload a list of addresses, and you get back which can be mailed, which cannot, and why. You see what was found in the file and what it costs before anything starts.";

/** What a list is, for an account that has none yet. */
const NoLists = () => (
  <Empty title="No list yet">
    <p>{TEACHES}</p>
  </Empty>
);

const Waiting = ({ drafts }: { readonly drafts: readonly Draft[] }) => (
  <Panel title="Uploaded, not started" isFlush>
    <ul class="plain-list">
      {drafts.map(({ id, fileName, bytes, expiresAtMs }) => (
        <li key={id}>
          <Link href={`/lists/new?draft=${id}`}>{fileName ?? "Pasted addresses"}</Link>{" "}
          <span class="soft small">
            {bytesText(bytes)}, kept until <Time atMs={expiresAtMs} style="clock" />
          </span>
        </li>
      ))}
    </ul>
  </Panel>
);

/** The lists that are shown as a file. */
const CsvLink = ({ status, q }: AddressListsPageProps["filters"]) => {
  const { href } = usePage();
  return (
    <a href={withParameters(href(CSV_PATH), { status: status ?? null, q: q ?? null })} download>
      CSV
    </a>
  );
};

/** `/lists`: how to add one, and all of them. */
const AddressListsPage = ({ lists, drafts, filters, cursor, limit, next, isTest }: AddressListsPageProps) => {
  const isFiltered = filters.status !== undefined || filters.q !== undefined;
  const isLater = cursor !== undefined;
  const isRunning = lists.some(isOpenList);
  const isEmpty = lists.length === 0;
  return (
    <>
      <PageHead title="Lists" />
      <Panel title="Verify a list">
        {isTest && (
          <p class="soft">
            <HelpText text={TEST_NAMES_TEXT} />
          </p>
        )}
        <UploadForms />
      </Panel>
      {drafts.length > 0 && <Waiting drafts={drafts} />}
      {isEmpty && !isFiltered && !isLater ? (
        <Panel isFlush>
          <NoLists />
        </Panel>
      ) : (
        <Panel title="Your lists" aside={<CsvLink {...filters} />} isFlush>
          <Filters action="/lists">
            <SelectField name="status" label="Status" value={filters.status ?? ""} options={STATUS_OPTIONS} />
            <Field name="q" type="search" label="Name contains" value={filters.q ?? ""} />
          </Filters>
          <Live id="lists" everyS={LIVE_S} isOn={isRunning}>
            {isEmpty ? (
              <Empty title="No list matches">
                <p>
                  Choose another status or text, or <Link href="/lists">show all lists</Link>.
                </p>
              </Empty>
            ) : (
              <ListTable lists={lists} />
            )}
          </Live>
          <Pager next={next} shown={lists.length} rows={limit} />
        </Panel>
      )}
    </>
  );
};

const CSV_COLUMNS = [
  "id",
  "name",
  "label",
  "status",
  "started_by",
  "started_at",
  "ended_at",
  "rows",
  "rows_without_address",
  "addresses",
  "addresses_finished",
  "deliverable",
  "risky",
  "undeliverable",
  "credits_charged",
];
const LISTS_AT_ONCE = 250;

const lineOf = ({ job, verdicts, startedBy }: ListFacts): string =>
  csvLine([
    job.id,
    job.name,
    job.source,
    job.status,
    startedBy,
    isoTime(job.createdAtMs),
    job.completedAtMs === null ? null : isoTime(job.completedAtMs),
    job.rowsTotal,
    job.rowsEmpty,
    job.addressesTotal,
    job.addressesFinished,
    verdicts.deliverable,
    verdicts.risky,
    verdicts.undeliverable,
    job.creditsCharged,
  ]);

type SearchFilters = Parameters<JobQueries["search"]>[1];

async function* csvOfLists(useCases: ListUseCases, { caller }: Viewer, filters: SearchFilters) {
  yield Buffer.from(csvLine(CSV_COLUMNS));
  let before: string | null = null;
  do {
    const { rows, next } = await useCases.queries.search(caller, filters, { before, limit: LISTS_AT_ONCE });
    yield Buffer.from(rows.map((job) => lineOf(listFacts(useCases, job))).join(""));
    before = next;
  } while (before !== null);
}

/** The lists of an account that pass the filters, newest first, as a CSV. */
const sendLists = (useCases: ListUseCases, request: Request, viewer: Viewer, filters: SearchFilters): Response =>
  streamRows(request, csvOfLists(useCases, viewer, filters), {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": attachment("lists", ".csv"),
  });
