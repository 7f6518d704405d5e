import type { ComponentChildren } from "preact";
import { usePage } from "../visit.ts";
import type { IconName } from "./icon.tsx";
import { Link } from "./inline.tsx";

/** A page of the settings. The table of roles says who may open it. */
export interface SettingsEntry {
  readonly path: string;
  readonly title: string;
  readonly text: string;
  readonly icon: IconName;
}

interface SettingsGroup {
  readonly title: string;
  readonly entries: readonly SettingsEntry[];
}

const YOU: readonly SettingsEntry[] = [
  {
    path: "/settings/profile",
    title: "Profile",
    text: "Password, second factor, sessions, time zone",
    icon: "user",
  },
];

const ACCOUNT: readonly SettingsEntry[] = [
  { path: "/settings/account", title: "Account", text: "Name, plan, credits, limits", icon: "file-text" },
  {
    path: "/settings/notifications",
    title: "Notifications",
    text: "Default webhook, recipients of alert mail, digests, test mail",
    icon: "bell",
  },
  { path: "/settings/users", title: "Users", text: "Who can sign in, and as what", icon: "users" },
  { path: "/settings/keys", title: "API keys", text: "Create, rotate and revoke keys", icon: "key-round" },
  { path: "/settings/audit", title: "Audit log", text: "Who changed what", icon: "list-checks" },
  {
    path: "/settings/personal-data",
    title: "Personal data",
    text: "Find, export and erase what is stored about a person; export the account",
    icon: "shield",
  },
];

const SERVICE: readonly SettingsEntry[] = [
  {
    path: "/settings/sender",
    title: "Sending identity",
    text: "How mail hosts, resolvers and blocklists see this machine",
    icon: "mail-check",
  },
  {
    path: "/settings/suppressions",
    title: "Suppression list",
    text: "Addresses and domains that must not be mailed",
    icon: "ban",
  },
  {
    path: "/settings/service",
    title: "Service",
    text: "Backups, queues, egress, disk, recent errors",
    icon: "server",
  },
];

const GROUPS: readonly SettingsGroup[] = [
  { title: "You", entries: YOU },
  { title: "Account", entries: ACCOUNT },
  { title: "This service", entries: SERVICE },
];

/** The groups of pages that the visitor may open. */
const useGroups = (): readonly SettingsGroup[] => {
  const { mayOpen } = usePage();
  return GROUPS.map(({ title, entries }) => ({
    title,
    entries: entries.filter(({ path }) => mayOpen(path)),
  })).filter(({ entries }) => entries.length > 0);
};

/** Every page of the settings that the visitor may open. */
export const useSettings = (): readonly SettingsEntry[] => useGroups().flatMap(({ entries }) => entries);

/** A page of the settings beside the list of all; without one on the overview, which is that list, and for one page alone. */
export const WithSettingsNav = ({ children }: { readonly children: ComponentChildren }) => {
  const { url, href } = usePage();
  const groups = useGroups();
  const [path = ""] = url.split(/[?#]/, 1);
  if (path === href("/settings") || groups.length < 2) return children;
  const isAt = (entry: string): boolean => path === href(entry) || path.startsWith(`${href(entry)}/`);
  return (
    <div class="with-settings">
      <nav class="settings-nav" aria-label="Settings">
        {groups.map(({ title, entries }) => (
          <div key={title}>
            <p>{title}</p>
            <ul>
              {entries.map((entry) => (
                <li key={entry.path}>
                  <Link href={entry.path} isCurrent={isAt(entry.path)}>
                    {entry.title}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
      <div class="stack">{children}</div>
    </div>
  );
};
