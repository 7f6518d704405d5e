import type { ComponentChildren } from "preact";
import { usePage } from "../visit.ts";
import { Icon } from "./icon.tsx";

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
