import type { ComponentChildren } from "preact";

interface EmptyProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly action?: ComponentChildren;
  /** It is the whole page, so its title is the page's. */
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
