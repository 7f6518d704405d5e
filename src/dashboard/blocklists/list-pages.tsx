import { z } from "zod";
import { waitFor } from "../../foundation/base/wait.ts";
import { formAction, page } from "../page.ts";
import { redirectTo } from "../redirect.ts";
import { ListPage } from "./list-page.tsx";
import { ListsPage } from "./lists-page.tsx";
import type { BlocklistUseCases } from "./use-cases.ts";

const TARGETS_SHOWN = 20;
/** Longer tests go on after the response. */
const TEST_WAIT_MS = 8_000;

const params = z.object({ list: z.string().regex(/^[a-z0-9-]{1,64}$/) });

/** The lists, and one list. */
export const listPages = ({ statuses, table, clock }: BlocklistUseCases) => [
  page({ path: "/blocklists/lists" }, ({ viewer }) => ({
    ...{ title: "Health of the lists", section: "blocklists" },
    body: <ListsPage statuses={statuses.all(viewer.caller)} />,
  })),

  page({ path: "/blocklists/lists/:list", params }, async ({ viewer, params: { list: id } }) => {
    const status = statuses.find(viewer.caller, id);
    const query = { listings: statuses.listingsOf(viewer.caller, id), page: 1, perPage: TARGETS_SHOWN };
    const { targets, total } = await table.page(viewer.caller, query);
    const canTest = viewer.mode === "live";
    return {
      ...{ title: status.list.name, section: "blocklists" },
      body: <ListPage {...{ status, targets, total, canTest }} />,
    };
  }),

  formAction({ path: "/blocklists/lists/:list/test", params }, async ({ viewer, params: { list: id }, request }) => {
    const limits = { timeoutMs: TEST_WAIT_MS, signal: request.signal };
    const tested = await waitFor(clock, statuses.test(viewer.caller, id), limits);
    const ok = tested.ok ? "Tested." : "The test takes longer. Load this page again in a minute.";
    return redirectTo(viewer, `/blocklists/lists/${id}`, { ok });
  }),
];
