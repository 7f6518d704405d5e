import { type PageRoute, page } from "../page.ts";
import { type AccountUseCases, createAccountPages } from "./account.tsx";
import { type AuditUseCases, createAuditPages } from "./audit.tsx";
import { createKeyPages, type KeyUseCases } from "./keys.tsx";
import {
  createMailOffPages,
  type MailOffUseCases,
  createNotificationPages,
  type NotificationUseCases,
} from "./notifications.tsx";
import { createPersonalDataPages, type PersonalDataUseCases } from "./personal-data.tsx";
import { createSenderPages, type SenderUseCases } from "./sender.tsx";
import { createServicePages, type ServiceUseCases } from "./service.tsx";
import { createSuppressionPages, type SuppressionUseCases } from "./suppressions.tsx";
import { Icon } from "../components/icon.tsx";
import { ButtonLink, Link } from "../components/inline.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { useSettings } from "../components/settings-nav.tsx";

export interface SettingsUseCases
  extends
    KeyUseCases,
    NotificationUseCases,
    SuppressionUseCases,
    ServiceUseCases,
    AccountUseCases,
    AuditUseCases,
    PersonalDataUseCases,
    SenderUseCases,
    MailOffUseCases {}

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
  ...createPersonalDataPages(useCases),
  ...createMailOffPages(useCases),
];

/** The settings, with a sentence about each. */
const createSettingsIndex = () => [
  page({ path: "/settings" }, () => ({ title: "Settings", section: "settings", body: <SettingsIndex /> })),
];

const SettingsIndex = () => (
  <>
    <PageHead title="Settings" actions={<ButtonLink href="/welcome">First steps</ButtonLink>} />
    <Panel isFlush>
      <ul class="entries">
        {useSettings().map(({ path, title, text, icon }) => (
          <li key={path}>
            <Icon name={icon} />
            <div>
              <Link href={path}>{title}</Link>
              <p class="soft">{text}</p>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  </>
);
