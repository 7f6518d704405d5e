import type { ComponentChildren } from "preact";
import { usePage } from "../visit.ts";
import { Day } from "./figures.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { splitHints } from "../../foundation/base/manual-hint.ts";
interface LinkProps {
  /** A path of the dashboard without the prefix of test mode. */
  readonly href: string;
  readonly children: ComponentChildren;
  readonly class?: string;
  readonly isCurrent?: boolean;
  readonly title?: string;
}

/** A link to a page, in the mode of this one; only its text for a role that may not open the page. */
export const Link = ({ href, children, class: name, isCurrent = false, title }: LinkProps) => {
  const page = usePage();
  if (!page.mayOpen(href)) return <span class={name}>{children}</span>;
  return (
    <a href={page.href(href)} class={name} title={title} aria-current={isCurrent ? "page" : undefined}>
      {children}
    </a>
  );
};

/** A link to another site. It opens in a new tab, and the site learns nothing about this one. */
export const OutsideLink = ({ href, children, class: name }: Pick<LinkProps, "href" | "children" | "class">) =>
  /^(https?|mailto):/i.test(href) ? (
    <a href={href} class={name} target="_blank" rel="noopener noreferrer nofollow">
      {children} <Icon name="external-link" />
    </a>
  ) : (
    <span class={name}>{children}</span>
  );

/** A day by itself, not the beginning of a time. */
const ISO_DAY = /(?<![\w-])(20\d\d-[01]\d-[0-3]\d)(?![\w-])/;

/** A text of a use case in which the days stand as everywhere on pages, and the sections of the manual that it names are links. */
export const HelpText = ({ text }: { readonly text: string }) => {
  const { hasManual } = usePage();
  return splitHints(text).map((piece, at) => {
    if (at % 2 === 0) return piece.split(ISO_DAY).map((part, n) => (n % 2 === 0 ? part : <Day day={part} />));
    return hasManual ? <a href={`/docs/${piece}`}>the manual</a> : <code>{`postwarden help ${piece}`}</code>;
  });
};

/** A link to a file, which the browser stores instead of opening it; nothing for a role that may not have the file. */
export const DownloadLink = ({
  href,
  children,
  kind = "plain",
}: Pick<ButtonLinkProps, "href" | "children" | "kind">) => {
  const page = usePage();
  if (!page.mayOpen(href)) return null;
  return (
    <a href={page.href(href)} class={kind === "main" ? "button main" : "button"} download>
      <Icon name="download" />
      {children}
    </a>
  );
};

export interface ButtonLinkProps extends LinkProps {
  /** `main` for the one thing that the page is for. */
  readonly kind?: "main" | "plain";
  readonly icon?: IconName;
}

/** A link that looks like a button; nothing for a role that may not open the page. */
export const ButtonLink = ({ kind = "plain", icon, href, children, title }: ButtonLinkProps) => {
  const page = usePage();
  if (!page.mayOpen(href)) return null;
  return (
    <a href={page.href(href)} class={kind === "main" ? "button main" : "button"} title={title}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </a>
  );
};

/** What belongs to the `cursor` of a page of a table: where the page begins, and the pages before it. */
const OF_CURSOR = ["first", "trail"];

/** The parameters of a page's URL, for links that change one of them. Without its cursor it is the first page of a table. */
export const withParameters = (url: string, changes: Readonly<Record<string, string | null>>): string => {
  const [path = "/", query = ""] = url.split("?");
  const parameters = new URLSearchParams(query);
  if (changes.cursor === null) for (const name of OF_CURSOR) parameters.delete(name);
  for (const [name, value] of Object.entries(changes))
    if (value === null) parameters.delete(name);
    else parameters.set(name, value);
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
};

/** The query of a page's URL on another path: the same filters for its export. The cursor belongs to the page only. */
export const withPath = (url: string, path: string): string => {
  const [, query = ""] = url.split("?");
  return withParameters(query === "" ? path : `${path}?${query}`, { cursor: null });
};

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
