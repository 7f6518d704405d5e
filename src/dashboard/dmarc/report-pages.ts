import type { PageRoute } from "../page.ts";
import { advicePages } from "./advice-page.tsx";
import { enrolPages } from "./enrol-page.tsx";
import { failurePages } from "./failures-page.tsx";
import { healthPages } from "./health-page.tsx";
import { intakePages } from "./intake-page.tsx";
import { recordPages } from "./record-page.tsx";
import { reportPages } from "./report-page.tsx";
import { reportsPages } from "./reports-page.tsx";
import { tlsPages } from "./tls-page.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";

/** Enrolment, and the pages of a domain about its record, advice, health and reports. */
export const createDmarcReportPages = (useCases: DmarcReportUseCases): readonly PageRoute[] => [
  ...enrolPages(useCases),
  ...intakePages(useCases),
  ...recordPages(useCases),
  ...advicePages(useCases),
  ...healthPages(useCases),
  ...reportsPages(useCases),
  ...reportPages(useCases),
  ...tlsPages(useCases),
  ...failurePages(useCases),
];
