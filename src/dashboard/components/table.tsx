import type { ComponentChildren } from "preact";
import { sumBy } from "../../foundation/base/sums.ts";
import { usePage } from "../visit.ts";
import { Icon } from "./icon.tsx";
import { withParameters } from "./inline.tsx";
import { RowForm, RowMenu, type RowMenuProps } from "./row-menu.tsx";

export interface Column {
  readonly title: ComponentChildren;
  /** Numbers are aligned at the end. */
  readonly align?: "start" | "end";
  readonly isMono?: boolean;
  /** The column takes the room that the others leave, cuts what is longer, and heads stacked rows. Default: the first one with a title heads them. */
  readonly isMain?: boolean;
  /** Sentences: they take several lines. All others have one. */
  readonly isText?: boolean;
  /** The value of `?sort=` that orders by this column. */
  readonly sort?: string;
  /** The title is for screen readers only. */
  readonly isTitleHidden?: boolean;
}

export interface TableRow {
  readonly key: string | number;
  readonly cells: readonly ComponentChildren[];
  readonly isMarked?: boolean;
  /** What can be done with the row. */
  readonly menu?: RowMenuProps;
}

interface TableProps {
  /** What the table shows, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly TableRow[];
  /** The value of `?sort=` in force. */
  readonly sort?: string;
  /** Somebody's own table, with any number of columns: it scrolls instead of being stacked. */
  readonly isScrolled?: boolean;
}

/** Tables with at most these columns fit into every window. */
const COLUMNS_ALWAYS = 2;
/** Tables with at most these columns fit into a panel beside another one; numbers are half as wide. */
const COLUMNS_BESIDE = 4;
/** Tables with at least these have narrow columns. */
const COLUMNS_DENSE = 5;

const isFewBeside = (columns: readonly Column[]): boolean =>
  columns.length <= COLUMNS_BESIDE || sumBy(columns, ({ align }) => (align === "end" ? 0.5 : 1)) < COLUMNS_BESIDE;

const frameClass = (columns: readonly Column[], isScrolled: boolean): string => {
  if (isScrolled) return "scroll";
  if (columns.length <= COLUMNS_ALWAYS) return "table";
  const names = [
    "table stacks",
    isFewBeside(columns) && "few",
    columns.length >= COLUMNS_DENSE && "dense",
    columns.some(({ sort }) => sort !== undefined) && "sorts",
  ];
  return names.filter(Boolean).join(" ");
};

const classesOf = (columns: readonly Column[]): ReadonlyArray<string | undefined> => {
  const chosen = columns.findIndex(({ isMain }) => isMain === true);
  const head = chosen === -1 ? columns.findIndex(({ isTitleHidden }) => isTitleHidden !== true) : chosen;
  return columns.map(({ align, isMono, isText, isTitleHidden }, at) => {
    const names = [
      at === head && "head",
      at === chosen && "main",
      align === "end" && "end",
      isMono === true && "mono",
      isText === true && "text",
      isTitleHidden === true && at < head && "before",
    ].filter(Boolean);
    return names.length === 0 ? undefined : names.join(" ");
  });
};

/**
 * A table. Where it has too little room, each row becomes a block: its main cell, then the others with their titles. No column is ever
 * hidden.
 */
export const Table = ({ caption, columns: given, rows, sort, isScrolled = false }: TableProps) => {
  const hasMenu = rows.some(({ menu }) => menu !== undefined);
  const columns: readonly Column[] = hasMenu ? [...given, { title: "More", isTitleHidden: true }] : given;
  const classes = classesOf(columns);
  const titles = columns.map((column, at) => titleBeside(column, classes[at]));
  const scrolled = isScrolled ? ({ role: "region", tabIndex: 0, "aria-label": caption } as const) : {};
  return (
    <div class={frameClass(columns, isScrolled)} {...scrolled}>
      {hasMenu && <RowForm />}
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={classes[at]} aria-sort={ariaSort(column, sort)}>
                <ColumnTitle {...column} isSorted={column.sort !== undefined && column.sort === sort} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells, isMarked, menu }) => (
            <tr key={key} class={isMarked === true ? "marked" : undefined}>
              {cells.map((cell, at) => (
                <td key={at} class={classes[at]} data-title={titles[at]}>
                  {columns[at]?.isText === true ? cell : onOneLine(cell)}
                </td>
              ))}
              {hasMenu && <td class="menu">{menu !== undefined && <RowMenu {...menu} />}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};

/** A shorter text is never cut. */
const SHORT_CHARACTERS = 20;

const onOneLine = (cell: ComponentChildren): ComponentChildren =>
  typeof cell === "string" && cell.length > SHORT_CHARACTERS ? (
    <span class="cut" title={cell}>
      {cell}
    </span>
  ) : (
    cell
  );

/** What a cell is, beside it where rows are stacked. */
const titleBeside = ({ title, isTitleHidden }: Column, name: string | undefined): string | undefined =>
  isTitleHidden === true || name?.startsWith("head") === true || typeof title !== "string" ? undefined : title;

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
