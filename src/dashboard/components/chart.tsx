import { Day, numberText } from "./figures.tsx";

/** What a series means; it decides the colour. */
export type SeriesKind = "ok" | "warn" | "bad" | "unknown" | "info";

export interface Series {
  readonly title: string;
  readonly kind: SeriesKind;
  /** One for each day; null where nothing is known. */
  readonly values: ReadonlyArray<number | null>;
}

export interface ChartProps {
  /** What the chart shows, for screen readers. */
  readonly caption: string;
  /** `YYYY-MM-DD`, without gaps. */
  readonly days: readonly string[];
  /** Stacked, the first one at the bottom. */
  readonly series: readonly Series[];
  /** Marked days. */
  readonly markers?: ReadonlyArray<{ readonly day: string; readonly text: string }>;
  readonly unit?: string;
}

const totalOf = ({ values }: Series): number => values.reduce<number>((sum, value) => sum + (value ?? 0), 0);

/** Counts a day as one bar, stacked by what they mean; days without data are gaps. A table with the same figures stands below it. */
export const BarChart = ({ caption, days, series, markers = [], unit = "" }: ChartProps) => {
  return (
    <figure class="chart">
      <div class="plot" data-chart={JSON.stringify({ days, series, markers, unit })} aria-hidden="true" hidden />
      <figcaption>
        <ul class="legend">
          {series.map((one) => (
            <li key={one.title}>
              <span class={`swatch ${one.kind}`} /> {one.title} <b class="num">{numberText(totalOf(one))}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <details class="figures">
        <summary>The figures as a table</summary>
        <FiguresTable {...{ caption, days, series, markers }} />
      </details>
    </figure>
  );
};

const FiguresTable = ({ caption, days, series, markers = [] }: ChartProps) => (
  <section class="scroll" tabIndex={0} aria-label={caption}>
    <table>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">Day</th>
          {series.map(({ title }) => (
            <th key={title} scope="col" class="end">
              {title}
            </th>
          ))}
          {markers.length > 0 && <th scope="col">Note</th>}
        </tr>
      </thead>
      <tbody>
        {days.map((day, at) => (
          <tr key={day}>
            <th scope="row">
              <Day day={day} />
            </th>
            {series.map(({ title, values }) => (
              <td key={title} class="end">
                {values[at] === null || values[at] === undefined ? "no data" : numberText(values[at])}
              </td>
            ))}
            {markers.length > 0 && (
              <td>
                {markers
                  .filter((marker) => marker.day === day)
                  .map(({ text }) => text)
                  .join(" ")}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
);

const SPARK_WIDTH = 96;
const SPARK_HEIGHT = 24;

interface SparklineProps {
  /** Stacked, the first one at the bottom; null where nothing is known. */
  readonly series: ReadonlyArray<Pick<Series, "kind" | "values">>;
  /** The same in words. */
  readonly label: string;
}

/** Small bars without axes, one for each day. Days without data are gaps. */
export const Sparkline = ({ series, label }: SparklineProps) => {
  const days = series[0]?.values.length ?? 0;
  const valueAt = (at: number, among = series) => among.reduce((sum, { values }) => sum + (values[at] ?? 0), 0);
  const highest = Math.max(1, ...Array.from({ length: days }, (_, at) => valueAt(at)));
  const step = SPARK_WIDTH / Math.max(1, days);
  const heightOf = (value: number) => (value / highest) * (SPARK_HEIGHT - 1);
  return (
    <svg class="spark" viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`} role="img" aria-label={label}>
      {series.map(({ kind, values }, index) =>
        values.map((value, at) => {
          // A day on which nothing was counted has a line at the bottom.
          if (value === null || (value === 0 && (index > 0 || valueAt(at) > 0))) return null;
          const height = Math.max(1, heightOf(value));
          const y = SPARK_HEIGHT - heightOf(valueAt(at, series.slice(0, index))) - height;
          return (
            <rect key={`${index} ${at}`} class={kind} {...{ x: at * step, y, width: Math.max(1, step - 1), height }} />
          );
        }),
      )}
    </svg>
  );
};

export interface StackPart {
  readonly title: string;
  /** `mild`: a lighter `warn`; `rest`: nothing yet. */
  readonly kind: SeriesKind | "mild" | "rest";
  readonly value: number;
}

const BAR_WIDTH = 1_000;

/** One bar of parts, with what each part is below it. */
export const StackBar = ({
  parts,
  hasLegend = true,
}: {
  readonly parts: readonly StackPart[];
  readonly hasLegend?: boolean;
}) => {
  const whole = parts.reduce((sum, { value }) => sum + value, 0);
  let at = 0;
  return (
    <div class="stack-bar">
      <svg
        viewBox={`0 0 ${BAR_WIDTH} 14`}
        preserveAspectRatio="none"
        role="img"
        aria-label={parts.map(({ title, value }) => `${title} ${numberText(value)}`).join(", ")}
      >
        <rect class="rest" x={0} y={0} width={BAR_WIDTH} height={14} />
        {parts.map(({ title, kind, value }) => {
          const width = whole === 0 ? 0 : (value / whole) * BAR_WIDTH;
          const x = at;
          at += width;
          return kind === "rest" ? null : <rect key={title} class={kind} x={x} y={0} width={width} height={14} />;
        })}
      </svg>
      {hasLegend && (
        <ul class="legend">
          {parts.map(({ title, kind, value }) => (
            <li key={title}>
              <span class={`swatch ${kind}`} /> {title} <b class="num">{numberText(value)}</b>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
};

/** A score of 0 to 100 as a bar. */
export const ScoreBar = ({
  label,
  value,
  kind,
}: {
  readonly label: string;
  readonly value: number;
  readonly kind: SeriesKind;
}) => (
  <div class="score">
    <div class="score-head">
      <span>{label}</span>
      <b class="num">{value}</b>
    </div>
    <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="rest" width={100} height={4} />
      <rect class={kind} width={value} height={4} />
    </svg>
  </div>
);
