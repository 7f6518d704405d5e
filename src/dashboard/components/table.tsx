import type { ComponentChildren } from "preact";
import { usePage } from "../visit.ts";
import { withParameters, Icon } from "./inline.tsx";

export interface Column {
  readonly title: ComponentChildren;
  /** Numbers are aligned at the end. */
  readonly align?: "start" | "end";
  readonly isMono?: boolean;
  /** Not needed on a phone. */
  readonly isWide?: boolean;
  /** The value of `?sort=` that orders by this column. */
  readonly sort?: string;
  /** The title is for screen readers only. */
  readonly isTitleHidden?: boolean;
}

export interface TableRow {
  readonly key: string | number;
  readonly cells: readonly ComponentChildren[];
  readonly isMarked?: boolean;
}

interface TableProps {
  /** What the table shows, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly TableRow[];
  /** The value of `?sort=` in force. */
  readonly sort?: string;
  /** On phones a row becomes a block, its first cell on a line of its own. For tables without sorting. */
  readonly isStacked?: boolean;
}

const classOf = ({ align, isMono, isWide }: Column): string | undefined =>
  [align === "end" && "end", isMono === true && "mono", isWide === true && "wide-only"].filter(Boolean).join(" ") ||
  undefined;

/** A table. On phones it scrolls inside its panel, without the columns that are not needed there, or is stacked. */
export const Table = ({ caption, columns, rows, sort, isStacked = false }: TableProps) => (
  <section class={isStacked ? "scroll stacked" : "scroll"} tabIndex={0} aria-label={caption}>
    <table>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map((column, at) => (
            <th key={at} scope="col" class={classOf(column)} aria-sort={ariaSort(column, sort)}>
              <ColumnTitle {...column} isSorted={column.sort !== undefined && column.sort === sort} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, cells, isMarked }) => (
          <tr key={key} class={isMarked === true ? "marked" : undefined}>
            {cells.map((cell, at) => (
              <td
                key={at}
                class={columns[at] && classOf(columns[at])}
                data-title={isStacked ? titleOf(columns[at]) : null}
              >
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

/** What a number is, beside it on phones. */
const titleOf = (column: Column | undefined): string | null =>
  column?.align === "end" && typeof column.title === "string" ? column.title : null;

const ariaSort = ({ sort }: Column, current: string | undefined): "descending" | undefined =>
  sort !== undefined && sort === current ? "descending" : undefined;

const ColumnTitle = ({ title, sort, isSorted, isTitleHidden }: Column & { readonly isSorted: boolean }) => {
  const { url } = usePage();
  if (isTitleHidden === true) return <span class="unseen">{title}</span>;
  if (sort === undefined) return <>{title}</>;
  return (
    <a href={withParameters(url, { sort, cursor: null })} class={isSorted ? "sorted" : undefined}>
      {title}
      {isSorted && <Icon name="chevron-right" />}
    </a>
  );
};

interface PagerProps {
  /** The cursor of the next page; null on the last one. */
  readonly next: string | null;
  /** Whether this is a later page. */
  readonly isLater: boolean;
  readonly children?: ComponentChildren;
}

/** Leads to the next page of a list, and back to the first. */
export const Pager = ({ next, isLater, children }: PagerProps) => {
  const { url } = usePage();
  if (next === null && !isLater && children === undefined) return null;
  return (
    <div class="pager">
      <div class="soft small">{children}</div>
      <div class="actions">
        {isLater && (
          <a class="button" href={withParameters(url, { cursor: null })}>
            First page
          </a>
        )}
        {next !== null && (
          <a class="button" rel="next" href={withParameters(url, { cursor: next })}>
            Next page
          </a>
        )}
      </div>
    </div>
  );
};
