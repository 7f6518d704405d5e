import type { BlocklistUseCases } from "./use-cases.ts";
import { listPages } from "./list-pages.tsx";
import { newTargetPages } from "./new-pages.tsx";
import { targetPages } from "./target-pages.tsx";
import { tablePages } from "./table-pages.tsx";

/** The pages about blocklists: targets, new targets, one target, the lists. */
export const createBlocklistPages = (useCases: BlocklistUseCases) => [
  ...tablePages(useCases),
  ...newTargetPages(useCases),
  ...listPages(useCases),
  ...targetPages(useCases),
];
