import type { Clock } from "../../foundation/base/clock.ts";
import type { PageRoute } from "../page.ts";
import { createDraftPages } from "./draft-pages.tsx";
import { createListActions } from "./list-actions.ts";
import type { ListUseCases } from "./list-use-cases.ts";
import { createListViews } from "./list-views.tsx";
import { createListsPages } from "./lists-view.tsx";

/** The pages of lists: all of them, a new one, one list with its rows. */
export const createListPages = (useCases: ListUseCases, clock: Clock): PageRoute[] => [
  ...createListsPages(useCases),
  ...createDraftPages(useCases, clock),
  ...createListViews(useCases),
  ...createListActions(useCases),
];
