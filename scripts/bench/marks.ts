import { z } from "zod";

const limitSchema = z.union([z.object({ least: z.number() }), z.object({ most: z.number() })]);

export const markSchema = z.object({
  group: z.string(),
  what: z.string(),
  /** Null when it could not be measured; `note` then says why. */
  value: z.number().nullable(),
  unit: z.string(),
  /** The same of another version. Absent where none was measured; null where it could not be measured. */
  before: z.number().nullable().exactOptional(),
  /** Absent for a figure that is shown beside the others and judged by nobody. */
  limit: limitSchema.exactOptional(),
  note: z.string().exactOptional(),
});

/** One line of the table: what was measured, beside what it has to be. */
export type Mark = Readonly<z.infer<typeof markSchema>>;

export const WHOLE_GROUP = "the whole group";

/** The line of a group that failed, which is a missed limit. */
export const failedGroup = (group: string, error: unknown): Mark => {
  const note = error instanceof Error ? error.message : String(error);
  return { group, what: WHOLE_GROUP, value: null, unit: "", limit: { most: 0 }, note };
};

/** The middle value; of an even number of values the mean of the two in the middle. NaN of none. */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? Number.NaN) + upper) / 2;
};

/** The value below or at which a share of all values lies: 0.95 or 0.99. NaN of none. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN;

/** Null for a figure without a limit. A figure that was not measured has not met its limit. */
export const isMet = ({ value, limit }: Mark): boolean | null => {
  if (limit === undefined) return null;
  if (value === null || Number.isNaN(value)) return false;
  return "least" in limit ? value >= limit.least : value <= limit.most;
};

const figure = (value: number): string => {
  const digits = Number.isInteger(value) || Math.abs(value) >= 100 ? 0 : 2;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
};

const measured = (value: number | null, { unit }: Mark): string =>
  value === null ? "not measured" : `${figure(value)} ${unit}`.trimEnd();

const demanded = ({ limit, unit }: Mark): string => {
  if (limit === undefined) return "";
  const [sign, bound] = "least" in limit ? ["≥", limit.least] : ["≤", limit.most];
  return `${sign} ${bound.toLocaleString("en")} ${unit}`.trimEnd();
};

const judged = (mark: Mark): string => {
  const met = isMet(mark);
  return met === null ? "" : met ? "met" : "MISSED";
};

export const HEADINGS = ["group", "what", "measured", "before", "limit", "", "note"];

/** A mark under the headings. */
export const cellsOf = (mark: Mark): readonly string[] => [
  mark.group,
  mark.what,
  measured(mark.value, mark),
  mark.before === undefined ? "" : measured(mark.before, mark),
  demanded(mark),
  judged(mark),
  mark.note ?? "",
];

/** The marks as a table of text, one a line. */
export const marksText = (marks: readonly Mark[]): string => {
  const rows = [HEADINGS, ...marks.map(cellsOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((cells) => Bun.stringWidth(cells[column] ?? ""))));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
};

/** The marks for a program: each with `met`, which is null where there is no limit. */
export const marksJson = (marks: readonly Mark[]): string =>
  JSON.stringify(
    marks.map((mark) => ({ ...mark, met: isMet(mark) })),
    null,
    2,
  );
