import { type IconName, Icon } from "../components/icon.tsx";
import { ButtonLink, Link } from "../components/link.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { page } from "../page.ts";
import type { Access, Viewer } from "../visit.ts";
import { hasRole } from "../roles.ts";

interface Entry {
  readonly path: string;
  readonly title: string;
  readonly text: string;
  readonly icon: IconName;
  readonly access: Exclude<Access, "anyone">;
}

const ENTRIES: readonly Entry[] = [
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
    ...{ path: "/settings/notifications", title: "Notifications", icon: "bell", access: "member" },
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
    ...{ path: "/settings/sender", title: "Sending identity", icon: "mail-check", access: "operator" },
    text: "How mail hosts, resolvers and blocklists see this machine",
  },
  {
    ...{ path: "/settings/suppressions", title: "Suppression list", icon: "ban", access: "operator" },
    text: "Addresses and domains that must not be mailed",
  },
  {
    ...{ path: "/settings/service", title: "Service", icon: "server", access: "operator" },
    text: "Backups, queues, egress, disk, recent errors",
  },
];

const mayOpen = ({ user }: Viewer, { access }: Entry): boolean => hasRole(access, user);

/** The settings, with a sentence about each. */
export const createSettingsIndex = () => [
  page({ path: "/settings" }, ({ viewer }) => ({
    ...{ title: "Settings", section: "settings" },
    body: (
      <>
        <PageHead title="Settings" actions={<ButtonLink href="/welcome">First steps</ButtonLink>} />
        <Panel isFlush>
          <ul class="entries">
            {ENTRIES.filter((entry) => mayOpen(viewer, entry)).map(({ path, title, text, icon }) => (
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
