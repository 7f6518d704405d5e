import { AppError } from "../../foundation/base/errors.ts";
import { formAction, type PageRoute } from "../page.ts";
import type { Viewer } from "../visit.ts";
import { redirectTo } from "../redirect.ts";
import type { ListUseCases } from "./list-use-cases.ts";
import { listParams } from "./list-views.tsx";

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
export const createListActions = ({ bulk }: ListUseCases): PageRoute[] => [
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
