import type { Doctor } from "../../doctor/doctor.ts";
import type { PageRoute } from "../page.ts";
import { type AccountUseCases, createAccountPages } from "./account.tsx";
import { type AuditUseCases, createAuditPages } from "./audit.tsx";
import { createSettingsIndex } from "./index-page.tsx";
import { createKeyPages, type KeyUseCases } from "./keys.tsx";
import { createMailOffPages, type MailOffUseCases } from "./mail-off.tsx";
import { createNotificationPages, type NotificationUseCases } from "./notifications.tsx";
import { createSenderPages } from "./sender.tsx";
import { createServicePages, type ServiceUseCases } from "./service.tsx";
import { createSuppressionPages, type SuppressionUseCases } from "./suppressions.tsx";

export interface SettingsUseCases
  extends
    KeyUseCases,
    NotificationUseCases,
    SuppressionUseCases,
    ServiceUseCases,
    AccountUseCases,
    AuditUseCases,
    MailOffUseCases {
  readonly doctor: Doctor;
}

/** The settings, and the pages behind the links that stop mail. */
export const createSettingsPages = (useCases: SettingsUseCases): readonly PageRoute[] => [
  ...createSettingsIndex(),
  ...createKeyPages(useCases),
  ...createNotificationPages(useCases),
  ...createSuppressionPages(useCases),
  ...createSenderPages(useCases),
  ...createServicePages(useCases),
  ...createAccountPages(useCases),
  ...createAuditPages(useCases),
  ...createMailOffPages(useCases),
];
