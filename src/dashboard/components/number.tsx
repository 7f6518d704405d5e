const GROUPED = new Intl.NumberFormat("en-US");

/** A number with its thousands grouped. */
export const numberText = (value: number): string => GROUPED.format(value);

export const Num = ({ value }: { readonly value: number }) => <span class="num">{numberText(value)}</span>;

const WHOLE = 100;

/** A share of 0 to 1 as a percentage. It is 100 or 0 only when it is exactly that. */
export const percentText = (share: number): string => {
  const percent = share * WHOLE;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < WHOLE && percent > 99.9) return "> 99.9 %";
  const text =
    percent >= 10 && Number.isInteger(Math.round(percent * 10) / 10) ? percent.toFixed(0) : percent.toFixed(1);
  return `${text.replace(/\.0$/, "")} %`;
};

/** The share of `part` in `whole`; a dash when there is nothing to share. */
export const Percent = ({ part, whole }: { readonly part: number; readonly whole: number }) => (
  <span class="num">{whole === 0 ? "–" : percentText(part / whole)}</span>
);

const KIB = 1024;
const UNITS = ["bytes", "kB", "MB", "GB", "TB"] as const;

/** A size in bytes, in the unit that suits it. */
export const bytesText = (bytes: number): string => {
  const power = bytes < KIB ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log(bytes) / Math.log(KIB)));
  const value = bytes / KIB ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power] ?? "bytes"}`;
};

/** "1 list", "2 lists". */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;
