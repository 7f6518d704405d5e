import { DAY_MS } from "../../foundation/base/days.ts";
import { LIST_STATES, type ListSpan, type ListTimeline, TIMELINE_DAYS } from "../../blocklist/target-history.ts";
import { countText, durationText, Time } from "../components/figures.tsx";
import { Icon, type IconName } from "../components/icon.tsx";
import { Badge, Link } from "../components/inline.tsx";
import { Panel } from "../components/panel.tsx";
import { usePage } from "../visit.ts";

/** Widths of the drawing: four for each day. */
const SLOTS = TIMELINE_DAYS * 4;
const SLOT_MS = DAY_MS / 4;
const HEIGHT = 16;
/** Spans that are named in words for each list: more are drawn only. */
const SPANS_NAMED_MAX = 12;

const NOW_WORDS: Readonly<Record<ListTimeline["now"], string>> = {
  listed: "listed",
  unknown: "unknown",
  clean: "not listed",
  none: "not queried",
};

/** The states of 90 days on each list that had a listing, drawn and in words; a square for each other list, whose days are folded away. */
export const TimelinePanel = ({ timelines }: { readonly timelines: readonly ListTimeline[] }) => {
  const count = (now: ListTimeline["now"]) => timelines.filter((timeline) => timeline.now === now).length;
  const aside = LIST_STATES.filter((state) => count(state) > 0)
    .map((state) => `${count(state)} ${NOW_WORDS[state]}`)
    .join(" · ");
  const [eventful = [], quiet = []] = [true, false].map((has) => timelines.filter((one) => hasListing(one) === has));
  return (
    <Panel title={`${TIMELINE_DAYS} days`} aside={`${countText(timelines.length, "list")} · ${aside}`} isFlush>
      <Stripes />
      {eventful.length > 0 && <TimelineRows timelines={eventful} />}
      {quiet.length > 0 && <QuietLists timelines={quiet} />}
      {eventful.length > 0 && <Legend />}
    </Panel>
  );
};

const hasListing = ({ spans, isMuted }: ListTimeline): boolean =>
  isMuted || spans.some(({ state }) => state === "listed");

const SQUARE_ICONS: Readonly<Record<ListTimeline["now"], IconName>> = {
  listed: "x",
  unknown: "circle-help",
  clean: "check",
  none: "minus",
};

/** Lists without a listing in one line of squares: those that are unknown now come first. */
const QuietLists = ({ timelines }: { readonly timelines: readonly ListTimeline[] }) => (
  <div class="quiet-lists">
    <p>
      {countText(timelines.length, "list")} without a listing in {TIMELINE_DAYS} days
    </p>
    <ul class="squares">
      {timelines.map(({ list, name, now }) => (
        <li key={list}>
          <Link href={`/blocklists/lists/${list}`} class={`square ${now}`} title={`${name}: ${NOW_WORDS[now]}`}>
            <Icon name={SQUARE_ICONS[now]} />
            <span class="unseen">
              {name}: {NOW_WORDS[now]}
            </span>
          </Link>
        </li>
      ))}
    </ul>
    <details>
      <summary>Their {TIMELINE_DAYS} days</summary>
      <TimelineRows timelines={timelines} />
      <Legend />
    </details>
  </div>
);

const TimelineRows = ({ timelines }: { readonly timelines: readonly ListTimeline[] }) => (
  <ul class="timelines">
    {timelines.map((timeline) => (
      <TimelineRow key={timeline.list} timeline={timeline} />
    ))}
  </ul>
);

const TimelineRow = ({ timeline }: { readonly timeline: ListTimeline }) => {
  const { list, name, severity, now, isMuted, spans } = timeline;
  const { nowMs } = usePage();
  return (
    <li>
      <div>
        <Link href={`/blocklists/lists/${list}`} class="plain">
          {name}
        </Link>
        <span class="second">{severity}</span>
      </div>
      <div>
        <Drawing spans={spans} nowMs={nowMs} label={`${name}: ${summaryOf(timeline)}`} />
        <Troubles timeline={timeline} />
      </div>
      <div class="state">
        {now === "listed" ? <Badge kind="bad">Listed</Badge> : isMuted ? "muted" : NOW_WORDS[now]}
      </div>
    </li>
  );
};

const summaryOf = ({ spans, listings }: Pick<ListTimeline, "spans" | "listings">): string => {
  const unknown = spans.filter(({ state }) => state === "unknown").length;
  const parts = [
    listings > 0 ? `listed ${countText(listings, "time")}` : null,
    unknown > 0 ? `unknown ${countText(unknown, "time")}` : null,
  ].filter((text) => text !== null);
  if (spans.length === 0) return "not queried";
  return parts.length === 0 ? "never listed" : parts.join(", ");
};

