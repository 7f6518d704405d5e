import type { PageRoute } from "../page.ts";
import { alertPages } from "./alerts-page.tsx";
import { bulkSenderPages } from "./bulk-sender.tsx";
import { monthPages } from "./month-pages.tsx";
import { classActions } from "./source-classes.tsx";
import { domainListPages } from "./domain-list.tsx";
import { domainPages } from "./domain-page.tsx";
import { settingsPages } from "./settings-page.tsx";
import { ownHostPages } from "./own-hosts-page.tsx";
import { recordChangePages } from "./record-changes.tsx";
import { reporterActions } from "./reporters.tsx";
import { ruleActions, sourcesPages } from "./sources-page.tsx";
import { sourcePages } from "./source-page.tsx";
import type { DmarcPageUseCases, DmarcReportUseCases } from "./use-cases.ts";
import { advicePages } from "./advice-page.tsx";
import { enrolPages } from "./enrol-page.tsx";
import { failurePages } from "./failures-page.tsx";
import { healthPages } from "./health-page.tsx";
import { intakePages } from "./intake-page.tsx";
import { mtaStsActions } from "./mta-sts.tsx";
import { recordPages } from "./record-page.tsx";
import { reportPages } from "./report-page.tsx";
import { reportsPages } from "./reports-page.tsx";
import { tagPages } from "./tag-page.tsx";
import { tlsPages } from "./tls-page.tsx";

/** The pages of monitored domains, their sources and alerts. */
export const createDomainPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  ...domainListPages(useCases),
  ...tagPages(useCases),
  ...domainPages(useCases),
  ...sourcesPages(useCases),
  ...ownHostPages(useCases),
  ...recordChangePages(useCases),
  ...ruleActions(useCases),
  ...reporterActions(useCases),
  ...sourcePages(useCases),
  ...classActions(useCases),
  ...bulkSenderPages(useCases),
  ...monthPages(useCases),
  ...alertPages(useCases),
  ...settingsPages(useCases),
];

/** Enrolment, and the pages of a domain about its record, advice, health and reports. */
export const createDmarcReportPages = (useCases: DmarcReportUseCases): readonly PageRoute[] => [
  ...enrolPages(useCases),
  ...intakePages(useCases),
  ...recordPages(useCases),
  ...mtaStsActions(useCases),
  ...advicePages(useCases),
  ...healthPages(useCases),
  ...reportsPages(useCases),
  ...reportPages(useCases),
  ...tlsPages(useCases),
  ...failurePages(useCases),
];
