import type { ComponentChildren } from "preact";
import { usePage } from "../visit.ts";
import { splitHints } from "../../foundation/base/manual-hint.ts";
import arrowRightSvg from "lucide-static/icons/arrow-right.svg" with { type: "text" };
import banSvg from "lucide-static/icons/ban.svg" with { type: "text" };
import bellOffSvg from "lucide-static/icons/bell-off.svg" with { type: "text" };
import bellSvg from "lucide-static/icons/bell.svg" with { type: "text" };
import chartColumnSvg from "lucide-static/icons/chart-column.svg" with { type: "text" };
import checkSvg from "lucide-static/icons/check.svg" with { type: "text" };
import chevronRightSvg from "lucide-static/icons/chevron-right.svg" with { type: "text" };
import circleAlertSvg from "lucide-static/icons/circle-alert.svg" with { type: "text" };
import circleCheckSvg from "lucide-static/icons/circle-check.svg" with { type: "text" };
import circleHelpSvg from "lucide-static/icons/circle-help.svg" with { type: "text" };
import circleMinusSvg from "lucide-static/icons/circle-minus.svg" with { type: "text" };
import circleXSvg from "lucide-static/icons/circle-x.svg" with { type: "text" };
import circleSvg from "lucide-static/icons/circle.svg" with { type: "text" };
import clockSvg from "lucide-static/icons/clock.svg" with { type: "text" };
import copySvg from "lucide-static/icons/copy.svg" with { type: "text" };
import downloadSvg from "lucide-static/icons/download.svg" with { type: "text" };
import ellipsisSvg from "lucide-static/icons/ellipsis.svg" with { type: "text" };
import externalLinkSvg from "lucide-static/icons/external-link.svg" with { type: "text" };
import eyeSvg from "lucide-static/icons/eye.svg" with { type: "text" };
import fileTextSvg from "lucide-static/icons/file-text.svg" with { type: "text" };
import flaskConicalSvg from "lucide-static/icons/flask-conical.svg" with { type: "text" };
import houseSvg from "lucide-static/icons/house.svg" with { type: "text" };
import infoSvg from "lucide-static/icons/info.svg" with { type: "text" };
import keyRoundSvg from "lucide-static/icons/key-round.svg" with { type: "text" };
import listChecksSvg from "lucide-static/icons/list-checks.svg" with { type: "text" };
import listSvg from "lucide-static/icons/list.svg" with { type: "text" };
import logOutSvg from "lucide-static/icons/log-out.svg" with { type: "text" };
import mailCheckSvg from "lucide-static/icons/mail-check.svg" with { type: "text" };
import mailSvg from "lucide-static/icons/mail.svg" with { type: "text" };
import menuSvg from "lucide-static/icons/menu.svg" with { type: "text" };
import minusSvg from "lucide-static/icons/minus.svg" with { type: "text" };
import moonSvg from "lucide-static/icons/moon.svg" with { type: "text" };
import pauseSvg from "lucide-static/icons/pause.svg" with { type: "text" };
import pencilSvg from "lucide-static/icons/pencil.svg" with { type: "text" };
import playSvg from "lucide-static/icons/play.svg" with { type: "text" };
import plusSvg from "lucide-static/icons/plus.svg" with { type: "text" };
import printerSvg from "lucide-static/icons/printer.svg" with { type: "text" };
import refreshCwSvg from "lucide-static/icons/refresh-cw.svg" with { type: "text" };
import searchSvg from "lucide-static/icons/search.svg" with { type: "text" };
import serverSvg from "lucide-static/icons/server.svg" with { type: "text" };
import settingsSvg from "lucide-static/icons/settings.svg" with { type: "text" };
import shieldCheckSvg from "lucide-static/icons/shield-check.svg" with { type: "text" };
import shieldSvg from "lucide-static/icons/shield.svg" with { type: "text" };
import sunSvg from "lucide-static/icons/sun.svg" with { type: "text" };
import trash2Svg from "lucide-static/icons/trash-2.svg" with { type: "text" };
import triangleAlertSvg from "lucide-static/icons/triangle-alert.svg" with { type: "text" };
import uploadSvg from "lucide-static/icons/upload.svg" with { type: "text" };
import userSvg from "lucide-static/icons/user.svg" with { type: "text" };
import usersSvg from "lucide-static/icons/users.svg" with { type: "text" };
import webhookSvg from "lucide-static/icons/webhook.svg" with { type: "text" };
import xSvg from "lucide-static/icons/x.svg" with { type: "text" };