/** What was not clean, with exact times, for those who cannot or do not want to see the drawing. */
const Troubles = ({ timeline }: { readonly timeline: ListTimeline }) => {
  const { name, spans } = timeline;
  const troubles = troublesIn(spans).toReversed();
  const { nowMs } = usePage();
  if (troubles.length === 0) return null;
  return (
    <details class="spans">
      <summary>
        {summaryOf(timeline)}
        <span class="unseen"> on {name}</span>
      </summary>
      <ul>
        {troubles.slice(0, SPANS_NAMED_MAX).map(({ state, fromMs, toMs, uncheckedMs }) => (
          <li key={fromMs}>
            {state === "listed" ? "Listed" : "Unknown"}: <Time atMs={fromMs} style="full" /> to{" "}
            {nowMs - toMs < 1_000 ? "now" : <Time atMs={toMs} style="full" />}
            {uncheckedMs > 0 && `, ${durationText(uncheckedMs)} of it not checked`}
          </li>
        ))}
        {troubles.length > SPANS_NAMED_MAX && <li>and {troubles.length - SPANS_NAMED_MAX} earlier</li>}
      </ul>
    </details>
  );
};

interface Trouble extends ListSpan {
  readonly uncheckedMs: number;
}

/** What was not clean, oldest first: a listing is one from its begin to its end, also through pauses in checking. */
export const troublesIn = (spans: readonly ListSpan[]): readonly Trouble[] => {
  const troubles: Trouble[] = [];
  for (const { state, fromMs, toMs } of spans) {
    if (state === "clean") continue;
    const last = troubles.at(-1);
    const uncheckedMs = state === "bridged" ? toMs - fromMs : 0;
    const isPart = last?.state === "listed" && last.toMs === fromMs && state !== "unknown";
    if (isPart) troubles.splice(-1, 1, { ...last, toMs, uncheckedMs: last.uncheckedMs + uncheckedMs });
    else troubles.push({ state, fromMs, toMs, uncheckedMs });
  }
  return troubles;
};

/** The patterns of what is unknown and of what was not checked, for all drawings of the page. */
const Stripes = () => (
  <svg class="stripes" width={0} height={0} aria-hidden="true">
    <defs>
      <pattern id="unknown-stripes" width={4} height={4} patternUnits="userSpaceOnUse">
        <rect class="ground" width={4} height={4} />
        <path class="line" d="M-1 1 L1 -1 M0 4 L4 0 M3 5 L5 3" />
      </pattern>
      <pattern id="bridged-stripes" width={4} height={4} patternUnits="userSpaceOnUse">
        <rect class="ground" width={4} height={4} />
        <path class="bridge" d="M-1 1 L1 -1 M0 4 L4 0 M3 5 L5 3" />
      </pattern>
    </defs>
  </svg>
);

const FILLS: Partial<Readonly<Record<ListSpan["state"], string>>> = {
  unknown: "url(#unknown-stripes)",
  bridged: "url(#bridged-stripes)",
};

const Drawing = ({
  spans,
  nowMs,
  label,
}: {
  readonly spans: readonly ListSpan[];
  readonly nowMs: number;
  readonly label: string;
}) => (
  <svg class="timeline" viewBox={`0 0 ${SLOTS} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
    {slotsOf(spans, nowMs).map(({ state, from, width }) => (
      <rect key={from} class={`span-${state}`} x={from} width={width} height={HEIGHT} fill={FILLS[state]} />
    ))}
  </svg>
);

interface DrawnSpan {
  readonly state: ListSpan["state"];
  readonly from: number;
  readonly width: number;
}

/** Spans in slots of six hours, the worst state of each; what lasted less is still seen. */
export const slotsOf = (spans: readonly ListSpan[], nowMs: number): DrawnSpan[] => {
  const startMs = nowMs - TIMELINE_DAYS * DAY_MS;
  const slots: Array<ListSpan["state"] | null> = Array.from({ length: SLOTS }, () => null);
  const at = (ms: number): number => Math.floor((ms - startMs) / SLOT_MS);
  for (const wanted of ["clean", "unknown", "bridged", "listed"] as const)
    for (const { state, fromMs, toMs } of spans)
      if (state === wanted) slots.fill(state, Math.max(0, at(fromMs)), Math.min(SLOTS, at(toMs - 1) + 1));
  const drawn: Array<{ state: ListSpan["state"]; from: number; width: number }> = [];
  for (const [from, state] of slots.entries()) {
    const last = drawn.at(-1);
    if (state === null) continue;
    if (last?.state === state && last.from + last.width === from) last.width += 1;
    else drawn.push({ state, from, width: 1 });
  }
  return drawn;
};

const Legend = () => {
  const { nowMs } = usePage();
  return (
    <p class="timeline-legend soft small">
      <span>
        <Time atMs={nowMs - TIMELINE_DAYS * DAY_MS} style="day" /> to today.
      </span>{" "}
      Red: listed. Green: not listed. Red stripes: not checked, listed before and after. Grey stripes: no usable
      response. Empty: not checked.
    </p>
  );
};
