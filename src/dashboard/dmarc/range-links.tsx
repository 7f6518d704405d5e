import { z } from "zod";
import { usePage } from "../context.ts";
import { withParameters } from "../url.ts";

export const RANGES = [
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
