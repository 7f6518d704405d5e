import type { ComponentChildren } from "preact";
import { z } from "zod";
import { usePage } from "../visit.ts";
import { numberText } from "./figures.tsx";
import { withParameters } from "./inline.tsx";

const ROWS_CHOICES = ["50", "200"] as const;

/** `?rows=`: the rows of a table on a page. */
export const rowsParameter = z.enum(ROWS_CHOICES).default("50").transform(Number);

/** The first `limit` rows of those that were found, and behind which key the next page begins; null where no more were found. */
export const firstRows = <R extends object>(
  found: readonly R[],
  limit: number,
  keyOf: (row: R) => string,
): { readonly rows: readonly R[]; readonly next: string | null } => {
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  return { rows, next: found.length > limit && last !== undefined ? keyOf(last) : null };
};

/** Rows that are counted at most, where counting them takes time. */
export const TOTAL_MAX = 10_000;

/** The total of something that was counted up to `TOTAL_MAX` and one more. */
export const countedTotal = (count: number): number | "many" => (count > TOTAL_MAX ? "many" : count);

/** Pages that the URL of a page remembers: from the one after them, "Previous page" leads back through them. */
const TRAIL_MAX = 30;
/** Stands for pages that the URL does not remember. */
const FORGOTTEN = "…";

/** Where a page of a table begins. The first page has no cursor. */
interface Start {
  readonly cursor: string | null;
  /** The number of its first row, from 1 on. */
  readonly first: number;
}

const FIRST_PAGE: Start = { cursor: null, first: 1 };

const textOf = ({ cursor, first }: Start): string => `${first}_${cursor ?? ""}`;

const startOf = (text: string): Start => {
  const [first = "", ...cursor] = text.split("_");
  return { first: wholeOf(first), cursor: cursor.join("_") };
};

const wholeOf = (text: string | null): number => {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : 1;
};

/** The page that is open, and the pages on the way to it without the first one, as in its URL. */
const readPlace = (url: string): { readonly at: Start; readonly trail: readonly string[] } => {
  const parameters = new URLSearchParams(url.split("?")[1] ?? "");
  const cursor = parameters.get("cursor");
  if (cursor === null) return { at: FIRST_PAGE, trail: [] };
  const trail = (parameters.get("trail") ?? "").split(" ").filter((text) => text !== "");
  return { at: { cursor, first: wholeOf(parameters.get("first")) }, trail };
};

const pathOf = (url: string, { cursor, first }: Start, trail: readonly string[]): string =>
  withParameters(url, {
    cursor,
    ...(cursor === null ? {} : { first: String(first), trail: trail.length === 0 ? null : trail.join(" ") }),
  });

/** The URL of the page behind this one, which begins with the row `first`. */
const nextPath = (url: string, cursor: string, first: number): string => {
  const { at, trail } = readPlace(url);
  const longer = at.cursor === null ? [] : [...trail, textOf(at)];
  const kept = longer.length > TRAIL_MAX ? [FORGOTTEN, ...longer.slice(-TRAIL_MAX)] : longer;
  return pathOf(url, { cursor, first }, kept);
};

/** The URL of the page before this one; null on the first page, and where the URL does not remember it. */
const previousPath = (url: string): string | null => {
  const { at, trail } = readPlace(url);
  const last = trail.at(-1);
  if (at.cursor === null || last === FORGOTTEN) return null;
  return last === undefined ? pathOf(url, FIRST_PAGE, []) : pathOf(url, startOf(last), trail.slice(0, -1));
};

/** "51–100 of 3,977". */
const rangeText = (first: number, shown: number, total: number | "many" | undefined): string => {
  const of =
    total === undefined ? "" : ` of ${total === "many" ? `more than ${numberText(TOTAL_MAX)}` : numberText(total)}`;
  if (shown === 0) return "";
  return `${numberText(first)}${shown === 1 ? "" : `–${numberText(first + shown - 1)}`}${of}`;
};

interface PagerProps {
  /** The cursor of the next page, as it is in the URL; null on the last one. */
  readonly next: string | null;
  /** The rows of this page. */
  readonly shown: number;
  /** All rows that pass the filters, where that is known; `many`: more than `TOTAL_MAX`. */
  readonly total?: number | "many" | undefined;
  /** The number of the first row, where the cursor tells it. */
  readonly first?: number;
  /** How many rows a page has, where that can be chosen (`rowsParameter`). */
  readonly rows?: number;
  readonly children?: ComponentChildren;
}

/** Where this page of a table is, and the ways to the pages beside it. */
export const Pager = ({ next, shown, total, rows, children, ...given }: PagerProps) => {
  const { url } = usePage();
  const { at } = readPlace(url);
  const first = given.first ?? at.first;
  const isLater = at.cursor !== null;
  const previous = previousPath(url);
  if (next === null && !isLater && shown < 2 && children === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages of the table">
      <div class="soft small pager-facts">
        <span class="num">{rangeText(first, shown, next === null && !isLater ? shown : total)}</span>
        {rows !== undefined && (next !== null || isLater || rows > 50) && <RowsChoice rows={rows} />}
        {children}
      </div>
      <div class="actions">
        {isLater && previous !== withParameters(url, { cursor: null }) && (
          <a class="button" href={withParameters(url, { cursor: null })}>
            First page
          </a>
        )}
        {previous !== null && (
          <a class="button" rel="prev" href={previous}>
            Previous page
          </a>
        )}
        {next !== null && (
          <a class="button" rel="next" href={nextPath(url, next, first + shown)}>
            Next page
          </a>
        )}
      </div>
    </nav>
  );
};

const RowsChoice = ({ rows }: { readonly rows: number }) => {
  const { url } = usePage();
  return (
    <span class="segments">
      {ROWS_CHOICES.map((choice) => (
        <a
          key={choice}
          href={withParameters(url, { rows: choice, cursor: null })}
          aria-current={Number(choice) === rows ? "true" : undefined}
        >
          {choice} rows
        </a>
      ))}
    </span>
  );
};
