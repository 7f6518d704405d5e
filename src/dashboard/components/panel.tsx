import type { ComponentChildren } from "preact";
import { type Kind, Badge } from "./badge.tsx";
import { Link } from "./link.tsx";

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
  /** Where the figure is explained. */
  readonly href?: string;
}

/** A figure with its name and what it means. */
export const Stat = ({ label, value, note, href }: StatProps) => (
  <div class="stat">
    <p class="stat-label">{href === undefined ? label : <Link href={href}>{label}</Link>}</p>
    <p class="stat-value">{value}</p>
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
