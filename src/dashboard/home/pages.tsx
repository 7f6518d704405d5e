import type { AttentionItem } from "../../base/attention.ts";
import { Badge } from "../components/badge.tsx";
import { ButtonLink } from "../components/link.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import { usePage } from "../context.ts";
import { page, type Viewer } from "../page.ts";

export interface HomeUseCases {
  /** What needs somebody, worst first. */
  readonly attention: (viewer: Viewer) => readonly AttentionItem[];
}

/** The home page. */
export const createHomePages = ({ attention }: HomeUseCases) => [
  page({ path: "/" }, ({ viewer }) => {
    const items = attention(viewer);
    return {
      ...{ title: "Home", section: "home" },
      body: (
        <>
          <Greeting count={items.length} />
          <NeedsAttention items={items} />
        </>
      ),
    };
  }),
];

const NUMBERS = ["Nothing needs", "One thing needs", "Two things need", "Three things need", "Four things need"];

const greetingAt = (hour: number): string => {
  if (hour < 5 || hour >= 18) return "Good evening";
  return hour < 12 ? "Good morning" : "Good afternoon";
};

const Greeting = ({ count }: { readonly count: number }) => {
  const { nowMs, timeZone } = usePage();
  const hour = Number(new Intl.DateTimeFormat("en-GB", { hour: "2-digit", hour12: false, timeZone }).format(nowMs));
  const needs = NUMBERS[count] ?? `${count} things need`;
  return (
    <PageHead title={greetingAt(hour)} meta={`${needs} you.${count === 0 ? "" : " Everything else is in order."}`} />
  );
};

const NeedsAttention = ({ items }: { readonly items: readonly AttentionItem[] }) => {
  const { nowMs } = usePage();
  return (
    <Panel
      title="Needs attention"
      aside={
        <>
          as of <Time atMs={nowMs} style="clock" />
        </>
      }
      isFlush
    >
      {items.length === 0 && (
        <div class="panel-body">
          <p>
            <Badge kind="ok">All clear</Badge> No target is listed, no record has changed, every list is on its way.
          </p>
        </div>
      )}
      <ul class="items">
        {items.map((item) => (
          <li key={`${item.action.path} ${item.title}`}>
            <span>
              <Badge kind={item.severity}>{item.label}</Badge>
            </span>
            <div class="prose">
              <h3>{item.title}</h3>
              <p class="soft">
                {item.sinceMs !== null && (
                  <>
                    Since <Time atMs={item.sinceMs} style="full" />.{" "}
                  </>
                )}
                {item.detail}
              </p>
            </div>
            <ButtonLink href={item.action.path}>{item.action.text}</ButtonLink>
          </li>
        ))}
      </ul>
    </Panel>
  );
};
