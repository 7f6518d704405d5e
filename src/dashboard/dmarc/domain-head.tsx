import type { ComponentChildren } from "preact";
import { Link } from "../components/link.tsx";
import { PageHead } from "../components/panel.tsx";

/** The pages of a domain. */
const TABS = [
  ["overview", "Overview", ""],
  ["sources", "Sources", "/sources"],
  ["record", "Record", "/record"],
  ["advice", "Advice", "/advice"],
  ["health", "Health", "/health"],
  ["reports", "Reports", "/reports"],
  ["tls", "TLS reports", "/tls"],
  ["failures", "Failure reports", "/failures"],
  ["alerts", "Alerts", "/alerts"],
  ["settings", "Settings", "/settings"],
] as const;

interface DomainHeadProps {
  readonly domain: { readonly id: string; readonly domain: string };
  readonly current: (typeof TABS)[number][0];
  /** What the page is about, in a word or two: the title is "Record of example.com". */
  readonly title: string;
  /** Pages between those of the domain and this one. */
  readonly more?: ReadonlyArray<readonly [text: string, path: string]>;
  readonly meta?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** The head of a page about a domain, with links to its other pages. */
export const DomainHead = ({ domain, current, title, more = [], meta, actions }: DomainHeadProps) => (
  <>
    <PageHead
      title={title}
      crumbs={[
        ["DMARC", "/dmarc"],
        ...(current === "overview" ? [] : [[domain.domain, `/dmarc/${domain.id}`] as const]),
        ...more,
      ]}
      {...(meta === undefined ? {} : { meta })}
      {...(actions === undefined ? {} : { actions })}
    />
    <nav class="tabs" aria-label={`Pages about ${domain.domain}`}>
      {TABS.map(([tab, text, path]) => (
        <Link key={tab} href={`/dmarc/${domain.id}${path}`} isCurrent={tab === current}>
          {text}
        </Link>
      ))}
    </nav>
  </>
);
