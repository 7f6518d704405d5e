import type { ComponentChildren } from "preact";
import { Link, withParameters } from "../components/inline.tsx";
import { PageHead } from "../components/panel.tsx";
import { z } from "zod";
import { usePage } from "../visit.ts";

/** The pages of a domain. */
const TABS = [
  ["overview", "Overview", ""],
  ["sources", "Sources", "/sources"],
  ["record", "Record", "/record"],
  ["advice", "Advice", "/advice"],
  ["health", "Health", "/health"],
  ["reports", "Reports", "/reports"],
  ["alerts", "Alerts", "/alerts"],
  ["settings", "Settings", "/settings"],
] as const;
/** Shown behind a button, so that all fit on one line. */
const MORE_TABS = [
  ["month", "Monthly report", "/month"],
  ["tls", "TLS reports", "/tls"],
  ["failures", "Failure reports", "/failures"],
] as const;

interface DomainHeadProps {
  readonly domain: { readonly id: string; readonly domain: string };
  readonly current: (typeof TABS | typeof MORE_TABS)[number][0];
  /** What the page is about, in a word or two: the title is "Record of example.com". */
  readonly title: string;
  /** Pages between those of the domain and this one. */
  readonly more?: ReadonlyArray<readonly [text: string, path: string]>;
  readonly meta?: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** The head of a page about a domain, with links to its other pages. */
export const DomainHead = ({ domain, current, title, more = [], meta, actions }: DomainHeadProps) => {
  const { mayOpen } = usePage();
  const tabs = TABS.filter(([, , path]) => mayOpen(`/dmarc/${domain.id}${path}`));
  return (
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
        {[...tabs, ...MORE_TABS.filter(([tab]) => tab === current)].map(([tab, text, path]) => (
          <Link key={tab} href={`/dmarc/${domain.id}${path}`} isCurrent={tab === current}>
            {text}
          </Link>
        ))}
        <details class="editor">
          <summary>More</summary>
          <div>
            {MORE_TABS.filter(([tab]) => tab !== current).map(([tab, text, path]) => (
              <Link key={tab} href={`/dmarc/${domain.id}${path}`}>
                {text}
              </Link>
            ))}
          </div>
        </details>
      </nav>
    </>
  );
};

const RANGES = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
  ["365", "1 year"],
] as const;
const DEFAULT_DAYS = "30";

/** The range of a page in its URL: the last days up to today. */
export const rangeParameter = z
  .enum(["7", "30", "90", "365"])
  .default(DEFAULT_DAYS)
  .transform((days) => Number(days));

/** Chooses the range of a page. */
export const RangeLinks = ({ days }: { readonly days: number }) => {
  const { url } = usePage();
  return (
    <nav class="segments" aria-label="Range">
      {RANGES.map(([value, text]) => (
        <a
          key={value}
          href={withParameters(url, { days: value === DEFAULT_DAYS ? null : value, cursor: null })}
          aria-current={Number(value) === days ? "page" : undefined}
        >
          {text}
        </a>
      ))}
    </nav>
  );
};