/** The drawing inside an icon's file: everything between its `svg` tags. */
const drawingOf = (file: string): string =>
  // input ≤ 10,000 characters
  /<svg[^>]*>([\s\S]*)<\/svg>/.exec(file)?.[1]?.replace(/\s*\n\s*/g, "") ?? "";

const FILES = {
  "arrow-right": arrowRightSvg,
  ban: banSvg,
  "bell-off": bellOffSvg,
  bell: bellSvg,
  "chart-column": chartColumnSvg,
  check: checkSvg,
  "chevron-right": chevronRightSvg,
  "circle-alert": circleAlertSvg,
  "circle-check": circleCheckSvg,
  "circle-help": circleHelpSvg,
  "circle-minus": circleMinusSvg,
  "circle-x": circleXSvg,
  circle: circleSvg,
  clock: clockSvg,
  copy: copySvg,
  download: downloadSvg,
  ellipsis: ellipsisSvg,
  "external-link": externalLinkSvg,
  eye: eyeSvg,
  "file-text": fileTextSvg,
  "flask-conical": flaskConicalSvg,
  house: houseSvg,
  info: infoSvg,
  "key-round": keyRoundSvg,
  "list-checks": listChecksSvg,
  list: listSvg,
  "log-out": logOutSvg,
  "mail-check": mailCheckSvg,
  mail: mailSvg,
  menu: menuSvg,
  minus: minusSvg,
  moon: moonSvg,
  pause: pauseSvg,
  pencil: pencilSvg,
  play: playSvg,
  plus: plusSvg,
  printer: printerSvg,
  "refresh-cw": refreshCwSvg,
  search: searchSvg,
  server: serverSvg,
  settings: settingsSvg,
  "shield-check": shieldCheckSvg,
  shield: shieldSvg,
  sun: sunSvg,
  "trash-2": trash2Svg,
  "triangle-alert": triangleAlertSvg,
  upload: uploadSvg,
  user: userSvg,
  users: usersSvg,
  webhook: webhookSvg,
  x: xSvg,
};

export type IconName = keyof typeof FILES;

const DRAWINGS: ReadonlyMap<string, string> = new Map(
  Object.entries(FILES).map(([name, file]) => [name, drawingOf(String(file))]),
);

/** An icon for people who see it; the word beside it says the same to those who do not. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg
    class="icon"
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="2"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
    // Our own file, never text from elsewhere.
    dangerouslySetInnerHTML={{ __html: DRAWINGS.get(name) ?? "" }}
  />
);

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

/** A text in which the sections of the manual that it names are links. */
export const HelpText = ({ text }: { readonly text: string }) => {
  const { hasManual } = usePage();
  return splitHints(text).map((piece, at) => {
    if (at % 2 === 0) return piece;
    return hasManual ? <a href={`/docs/${piece}`}>the manual</a> : <code>{`postwarden help ${piece}`}</code>;
  });
};

/** A link to a file: the browser stores it instead of opening it. */
export const DownloadLink = ({
  href,
  children,
  kind = "plain",
}: Pick<ButtonLinkProps, "href" | "children" | "kind">) => (
  <a href={usePage().href(href)} class={kind === "main" ? "button main" : "button"} download>
    <Icon name="download" />
    {children}
  </a>
);

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
