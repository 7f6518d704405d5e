import type { ComponentChildren } from "preact";
import { Icon } from "./icon.tsx";
import { Link, type Kind, Badge } from "./inline.tsx";
import { usePage } from "../visit.ts";

interface PageHeadProps {
  readonly title: ComponentChildren;
  /** The title is an address, a domain or the like. */
  readonly isMono?: boolean;
  readonly crumbs?: ReadonlyArray<readonly [text: ComponentChildren, path: string]>;
  /** A line of facts below the title. */
  readonly meta?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** The head of a page: where it is, its title, what can be done. */
export const PageHead = ({ title, isMono = false, crumbs = [], meta, actions }: PageHeadProps) => (
  <div class="page-head">
    <div class="page-title">
      {crumbs.length > 0 && (
        <nav class="crumbs" aria-label="Breadcrumb">
          {crumbs.map(([text, path]) => (
            <Link key={path} href={path}>
              {text}
            </Link>
          ))}
        </nav>
      )}
      <h1 class={isMono ? "mono" : undefined}>{title}</h1>
      {meta !== undefined && <div class="meta">{meta}</div>}
    </div>
    {actions !== undefined && <div class="actions">{actions}</div>}
  </div>
);

interface PanelProps {
  readonly title?: ComponentChildren;
  /** At the right of the title. */
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  /** Without padding: for tables and rows, which have their own. */
  readonly isFlush?: boolean;
  readonly id?: string;
}

/** A box with a title. */
export const Panel = ({ title, aside, children, isFlush = false, id }: PanelProps) => (
  <section class="panel" id={id}>
    {title !== undefined && (
      <div class="panel-head">
        <h2>{title}</h2>
        {aside !== undefined && <div class="aside">{aside}</div>}
      </div>
    )}
    {isFlush ? children : <div class="panel-body">{children}</div>}
  </section>
);

/** A main column and a side column; one below the other on phones. */
export const Columns = ({
  children,
  side,
}: {
  readonly children: ComponentChildren;
  readonly side: ComponentChildren;
}) => (
  <div class="columns">
    <div class="stack">{children}</div>
    <div class="stack">{side}</div>
  </div>
);

/** Facts, one below the other. */
export const Rows = ({ children }: { readonly children: ComponentChildren }) => <dl class="rows">{children}</dl>;

/** A fact: what it is at the left, its value at the right. */
export const Row = ({
  label,
  children,
}: {
  readonly label: ComponentChildren;
  readonly children: ComponentChildren;
}) => (
  <div>
    <dt>{label}</dt>
    <dd>{children}</dd>
  </div>
);

interface CalloutProps {
  readonly kind: Kind;
  /** The word of the badge; without it there is none. */
  readonly label?: string;
  readonly title: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** The conclusion of a page: in one sentence, with what it rests on and what can be done. */
export const Callout = ({ kind, label, title, aside, children, actions }: CalloutProps) => (
  <section class={`panel callout ${kind}`}>
    <div class="callout-head">
      {label !== undefined && <Badge kind={kind}>{label}</Badge>}
      <h2>{title}</h2>
      {aside !== undefined && <div class="aside">{aside}</div>}
    </div>
    {children !== undefined && <div class="callout-body">{children}</div>}
    {actions !== undefined && <div class="actions">{actions}</div>}
  </section>
);

interface StatProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  /** How it differs from the figure before; absent or null where there is none. */
  readonly trend?: { readonly kind: "ok" | "warn" | "unknown"; readonly text: string } | null;
  /** Where the figure is explained. */
  readonly href?: string;
}

/** A figure with its name and what it means. */
export const Stat = ({ label, value, note, trend, href }: StatProps) => (
  <div class="stat">
    <p class="stat-label">{href === undefined ? label : <Link href={href}>{label}</Link>}</p>
    <p class="stat-value">{value}</p>
    {trend != null && <p class={`stat-trend ${trend.kind}`}>{trend.text}</p>}
    {note !== undefined && <p class="stat-note">{note}</p>}
  </div>
);

export const Stats = ({ children }: { readonly children: ComponentChildren }) => <div class="stats">{children}</div>;

interface EmptyProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly action?: ComponentChildren;
  /** The panel is the whole page, so its title is the page's. */
  readonly isPage?: boolean;
}

/** Says what will be here, and how to begin. */
export const Empty = ({ title, children, action, isPage = false }: EmptyProps) => (
  <div class="empty">
    {isPage ? <h1>{title}</h1> : <h2>{title}</h2>}
    {children}
    {action !== undefined && <div class="actions">{action}</div>}
  </div>
);

interface LiveProps {
  /** Unique on the page. */
  readonly id: string;
  /** Seconds between two refreshes. */
  readonly everyS: number;
  /** Whether anything can still change. */
  readonly isOn: boolean;
  /** The ids of other parts of the page that are refreshed with it. */
  readonly also?: readonly string[];
  readonly children: ComponentChildren;
}

/** A part of a page that refreshes in place while something changes, where scripts run. It can be paused. */
export const Live = ({ id, everyS, isOn, also = [], children }: LiveProps) => {
  const { url } = usePage();
  if (!isOn)
    return (
      <div id={id} class="stack">
        {children}
      </div>
    );
  const refresh = {
    "hx-get": url,
    "hx-trigger": `every ${everyS}s`,
    "hx-select": `#${id}`,
    "hx-target": "this",
    "hx-swap": "outerMorph",
    ...(also.length === 0 ? {} : { "hx-select-oob": also.map((other) => `#${other}:outerMorph`).join(",") }),
  };
  return (
    <div id={id} class="stack" data-live {...refresh}>
      {children}
      <p class="live soft small">
        <noscript>Load the page again to see what has changed.</noscript>
        <button type="button" class="button quiet small" data-pause hidden>
          <Icon name="pause" /> <span>Pause updates</span>
        </button>
      </p>
    </div>
  );
};
