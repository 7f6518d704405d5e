import type { Doctor } from "../../doctor/doctor.ts";
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
import { createSenderPages } from "./sender.tsx";
import { createServicePages, type ServiceUseCases } from "./service.tsx";
import { createSuppressionPages, type SuppressionUseCases } from "./suppressions.tsx";
import { ButtonLink, Link, type IconName, Icon } from "../components/inline.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import type { Access, Viewer } from "../visit.ts";
import { hasRole } from "../roles.ts";

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

interface SettingsEntry {
  readonly path: string;
  readonly title: string;
  readonly text: string;
  readonly icon: IconName;
  readonly access: Exclude<Access, "anyone">;
}

const SETTINGS_ENTRIES: readonly SettingsEntry[] = [
  {
    path: "/settings/profile",
    title: "Profile",
    text: "Password, second factor, sessions, time zone",
    icon: "user",
    access: "member",
  },
  {
    path: "/settings/account",
    title: "Account",
    text: "Name, plan, credits, limits",
    icon: "file-text",
    access: "member",
  },
  {
    path: "/settings/notifications",
    title: "Notifications",
    icon: "bell",
    access: "member",
    text: "Default webhook, recipients of alert mail, digests",
  },
  { path: "/settings/users", title: "Users", text: "Who can sign in, and as what", icon: "users", access: "owner" },
  {
    path: "/settings/keys",
    title: "API keys",
    text: "Create, rotate and revoke keys",
    icon: "key-round",
    access: "owner",
  },
  { path: "/settings/audit", title: "Audit log", text: "Who changed what", icon: "list-checks", access: "owner" },
  {
    path: "/settings/sender",
    title: "Sending identity",
    icon: "mail-check",
    access: "operator",
    text: "How mail hosts, resolvers and blocklists see this machine",
  },
  {
    path: "/settings/suppressions",
    title: "Suppression list",
    icon: "ban",
    access: "operator",
    text: "Addresses and domains that must not be mailed",
  },
  {
    path: "/settings/service",
    title: "Service",
    icon: "server",
    access: "operator",
    text: "Backups, queues, egress, disk, recent errors",
  },
];

const mayOpen = ({ user }: Viewer, { access }: SettingsEntry): boolean => hasRole(access, user);

/** The settings, with a sentence about each. */
const createSettingsIndex = () => [
  page({ path: "/settings" }, ({ viewer }) => ({
    title: "Settings",
    section: "settings",
    body: (
      <>
        <PageHead title="Settings" actions={<ButtonLink href="/welcome">First steps</ButtonLink>} />
        <Panel isFlush>
          <ul class="entries">
            {SETTINGS_ENTRIES.filter((entry) => mayOpen(viewer, entry)).map(({ path, title, text, icon }) => (
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
    ),
  })),
];
