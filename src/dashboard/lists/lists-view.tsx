import { z } from "zod";
import { JOB_STATUSES } from "../../bulk/results/schemas.ts";
import { type PageRoute, page } from "../page.ts";
import type { View, Viewer } from "../visit.ts";
import { type ListUseCases, listFacts } from "./list-use-cases.ts";
import { sendLists } from "./lists-csv.ts";
import { AddressListsPage, CSV_PATH } from "./lists-page.tsx";

const LISTS_PER_PAGE = 25;
const SEARCH_CHARACTERS_MAX = 200;

/** A text that is looked for. */
export const searchTextSchema = z.string().trim().min(1).max(SEARCH_CHARACTERS_MAX);

const listsQuery = z.object({
  status: z.enum(JOB_STATUSES).optional(),
  q: searchTextSchema.optional(),
  cursor: z.uuid().optional(),
});

const filtersOf = ({ status, q }: Pick<z.output<typeof listsQuery>, "status" | "q">) => ({
  ...(status === undefined ? {} : { status }),
  text: q ?? null,
});

/** `/lists` with these filters. */
const viewLists = async (
  useCases: ListUseCases,
  viewer: Viewer,
  { status, q, cursor }: z.output<typeof listsQuery>,
): Promise<View> => {
  const { caller } = viewer;
  const filters = filtersOf({ status, q });
  const window = { before: cursor ?? null, limit: LISTS_PER_PAGE };
  const { rows, next } = await useCases.queries.search(caller, filters, window);
  const props = {
    lists: rows.map((job) => listFacts(useCases, job)),
    drafts: useCases.bulk.drafts.waiting(caller),
    ...{ filters: { status, q }, cursor, next, isTest: viewer.mode === "test" },
  };
  return { title: "Lists", section: "lists", body: <AddressListsPage {...props} /> };
};

/** `/lists`, and the same lists as a file. */
export const createListsPages = (useCases: ListUseCases): PageRoute[] => [
  page({ path: "/lists", query: listsQuery }, ({ viewer, query }) => viewLists(useCases, viewer, query)),
  page({ path: CSV_PATH, query: listsQuery.omit({ cursor: true }) }, ({ request, viewer, query }) =>
    sendLists(useCases, request, viewer, filtersOf(query)),
  ),
];
