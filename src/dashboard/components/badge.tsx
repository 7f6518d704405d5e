import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.tsx";

/** What something means: fine, needs a look, wrong, not known, or merely said. */
export type Kind = "ok" | "warn" | "bad" | "unknown" | "info";

export const KIND_ICONS: Readonly<Record<Kind, IconName>> = {
  ok: "check",
  warn: "triangle-alert",
  bad: "x",
  unknown: "circle-help",
  info: "info",
};

/** A word with its meaning as an icon and a colour. `icon` replaces the icon of the kind. */
export const Badge = ({
  kind,
  icon = KIND_ICONS[kind],
  children,
}: {
  readonly kind: Kind;
  readonly icon?: IconName;
  readonly children: ComponentChildren;
}) => (
  <span class={`badge ${kind}`}>
    <Icon name={icon} />
    {children}
  </span>
);
