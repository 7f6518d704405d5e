import type { PageRoute } from "../page.ts";
import { alertPages } from "./alerts-page.tsx";
import { classActions } from "./class-actions.ts";
import { domainListPages } from "./domain-list.tsx";
import { domainPages } from "./domain-page.tsx";
import { settingsPages } from "./settings-page.tsx";
import { reporterActions } from "./reporter-actions.ts";
import { ruleActions } from "./source-rule-actions.ts";
import { sourcePages } from "./source-page.tsx";
import { sourcesPages } from "./sources-page.tsx";
import type { DmarcPageUseCases } from "./page-use-cases.ts";

/** The pages of monitored domains, their sources and alerts. */
export const createDomainPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  ...domainListPages(useCases),
  ...domainPages(useCases),
  ...sourcesPages(useCases),
  ...ruleActions(useCases),
  ...reporterActions(useCases),
  ...sourcePages(useCases),
  ...classActions(useCases),
  ...alertPages(useCases),
  ...settingsPages(useCases),
];
