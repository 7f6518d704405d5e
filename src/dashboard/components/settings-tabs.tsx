import type { Viewer } from "../visit.ts";
import { Link } from "./link.tsx";

const TABS = [
  { path: "/settings", title: "All settings", access: "member" },
  { path: "/settings/profile", title: "Profile", access: "member" },
  { path: "/settings/users", title: "Users", access: "owner" },
] as const;

const mayOpen = ({ user }: Viewer, { access }: (typeof TABS)[number]): boolean =>
  access === "member" || user.role === access;

/** The pages of the settings that the viewer may open. */
export const SettingsTabs = ({
  viewer,
  current,
}: {
  readonly viewer: Viewer;
  readonly current: (typeof TABS)[number]["path"];
}) => (
  <nav class="tabs" aria-label="Settings">
    {TABS.filter((tab) => mayOpen(viewer, tab)).map(({ path, title }) => (
      <Link key={path} href={path} isCurrent={path === current}>
        {title}
      </Link>
    ))}
  </nav>
);
